"""RPC interfaces: what arrives becomes an event of the queue manager, its outcome an answer."""
