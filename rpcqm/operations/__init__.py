"""The operations of operators and programs; each checks the identity of its caller."""
