"""HTTP: one stack for all that speaks it, with the bounds of the other listeners."""
