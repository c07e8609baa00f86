"""A request and its answer, as those see them who know no sockets."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Channel(Protocol):
    """A connection of TLS, as those know it who bind a proof to it."""

    @property
    def end_point(self) -> bytes:
        """`tls-server-end-point` (RFC 5929, 4)."""
        ...


@dataclass(slots=True)  # not frozen, which takes longer to make
class HttpRequest:
    """A request that has come wholly, and stays as it is; names of headers are as written.

    `peer` is the address that it came from, `secure` whether it came by TLS, `port` the one that it
    came to; `channel` is there with TLS.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    peer: str = ""
    secure: bool = False
    port: int = 0
    channel: Channel | None = None
    twice: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Names of headers, in lower case, that are there more than once; of use after `fields`."""
    _fields: dict[str, str] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def fields(self) -> Mapping[str, str]:
        """The first header of each name, by that in lower case."""
        found = self._fields
        if found is None:
            found = self._fields = {name.lower(): value for name, value in self.headers}
            if len(found) < len(self.headers):
                self._take_first(found)
        return found

    def _take_first(self, found: dict[str, str]) -> None:
        """Let `found` have the first header of each name, and note which are there again."""
        met: set[str] = set()
        for name, value in self.headers:
            lower = name.lower()
            if lower in met:
                self.twice.add(lower)
            else:
                met.add(lower)
                found[lower] = value

    def header(self, name: str) -> str | None:
        """The first header of that name, in whatever case."""
        return self.fields.get(name.lower())


class StreamCutError(Exception):
    """A body cannot go on: its connection is cut, so that nobody takes what came for all of it."""


class HttpStream(Protocol):
    """A body that comes piece by piece, as long as the client and the server want it."""

    async def next(self) -> bytes | None:
        """The next octets; None at the end, also when it has been closed meanwhile.

        Raises StreamCutError.
        """
        ...

    def close(self) -> None:
        """Nobody wants more; called once or twice, also if it was never asked for anything."""
        ...


@dataclass(slots=True)  # as above
class HttpResponse:
    """What is answered; `stream` comes instead of a body.

    One that comes `often`, with the same headers, has no body or is a success with one.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    stream: HttpStream | None = None
    often: bool = False


HttpHandler = Callable[[HttpRequest], Awaitable[HttpResponse]]
