"""Targets of HTTP in captures: both sides of a connection, cut anywhere."""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

from rpcqm.capture.conversation.http import (
    MAXIMUM_HEAD,
    MAXIMUM_PENDING,
    HttpConversation,
    HttpMessage,
)
from tests.fuzz.target import Run, Target, Violation
from tests.support.srmp.srmp_capture import BAD, OK, PAGE, PAIRS, RECEIPTS, STREAM, sample

BETWEEN = b"\n--- the server ---\n"
"""What stands in an input between the octets of the client and those of the server."""
_CHUNKED = (
    b"POST /q HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\nbody\r\n0\r\nX: y\r\n\r\n"
)
_ENDLESS = b"HTTP/1.1 200 OK\r\n\r\nto the end"


class _Heard:
    """A conversation, and what it told."""

    def __init__(self) -> None:
        self.told: list[tuple[Hashable, ...]] = []
        self.asked = 0
        self.complaints = 0
        self.made = HttpConversation(self._wanted, self._tell, self._complain)

    def _wanted(self, request: HttpMessage) -> bool:
        self.asked += 1
        return True

    def _tell(self, request: HttpMessage, answer: HttpMessage | None) -> None:
        told = answer and (answer.first, bytes(answer.body), answer.whole)
        self.told.append((request.first, bytes(request.body), request.whole, told))

    def _complain(self, offset: int, reason: str) -> None:
        self.complaints += 1

    def feed(self, client: bytes, server: bytes, size: int) -> "_Heard":
        for stream, data in ((self.made.from_client, client), (self.made.from_server, server)):
            for at in range(0, len(data), size):
                stream.take(data[at : at + size], at, at)
                if len(stream._buffer) > MAXIMUM_HEAD + size:
                    raise Violation("more is held than a head may have")
                if len(self.made._pending) > MAXIMUM_PENDING:
                    raise Violation("more requests are held than may be")
        self.made.finish()
        if len(self.told) != self.asked:
            raise Violation(f"{self.asked} requests, of which {len(self.told)} were told")
        return self


@contextmanager
def _connections() -> Iterator[Run]:
    """Whole and in pieces it must be the same, unless it is no HTTP."""

    def run(octets: bytes) -> Hashable:
        size = 1 + octets[0] if octets else 1
        client, _, server = octets[1:].partition(BETWEEN)
        whole = _Heard().feed(client, server, len(octets) + 1)
        pieces = _Heard().feed(client, server, size)
        if not (whole.complaints or pieces.complaints) and whole.told != pieces.told:
            raise Violation("in pieces it is something else")
        return len(whole.told), min(whole.complaints, 4)

    yield run


def _connection_seeds() -> Iterable[bytes]:
    for number, names in enumerate((PAIRS, STREAM, RECEIPTS)):
        client = b"".join(map(sample, names))
        yield bytes([number * 90]) + client + BETWEEN + OK * len(names)
    page = b"GET / HTTP/1.0\r\n\r\n" + b"HEAD / HTTP/1.1\r\n\r\n"
    yield b"\x07" + page + sample("4.1_simple") + BETWEEN + PAGE + OK + BAD
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    yield b"\x1f" + _CHUNKED * 2 + BETWEEN + interim + OK + _ENDLESS
    yield b"\x03" + b"CONNECT h:80 HTTP/1.1\r\n\r\n\0\1" + BETWEEN + OK + b"\0\1\2"


TARGETS = (Target("http-capture", _connection_seeds, _connections, share=10),)
