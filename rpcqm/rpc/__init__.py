"""The DCE/RPC runtime: PDUs, associations, security, dispatch; it knows nothing of queues."""
