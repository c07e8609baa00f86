"""The transport of requests to other queue managers; the edge implements it, tests simulate it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from rpcqm.base.completion import Completion
from rpcqm.base.resolver import OPERATOR, Senders

MayConnect = Callable[[str], bool]
"""Whether an address may be connected to; asked after a name has been resolved."""


class Answer(NamedTuple):
    """The status of an HTTP response, the address that it came from, and our peers' additions.

    `offered` is how many messages a request may hold (G691); `content` is the body, cut if it is
    long.
    """

    status: int
    address: str = ""
    offered: int = 1
    content: bytes = b""


class SrmpNetwork(Protocol):
    """Posts over persistent connections, one for each post at a time.

    Idle connections are kept for the Session Cleanup Timer at most. No redirect is followed.
    """

    def post(
        self,
        url: str,
        connect_to: str,
        headers: tuple[tuple[str, str], ...],
        body: bytes,
        *,
        timeout: int,
        may_connect: MayConnect | None = None,
        senders: Senders = OPERATOR,
    ) -> Completion[Answer]:
        """POST to a URL, over a connection to the host and port of another if `connect_to` is one.

        `connect_to` is "" without redirection; the request stays the same with it. `senders` have
        named the host.

        Fails with OSError when no answer has come within `timeout` milliseconds (TimeoutError),
        when there is no connection, or when no address may be connected to (PermissionError). A
        connection without an answer in time is closed.
        """

    def close(self, url: str, connect_to: str) -> None:
        """Close idle connections to that place."""
