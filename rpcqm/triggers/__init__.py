"""The service that runs the rules of triggers; it is a client of a queue manager."""
