"""RPC interfaces: their calls become events of the queue manager, the outcomes become answers."""
