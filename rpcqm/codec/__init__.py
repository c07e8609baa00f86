"""Bytes to values and back: no sockets, no queues."""
