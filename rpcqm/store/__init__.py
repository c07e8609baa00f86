"""Durable keeping of messages and records: families, group commit, index, recovery."""
