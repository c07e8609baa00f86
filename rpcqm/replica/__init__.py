"""A replicated log of an existing engine: appending, following, taking over."""
