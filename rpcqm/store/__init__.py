"""Keeps messages and records durably: column families, group commit, index, recovery."""
