"""Octets of a connection to its calls or packets."""
