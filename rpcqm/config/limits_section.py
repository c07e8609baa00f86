"""The table [limits]: how much of everything callers may use."""

from dataclasses import dataclass
from typing import Annotated

from rpcqm.config.about import About


@dataclass(frozen=True, slots=True)
class LimitsSection:
    """How much of everything callers may use."""

    connections: Annotated[
        int,
        About(
            "Connections of all ports together; fewer if few files may be open.",
            (1, 1 << 20),
            beyond="a connection is closed as soon as it is there",
        ),
    ] = 16_384
    connections_per_address: Annotated[
        int,
        About(
            "Connections of one address, IPv6 /64 or local user, over all ports.",
            (1, 1 << 20),
            beyond="a connection is closed as soon as it is there",
        ),
    ] = 1024
    calls: Annotated[
        int,
        About(
            "Calls in flight on one connection.",
            (1, 1 << 20),
            beyond="the call is refused with nca_s_server_too_busy",
        ),
    ] = 1024
    waiting_calls: Annotated[
        int,
        About(
            "Calls that wait on all connections; beyond, each may have one.",
            (1, 1 << 24),
            beyond="the call is refused with nca_s_server_too_busy",
        ),
    ] = 65_536
    call_bytes: Annotated[
        int,
        About(
            "Size of one call; the largest message needs 4 MiB and some.",
            (1, 1 << 30),
            unit="B",
            beyond="the call is refused, and the connection is closed",
        ),
    ] = 0x420000
    call_fragments: Annotated[
        int,
        About(
            "Fragments that one call may come in.",
            (1, 1 << 20),
            beyond="the call is refused, and the connection is closed",
        ),
    ] = 8192
    contexts: Annotated[
        int,
        About(
            "Presentation contexts of one connection.",
            (1, 0xFFFF),
            beyond="the context is refused with local_limit_exceeded",
        ),
    ] = 1024
    security_contexts: Annotated[
        int,
        About(
            "Security contexts of one connection.",
            (1, 0xFFFF),
            beyond="the authentication is refused",
        ),
    ] = 64
    handles: Annotated[
        int,
        About(
            "Open queues and transactions of one client.",
            (1, 1 << 20),
            beyond="the call is refused",
        ),
    ] = 4096
    cursors: Annotated[
        int,
        About(
            "Cursors of one client, on all of its open queues.",
            (1, 1 << 20),
            beyond="the call is refused with MQ_ERROR_INSUFFICIENT_RESOURCES",
        ),
    ] = 4096
    outgoing_queues: Annotated[
        int,
        About(
            "Queues to other queue managers, beyond which only administrators make more.",
            (1, 1 << 20),
            beyond="a send to elsewhere is refused with MQ_ERROR_INSUFFICIENT_RESOURCES, a message"
            " to be passed on with MQMSG_CLASS_NACK_Q_EXCEED_QUOTA or 500, and an "
            "acknowledgement dropped",
        ),
    ] = 8192
    outgoing_queues_per_account: Annotated[
        int,
        About(
            "The same of one account, which is no administrator.",
            (1, 1 << 20),
            beyond="the same for its sends",
        ),
    ] = 256
    outgoing_queues_per_source: Annotated[
        int,
        About(
            "The same for messages from one address, IPv6 /64 or queue manager.",
            (1, 1 << 20),
            beyond="the same for its messages",
        ),
    ] = 256
    unsent_bytes: Annotated[
        int,
        About(
            "Unread replies after which a connection is given up.",
            (1 << 20, 1 << 34),
            unit="B",
            beyond="the connection is closed",
        ),
    ] = 64 << 20
    held_bytes: Annotated[
        int,
        About(
            "Unread replies and unfinished requests of all connections, beyond which those with "
            "most are given up.",
            (1 << 20, 1 << 40),
            unit="B",
            beyond="the connections that hold most are closed",
        ),
    ] = 512 << 20
    unread_seconds: Annotated[
        int,
        About(
            "Time to take some of what was sent; 0 is for ever.",
            (0, 86_400),
            unit="s",
            beyond="the connection is closed",
        ),
    ] = 60
    unfinished_seconds: Annotated[
        int,
        About(
            "Time to finish a handshake or a request; 0 is for ever.",
            (0, 86_400),
            unit="s",
            beyond="the connection is closed",
        ),
    ] = 30
    idle_seconds: Annotated[
        int,
        About(
            "Time that a connection without open queues may be idle; 0 is for ever.",
            (0, 86_400),
            unit="s",
            beyond="the connection is closed",
        ),
    ] = 0
    unauthenticated_seconds: Annotated[
        int,
        About(
            "The same for a connection over which nobody has logged on; 0 is for ever.",
            (0, 86_400),
            unit="s",
            beyond="the connection is closed",
        ),
    ] = 120
    request_templates: Annotated[
        bool,
        About("Requests like ones before take the short way; off, each goes the careful one."),
    ] = True
    stop_seconds: Annotated[
        int,
        About(
            "Time for calls in flight when the queue manager stops.",
            (1, 600),
            unit="s",
            beyond="what is not answered is cut off",
        ),
    ] = 5
