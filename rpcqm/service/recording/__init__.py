"""What a running service records of its own traffic."""
