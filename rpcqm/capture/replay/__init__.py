"""Recorded conversations played against a server, and compared."""
