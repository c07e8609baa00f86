"""What carries requests to other queue managers: the edge implements it, tests simulate it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from rpcqm.base.completion import Completion
from rpcqm.base.resolver import OPERATOR, Senders

MayConnect = Callable[[str], bool]
"""Whether an address, after its name has been resolved, may be connected to."""


class Answer(NamedTuple):
    """The status of an HTTP response, the address that it came from, and what peers of ours add.

    `offered` is how many messages a request may hold (G691); `content` is the body, cut where it is
    long.
    """

    status: int
    address: str = ""
    offered: int = 1
    content: bytes = b""


class SrmpNetwork(Protocol):
    """Posts over persistent connections; what is posted at once needs as many of them.

    Connections are kept as long as somebody may use them again, but not longer than the Session
    Cleanup Timer. No redirect is followed.
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

        `connect_to` is "" where there is no redirection; the request stays the same with it.
        `senders` have named the host. Fails
        with OSError when no answer has come within `timeout` milliseconds (TimeoutError), when
        there is no connection, or when no address may be connected to (PermissionError). What has
        not answered in time is closed.
        """

    def close(self, url: str, connect_to: str) -> None:
        """Close the connections to that place that nobody uses at the moment."""
