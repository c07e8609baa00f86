"""The values of a request that sends a message, and the careful path's result for one."""

from typing import Any, Final, NamedTuple

from rpcqm.codec.interface import NULL
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import DEFAULT_PRIORITY
from rpcqm.fast.formats.sent_packet import SentTemplate, label_octets
from rpcqm.fast.requests import Kind
from rpcqm.interfaces._sent_buffer import MAXIMUM_PRIORITY

_NOTHING = bytes(20)


SentValues = tuple[int, int, int, int, bytes, bytes, bytes]
"""The holes of a request, decoded as on the careful path: time to reach the queue, time to be
received, priority, application tag, correlation, label, body."""
TIME_TO_BE_RECEIVED: Final = 1
PRIORITY: Final = 2
BODY: Final = 6
"""Places of some of them."""


class SendTemplate(NamedTuple):
    """The careful path's result for a request."""

    kind: Kind
    packet: SentTemplate
    administration: FormatName | None
    """The queue for acknowledgements, if the request asks for any."""
    before_number: bytes
    behind_number: bytes = b""
    """The response around the number of the message; empty if the response has no number."""

    def response(self, ordinal: int) -> bytes:
        if not self.behind_number:
            return self.before_number
        return self.before_number + ordinal.to_bytes(4, "little") + self.behind_number


def values_of(holes: tuple[Any, ...]) -> SentValues | None:
    """The holes of a request, decoded; None where the careful path would refuse them."""
    _, _, _, reach, received, priority, tag, correlation, body, title = holes
    if priority is None:
        priority = DEFAULT_PRIORITY
    label = b"" if title is None or title is NULL else label_octets(title)
    if priority > MAXIMUM_PRIORITY or label is None:
        return None
    if correlation is None or correlation is NULL:
        correlation = _NOTHING
    if body is None or body is NULL:
        body = b""
    return reach, received, priority, tag or 0, correlation, label, body
