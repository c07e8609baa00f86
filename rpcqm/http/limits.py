"""The bounds of an HTTP client's use of a server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of one server; sizes in octets, times in milliseconds (0 = none).

    body_bytes: of one request.
    held_bytes_in_all: requests that are not answered and answers that are not read, of the whole
        server, after which the connections with most are given up.
    unfinished_milliseconds: for the head of a request, for each STEP of its body, and for the
        handshake of TLS.
    unread_milliseconds: in which a client must take some of what was sent to it.
    idle_milliseconds: between two requests.
    stop_milliseconds: for requests in flight when the server stops.
    keepalive_milliseconds: of silence on TCP before the kernel asks whether the peer is there.
    """

    body_bytes: int = 0x420000
    held_bytes_in_all: int = 512 << 20
    unfinished_milliseconds: int = 30_000
    unread_milliseconds: int = 60_000
    idle_milliseconds: int = 120_000
    stop_milliseconds: int = 5_000
    keepalive_milliseconds: int = 60_000


LINE_BYTES = 8190
"""Target of a request.

As long as other servers take.

Bound `http.line_bytes` [octets]: the request is answered with 400, and the connection closed.
"""
FIELD_BYTES = 16_384
"""Name of a header, and its value.

A ticket of an account in a thousand groups is 13 KiB long.

Bound `http.field_bytes` [octets]: the request is answered with 400, and the connection closed.
"""
HEADERS = 64
"""Headers of a request.

A request has about ten.

Bound `http.headers` [headers]: the request is answered with 400, and the connection closed.
"""
STEP = 1 << 16
"""Octets of a body that a slow client must send in the time for what is unfinished."""
