"""What is sent back."""

from typing import TYPE_CHECKING

from aiohttp import hdrs, web

if TYPE_CHECKING:
    from rpcqm.http.connection import HttpConnection


class _Bare(web.StreamResponse):
    """A response that says nothing about the program."""

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        self.headers.pop(hdrs.SERVER, None)

    async def _write_headers(self) -> None:
        """Our own version, whatever the request's was: a request of version 2.0 is answered too."""
        assert self._payload_writer is not None
        line = f"HTTP/1.1 {self.status} {self.reason}"
        await self._payload_writer.write_headers(line, self.headers)


class StreamedAnswer(_Bare):
    """A response whose body comes piece by piece."""

    def __init__(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        super().__init__(status=status, headers=headers)


class Answer(_Bare, web.Response):
    """A response that is there as a whole.

    One that `lingers` on a connection ends it, after what still comes has been read away.
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
