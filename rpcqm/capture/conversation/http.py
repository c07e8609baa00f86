"""The requests and answers of one connection that carries HTTP/1.1 (RFC 9112).

What is no HTTP, or was not captured, costs the messages that it cuts; whatever octets come, nothing
is raised, and no more is held than the bounds below.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

MAXIMUM_HEAD = 1 << 16
"""Octets of a head: servers take a fraction of it."""
MAXIMUM_BODY = 1 << 23
"""Octets of a body that are kept: a message of 4 MiB in the largest envelope has room."""
MAXIMUM_PENDING = 1024
"""Requests on their way over one connection; the oldest is given up for a further one."""
_LONGEST_CHUNK_LINE = 1024
_LENGTH = re.compile(r"[0-9]{1,18}")
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_REQUEST_LINE = re.compile(rb"[A-Z]{3,16} [^\s]{1,8192} HTTP/1\.[01]\r\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] [0-9]{3}[ \r]")
_TAIL = 256
"""Octets in which a first line may have begun while one is looked for."""
_METHODS = (b"CONNECT ", b"DELETE ", b"GET ", b"HEAD ", b"OPTIONS ", b"PATCH ", b"POST ", b"PUT ")
_VERSION = b"HTTP/1."


def begins_http(data: bytes) -> bool:
    """Whether a request or an answer plausibly begins here."""
    return data.startswith((*_METHODS, _VERSION))


def is_answer(data: bytes) -> bool:
    """Whether it is an answer that begins here."""
    return data.startswith(_VERSION)


@dataclass(slots=True, eq=False)
class HttpMessage:
    """A request or an answer; `first` are the words of its first line.

    `head` are the octets down to the empty line. `size` is what was on the wire, `body` what it
    carried, without chunks; times are nanoseconds since 1970, `offset` is the record in which it
    begins. `whole` is false, and `note` says why, if the body is not all there.
    """

    first: tuple[str, str, str]
    headers: tuple[tuple[str, str], ...]
    head: bytes
    began: int
    offset: int
    ended: int = 0
    size: int = 0
    body: bytearray = field(default_factory=bytearray)
    whole: bool = True
    note: str = ""
    wanted: bool = True

    @property
    def status(self) -> int:
        """The status of an answer."""
        return int(self.first[1])

    def values(self, name: str) -> list[str]:
        """What headers of that name say, in whatever case, element by element."""
        found = (value for each, value in self.headers if each.lower() == name)
        return [part.strip() for value in found for part in value.split(",")]

    def odd(self, why: str) -> None:
        """Something is wrong with it; the first such thing is told."""
        self.note = self.note or why

    def damaged(self, why: str) -> None:
        """Its body is not all there."""
        self.whole = False
        self.odd(why)


def read_head(octets: bytes, answer: bool, time: int, offset: int) -> HttpMessage | None:
    """The head of a message, without the empty line; None if the octets are no HTTP head."""
    lines = octets.decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    words += [""] * (3 - len(words))
    version, number = (words[0], words[1]) if answer else (words[2], "200")
    if not version.startswith("HTTP/1.") or not re.fullmatch("[0-9]{3}", number):
        return None
    headers: list[tuple[str, str]] = []
    for line in lines[1:]:
        if line[:1] in (" ", "\t") and headers:
            # A header that goes on in the next line: the samples of [MC-MQSRM] 4 have it.
            name, value = headers.pop()
            headers.append((name, f"{value} {line.strip()}"))
            continue
        name, _, value = line.partition(":")
        headers.append((name, value.strip(" \t")))
    size = len(octets) + 4
    return HttpMessage(
        (words[0], words[1], words[2]), tuple(headers), octets, time, offset, 0, size
    )


class HttpStream:
    """Cuts what one side sends into messages."""

    def __init__(self, owner: "HttpConversation", answers: bool) -> None:
        self._owner = owner
        self._answers = answers
        self._line = _STATUS_LINE if answers else _REQUEST_LINE
        self._buffer = bytearray()
        self._state: Callable[[], bool] = self._head
        self._message: HttpMessage | None = None
        self._began: tuple[int, int] | None = None
        self._searched = 0
        self._remaining = 0
        self._trailers = 0
        self._time = self._offset = 0

    def take(self, data: bytes, time: int, offset: int) -> None:
        """Take the next octets."""
        self._buffer += data
        self._time, self._offset = time, offset
        while self._buffer and self._state():
            pass

    def gap(self, count: int, time: int, offset: int) -> None:
        """Octets were not captured: they may be a body's, so that what follows is clear."""
        self._time, self._offset = time, offset
        if self._state == self._nothing:
            return
        message = self._message
        counted = self._state in (self._counted, self._chunk) and count <= self._remaining
        if message is None or not (counted or self._state == self._until_close):
            self._lose(f"{count} octets were not captured")
            return
        message.damaged(f"{count} octets of its body were not captured")
        if counted:
            self._skip(count)

    def finish(self) -> None:
        """The connection is over."""
        message = self._message
        if message is None:
            return
        if self._state != self._until_close:
            message.damaged("the connection ended within it")
        self._end(message)

    def stop(self) -> None:
        """What follows is no HTTP."""
        self._buffer.clear()
        self._message = None
        self._state = self._nothing

    # Each state takes from the buffer what it can, and says whether to go on.

    def _head(self) -> bool:
        if self._began is None and not self._begin():
            return False
        end = self._buffer.find(b"\r\n\r\n", self._searched)
        if max(end, len(self._buffer) if end < 0 else 0) > MAXIMUM_HEAD:
            # Its first line would be found again.
            del self._buffer[:MAXIMUM_HEAD]
            return self._lose(f"a head of more than {MAXIMUM_HEAD} octets")
        if end < 0:
            self._searched = max(len(self._buffer) - 3, 0)
            return False
        assert self._began is not None
        found = read_head(bytes(self._buffer[:end]), self._answers, *self._began)
        del self._buffer[: end + 4]
        self._began, self._searched = None, 0
        if found is None:
            return self._lose("a first line that is none of HTTP/1.1")
        return self._headed(found)

    def _begin(self) -> bool:
        """Pass over empty lines before a message (RFC 9112 2.2)."""
        blank = len(self._buffer) - len(self._buffer.lstrip(b"\r\n"))
        del self._buffer[:blank]
        if not self._buffer:
            return False
        self._began = self._time, self._offset
        return True

    def _headed(self, message: HttpMessage) -> bool:
        self._message = message
        bodyless = self._owner.began(message, self._answers)
        if self._state == self._nothing:
            return False
        self._state = self._framing(message, bodyless)
        if self._state == self._search:
            self._give_up(message.note)
        elif self._state == self._counted and not self._remaining:
            self._end(message)
        return True

    def _framing(self, message: HttpMessage, bodyless: bool) -> Callable[[], bool]:
        """How its end is found (RFC 9112 6.3)."""
        self._remaining = 0
        if bodyless:
            return self._counted
        codings, lengths = message.values("transfer-encoding"), message.values("content-length")
        if codings:
            if lengths:
                message.odd("it has both a Content-Length and a Transfer-Encoding")
            if codings[-1].lower() == "chunked":
                return self._chunk_line
            return self._endless(message, "its Transfer-Encoding does not tell its end")
        if not lengths:
            return self._until_close if self._answers else self._counted
        if len(set(lengths)) > 1:
            return self._endless(message, "its Content-Lengths contradict each other")
        if not _LENGTH.fullmatch(lengths[0]):
            return self._endless(message, "its Content-Length is no number")
        self._remaining = int(lengths[0])
        return self._counted

    def _endless(self, message: HttpMessage, why: str) -> Callable[[], bool]:
        message.damaged(why)
        return self._until_close if self._answers else self._search

    def _counted(self) -> bool:
        self._take_body()
        if not self._remaining and self._message is not None:
            self._end(self._message)
        return True

    def _chunk_line(self) -> bool:
        end = self._buffer.find(b"\r\n", 0, _LONGEST_CHUNK_LINE)
        if end < 0:
            endless = len(self._buffer) >= _LONGEST_CHUNK_LINE
            return endless and self._lose("a chunk's size that does not end")
        found = _CHUNK.fullmatch(self._cut(end + 2)[:-2])
        if found is None:
            return self._lose("a chunk without a size")
        self._remaining = int(found[1], 16)
        self._trailers = 0
        self._state = self._chunk if self._remaining else self._trailer
        return True

    def _chunk(self) -> bool:
        self._take_body()
        if not self._remaining:
            self._state = self._chunk_end
        return True

    def _chunk_end(self) -> bool:
        if len(self._buffer) < 2:
            return False
        if self._cut(2) != b"\r\n":
            return self._lose("a chunk that is longer than its size")
        self._state = self._chunk_line
        return True

    def _trailer(self) -> bool:
        end = self._buffer.find(b"\r\n", 0, MAXIMUM_HEAD)
        size = len(self._buffer) if end < 0 else end
        if self._trailers + size >= MAXIMUM_HEAD:
            return self._lose("trailers without end")
        if end < 0:
            return False
        self._trailers += end + 2
        if not self._cut(end + 2)[:-2] and self._message is not None:
            self._end(self._message)
        return True

    def _until_close(self) -> bool:
        self._remaining = len(self._buffer)
        self._take_body()
        return False

    def _search(self) -> bool:
        """Look for the next first line."""
        found = self._line.search(self._buffer)
        if found is None:
            del self._buffer[:-_TAIL]
            return False
        del self._buffer[: found.start()]
        self._state = self._head
        return True

    def _nothing(self) -> bool:
        self._buffer.clear()
        return False

    def _cut(self, count: int) -> bytes:
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        if self._message is not None:
            self._message.size += count
        return found

    def _take_body(self) -> None:
        count = min(self._remaining, len(self._buffer))
        self._remaining -= count
        message = self._message
        if message is not None and message.wanted and message.whole:
            if len(message.body) + count > MAXIMUM_BODY:
                message.damaged(f"its body is longer than {MAXIMUM_BODY} octets")
                message.body.clear()
            else:
                message.body += self._buffer[:count]
        if message is not None:
            message.size += count
        del self._buffer[:count]

    def _skip(self, count: int) -> None:
        """Go on behind octets of a body that are not there."""
        self._remaining -= count
        if self._remaining or self._message is None:
            return
        if self._state == self._chunk:
            self._state = self._chunk_end
        else:
            self._end(self._message)

    def _end(self, message: HttpMessage) -> None:
        self._message, self._state = None, self._head
        message.ended = self._time
        self._owner.ended(message, self._answers)

    def _lose(self, why: str) -> bool:
        """From here on it is not clear where a message begins."""
        self._state, self._began, self._searched = self._search, None, 0
        self._give_up(why)
        return bool(self._buffer)

    def _give_up(self, why: str) -> None:
        message, self._message = self._message, None
        if message is not None:
            message.damaged(why)
            message.ended = self._time
            self._owner.ended(message, self._answers)
        self._owner.lost(self._answers, why, self._offset, message is not None)


