"""Security identifiers and descriptors, and the access check."""
