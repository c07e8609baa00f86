"""The edge of the binary protocol: sockets, queues and the sessions between them."""
