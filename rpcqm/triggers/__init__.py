"""The service that runs the rules of triggers: a client of a queue manager, as any other."""
