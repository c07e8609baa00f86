"""The bounds of a peer's use of a server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one server; sizes in octets, times in milliseconds (0: no bound).

    The defaults are far above what known clients use; they bound what one client can take of a
    machine with a few gigabytes. docs/limits.md says what happens at each.

    fragment_size: largest PDU sent or accepted; negotiated sizes are multiples of 8 from 2048.
    token_size: largest PDU with a leg of authentication: tickets of people in many groups are long.
    call_bytes: stub data of one request ([MS-RPCE] 3.3.3.5.4); call_fragments: its pieces.
    calls: requests in flight per connection, those that it has orphaned included.
    waiting_calls: requests of the whole server that wait; beyond, each connection may have one.
    contexts, security_contexts: per connection.
    handles, cursors: per association group.
    connections: of the whole server; connections_per_address: of each address or local user.
    output_bytes: unsent replies after which a connection is not read from.
    unsent_bytes: unsent replies after which a connection is given up.
    held_bytes_in_all: unsent replies and unfinished requests of the whole server, after which the
        connections with most are given up.
    unread_milliseconds: in which a client must take some of what was sent to it.
    unfinished_milliseconds: for the first bind, a handshake, a PDU or a fragmented request.
    idle_milliseconds: for a connection without calls and without context handles.
    unauthenticated_milliseconds: for such a connection over which no client has logged on.
    stop_milliseconds: for calls in flight when the server stops.
    keepalive_milliseconds: of silence on TCP before the kernel asks whether the peer is there.
    """

    fragment_size: int = 5840
    """Size of one fragment of a request.

    Bound `rpc.fragment_size` [octets]: the connection is closed.
    """
    token_size: int = 0x4000
    """Size of a PDU with a leg of authentication.

    Bound `rpc.token_size` [octets]: the connection is closed.
    """
    call_bytes: int = 0x400000
    call_fragments: int = 8192
    calls: int = 1024
    waiting_calls: int = 65536
    contexts: int = 1024
    security_contexts: int = 64
    handles: int = 4096
    cursors: int = 4096
    connections: int = 16384
    connections_per_address: int = 1024
    output_bytes: int = 1 << 20
    unsent_bytes: int = 64 << 20
    held_bytes_in_all: int = 512 << 20
    unread_milliseconds: int = 60_000
    unfinished_milliseconds: int = 30_000
    idle_milliseconds: int = 0
    unauthenticated_milliseconds: int = 120_000
    stop_milliseconds: int = 5_000
    keepalive_milliseconds: int = 60_000


FRAGMENT_MINIMUM = 2048


def negotiated_fragment(proposed_xmit: int, proposed_recv: int, own: int) -> int:
    """The fragment size of both directions: at least FRAGMENT_MINIMUM octets, a multiple of 8."""
    size = min(proposed_xmit, proposed_recv, own)
    return max(size, FRAGMENT_MINIMUM) & ~7
