"""How many messages programs may lease."""

LEASES_OF_ACCOUNT = 10_000
"""Leases of one account.

One account cannot take what all may have; each takes about 600 octets.

Bound `leases.of_account` [leases]: a receive gets fewer messages; one that gets none is refused.
"""
LEASES_IN_ALL = 100_000
"""Leases of all accounts.

Bound `leases.in_all` [leases]: a receive gets fewer messages; one that gets none is refused.
"""
MESSAGES_AT_ONCE = 1_000
"""Messages that one receive with leases asks for.

Bound `leases.messages_at_once` [messages]: the call is refused.
"""
BYTES_AT_ONCE = 8 << 20
"""After so many bytes that are told one receive with leases takes no more messages.

As its door measures messages, so that an answer stays within the memory of one connection. The
first message is given whatever its size.

Bound `leases.bytes_at_once` [bytes]: the others stay in the queue.
"""