@dataclass(slots=True, eq=False)
class _Pair:
    """A request on its way, and its answer as far as it has come."""

    request: HttpMessage
    asked: bool = False
    answer: HttpMessage | None = None
    answered: bool = False


Wanted = Callable[[HttpMessage], bool]
"""Whether a request is wanted, by its head; bodies of others are not kept."""
Told = Callable[[HttpMessage, HttpMessage | None], None]
"""A wanted request with its answer; None if it was not captured, and the request's note says so."""
Complain = Callable[[int, str], None]
"""What is wrong with the connection: the offset of the record, and the reason."""


class HttpConversation:
    """Both sides of one connection: answers come in the order of their requests."""

    def __init__(self, wanted: Wanted, tell: Told, complain: Complain) -> None:
        self._wanted = wanted
        self._tell = tell
        self._complain = complain
        self._pending: deque[_Pair] = deque()
        self._answering: _Pair | None = None
        self._pipelined = False
        self._unpaired = False
        self.from_client = HttpStream(self, False)
        self.from_server = HttpStream(self, True)

    def finish(self) -> None:
        """The connection is over; requests without an answer are told as such."""
        self.from_client.finish()
        self.from_server.finish()
        while self._pending:
            self._hand_on(self._pending.popleft())

    # What the streams tell.

    def began(self, message: HttpMessage, answer: bool) -> bool:
        """A head has come; returns whether no body follows, whatever it says."""
        if answer:
            return self._answer_began(message)
        message.wanted = self._wanted(message)
        if self._pending:
            self._pipelined = True
        self._pending.append(_Pair(message))
        if len(self._pending) > MAXIMUM_PENDING:
            self._complain(message.offset, f"more than {MAXIMUM_PENDING} requests without answer")
            self._unpaired = True
            self._hand_on(self._pending.popleft())
        return False

    def _answer_began(self, message: HttpMessage) -> bool:
        pair = next((each for each in self._pending if each.answer is None), None)
        if 100 <= message.status < 200 and message.status != 101:
            # An answer to the same request is still to come.
            message.wanted = False
            return True
        if pair is None or self._unpaired:
            message.wanted = False
            if not self._unpaired:
                self._complain(message.offset, "an answer whose request was not captured")
            return message.status in (204, 304)
        self._answering = pair
        pair.answer, message.wanted = message, pair.request.wanted
        method = pair.request.first[0]
        if message.status == 101 or (method == "CONNECT" and message.status < 300):
            # What follows is another protocol, and what it is nobody tells.
            self.from_client.stop()
            self.from_server.stop()
            return True
        return method == "HEAD" or message.status in (204, 304)

    def ended(self, message: HttpMessage, answer: bool) -> None:
        """A message has come, as much of it as there is."""
        if not answer and self._pending and self._pending[-1].request is message:
            self._pending[-1].asked = True
        elif self._answering is not None and self._answering.answer is message:
            self._answering.answered = True
        while self._pending and self._pending[0].asked and self._is_over(self._pending[0]):
            self._hand_on(self._pending.popleft())

    def _is_over(self, pair: _Pair) -> bool:
        return pair.answered or self._unpaired

    def lost(self, answers: bool, why: str, offset: int, begun: bool) -> None:
        """Where the next message of one side begins is not clear; `begun` if one was cut."""
        side = "server" if answers else "client"
        self._complain(offset, f"octets of the {side} that are no HTTP: {why}")
        if self._pipelined:
            # Nobody can tell which answers belong to which requests any more.
            self._unpaired = True
        elif answers and not begun:
            while self._pending and self._pending[0].asked:
                self._hand_on(self._pending.popleft())

    def _hand_on(self, pair: _Pair) -> None:
        answer = pair.answer
        if not pair.asked:
            pair.request.damaged("it was not captured to its end")
        if answer is None:
            pair.request.odd("its answer was not captured")
        if pair.request.wanted:
            self._tell(pair.request, answer)
