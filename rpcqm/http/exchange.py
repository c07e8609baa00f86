"""A request and its answer, for code that knows no sockets."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Channel(Protocol):
    """A TLS connection, for code that binds a proof to it."""

    @property
    def end_point(self) -> bytes:
        """`tls-server-end-point` (RFC 5929, 4)."""
        ...


@dataclass(slots=True)  # not frozen, which takes longer to make
class HttpRequest:
    """A whole request; it does not change, and header names are as written.

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
    """Names of repeated headers in lower case; filled by `fields`."""
    _fields: dict[str, str] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def fields(self) -> Mapping[str, str]:
        """The first header of each name, under the name in lower case."""
        found = self._fields
        if found is None:
            found = self._fields = {name.lower(): value for name, value in self.headers}
            if len(found) < len(self.headers):
                self._take_first(found)
        return found

    def _take_first(self, found: dict[str, str]) -> None:
        """Put the first header of each name into `found`, and note repeated ones."""
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
    """A body cannot go on: its connection is cut, so that nobody takes it for complete."""


class HttpStream(Protocol):
    """A body in pieces that goes on until the client or the server ends it."""

    async def next(self) -> bytes | None:
        """The next octets; None at the end, also when it has been closed meanwhile.

        Raises StreamCutError.
        """
        ...

    def close(self) -> None:
        """End the stream; called once or twice, also before the first `next`."""
        ...


@dataclass(slots=True)  # as above
class HttpResponse:
    """A response; `stream` is a body in pieces, in place of `body`.

    One that comes `often`, with the same headers, is a success with a body, or any status without
    one.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    stream: HttpStream | None = None
    often: bool = False


HttpHandler = Callable[[HttpRequest], Awaitable[HttpResponse]]
