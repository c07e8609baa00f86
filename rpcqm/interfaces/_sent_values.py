"""The values of a request that sends a message, and the message that is made of them."""

from typing import Any, NamedTuple

from rpcqm.codec.interface import NULL
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import DEFAULT_PRIORITY
from rpcqm.codec.packet.sent_template import SentTemplate, label_octets
from rpcqm.interfaces._sent_buffer import MAXIMUM_PRIORITY, time_to_reach_queue
from rpcqm.qm.timers import expiry_at
from rpcqm.qm.turn import Kind
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import ContextHandle
from rpcqm.rpc.interface_registry import CarefulPath
from rpcqm.rpc.templated import TemplatedCall

_NOTHING = bytes(20)


SentValues = tuple[int, int, int, int, bytes, bytes, bytes]
"""The holes of a request, as the careful path would understand them: time to reach the queue, time
to be received, priority, application tag, correlation, label, body."""

_GONE: SentValues = (0, 0, 0, 0, b"", b"", b"")


class SendTemplate(NamedTuple):
    """What the careful path has made of a request."""

    kind: Kind
    packet: SentTemplate
    administration: FormatName | None
    """Where acknowledgements go, if any are asked for."""
    before_number: bytes
    behind_number: bytes = b""
    """The response around the number of the message; without a number if this is empty."""

    def response(self, ordinal: int) -> bytes:
        if not self.behind_number:
            return self.before_number
        return self.before_number + ordinal.to_bytes(4, "little") + self.behind_number


class TemplatedSend(TemplatedCall):
    """A message on its way into a queue, and the call that brings it (`qm.turn`)."""

    __slots__ = ("_ordinal", "_template", "_values", "priority", "size")

    def __init__(
        self,
        call: Call,
        path: CarefulPath,
        handle: ContextHandle,
        template: SendTemplate,
        values: SentValues,
    ) -> None:
        super().__init__(call, path, handle)
        self._template, self._values, self._ordinal = template, values, 0
        self.priority, self.size = values[2], len(values[6])

    beside = 0
    changes = None

    @property
    def administration(self) -> FormatName | None:
        return self._template.administration

    def compose(self, ordinal: int, now: int) -> bytes:
        """Its packet."""
        self._ordinal = ordinal
        values = self._values
        reach = time_to_reach_queue(values[0], now)
        return self._template.packet.filled(ordinal, now, reach, *values[1:])

    def expiry(self, now: int) -> int:
        """When it expires, if it is sent now."""
        return expiry_at(now // 1000, self._values[1], now)

    def accepted(self) -> None:
        """Keep nothing that is as long as the body: it waits for its sync in the store."""
        self.call.stub_data, self._values = b"", _GONE

    @property
    def response(self) -> bytes:
        """The answer."""
        return self._template.response(self._ordinal)

    def stored(self) -> None:
        """Answer the call."""
        self.answer(self._template.response(self._ordinal))


def values_of(holes: tuple[Any, ...]) -> SentValues | None:
    """The holes of a request as the careful path understands them; None where it would not."""
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
