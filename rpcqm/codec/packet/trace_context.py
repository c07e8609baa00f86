"""The context of a trace: `traceparent` of W3C Trace Context, in a header and in an extension.

The extension of a message belongs to applications. A context is in it only if it is nothing else:
`traceparent: ` and the 55 characters of version 00, in ASCII (G303). What is anything else is no
context, and nobody is told of it.
"""

import re
from typing import NamedTuple

LONGEST_HEADER = 512
"""A header `traceparent` that is looked at.

Later versions may have more than version 00.

Bound `traces.traceparent` [characters]: it is no context of a trace, and left out.
"""

_PREFIX = b"traceparent: "
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
EXTENSION_SIZE = len(_PREFIX) + 55


class TraceContext(NamedTuple):
    """Which span of which trace a message belongs to, as its program says."""

    trace: int
    span: int
    flags: int

    def __str__(self) -> str:
        return f"00-{self.trace:032x}-{self.span:016x}-{self.flags:02x}"


def parse_traceparent(text: str) -> TraceContext | None:
    """The trace context in a header `traceparent`, or None if the value is malformed."""
    found = _FORM.fullmatch(text) if len(text) <= LONGEST_HEADER else None
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not int(trace, 16) or not int(span, 16):
        return None
    return TraceContext(int(trace, 16), int(span, 16), int(flags, 16))


def extension_of(context: TraceContext) -> bytes:
    """The extension that carries a context."""
    return _PREFIX + str(context).encode()


def context_in(extension: bytes) -> TraceContext | None:
    """The context that an extension carries; None for any other extension."""
    if len(extension) != EXTENSION_SIZE or not extension.startswith(_PREFIX):
        return None
    text = extension[len(_PREFIX) :]
    if not text.startswith(b"00-") or not text.isascii():
        return None
    return parse_traceparent(text.decode("ascii"))
