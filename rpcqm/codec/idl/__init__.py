"""IDL files to typed trees: the grammar, the scopes, the cache."""
