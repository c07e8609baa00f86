"""Filters of messages by their properties and contents: for searches, and for orders."""
