"""HTTP: one stack for all doors that speak it, with the bounds of the other listeners."""
