"""The responses of a server."""

from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time

if TYPE_CHECKING:
    from rpcqm.http.connection import HttpConnection


class _Bare(web.StreamResponse):
    """A response without headers about the program."""

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        self.headers.pop(hdrs.SERVER, None)

    async def _write_headers(self) -> None:
        """Write our own HTTP version, whatever the request's was."""
        assert self._payload_writer is not None
        line = f"HTTP/1.1 {self.status} {self.reason}"
        await self._payload_writer.write_headers(line, self.headers)


class StreamedAnswer(_Bare):
    """A response whose body comes piece by piece."""

    def __init__(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        super().__init__(status=status, headers=headers)


class HeadedAnswer(web.StreamResponse):
    """A response with a prepared head, written as one piece.

    It answers a request of HTTP/1.1 whose connection goes on, as `Answer` would. `head` ends before
    the length, or before the date where there is no body.
    """

    def __init__(self, head: bytes, body: bytes) -> None:
        # The constructor of the base class is not called: it prepares attributes that nobody reads.
        self._head, self._whole = head, body

    @property
    def keep_alive(self) -> bool:
        """The connection goes on."""
        return True

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Remember the writer."""
        self._to = request.writer
        return self._to

    async def write_eof(self, data: bytes = b"") -> None:
        """Send all of it."""
        head, body, date = self._head, self._whole, rfc822_formatted_time().encode("ascii")
        if body:
            await self._to.write(_WITH_BODY % (head, len(body), date, body))
        else:
            await self._to.write(_WITHOUT_BODY % (head, date))


_WITH_BODY = b"%bContent-Length: %d\r\nDate: %b\r\n\r\n%b"
_WITHOUT_BODY = b"%bDate: %b\r\n\r\n"


def head_of(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    """The head of a `HeadedAnswer`; the headers come from the program itself."""
    lines = (f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{''.join(lines)}".encode("ascii")


class Answer(_Bare, web.Response):
    """A response whose body is complete.

    If it `lingers`, its connection ends after the octets that still come have been read away.
    """

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        headers: tuple[tuple[str, str], ...] = (),
        lingers: "HttpConnection | None" = None,
    ) -> None:
        web.Response.__init__(self, status=status, body=body, headers=headers)
        self._lingers = lingers
        if lingers is not None:
            self.force_close()

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        if self._lingers is not None:
            self.headers[hdrs.CONNECTION] = "close"

    async def write_eof(self, data: bytes = b"") -> None:
        """Send all of it."""
        await super().write_eof(data)
        if self._lingers is not None:
            await self._lingers.linger()
