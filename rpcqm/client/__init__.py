"""A client of queue managers, for programs and for the command line."""
