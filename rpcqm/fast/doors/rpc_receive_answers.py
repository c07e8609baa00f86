"""Answers of rpc_ACReceiveMessageEx, by the shape of the request and the kind of message.

`_received_buffer.fill` stays the only definition of a message in a buffer. Messages of one kind
have packets of one form with the same constants (`fast.formats.packet_form`).
"""

from functools import partial

from rpcqm.adm.message import Message
from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult
from rpcqm.codec.interface import NullPointer, OperationCodec
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.codec.types.qmcomm import (
    CACTransferBufferV1,
    CACTransferBufferV1_Receive,
    CACTransferBufferV2,
)
from rpcqm.codec.types.qmcomm2 import rpc_ACReceiveMessageExResponse
from rpcqm.fast.formats.packet_form import Constants, Contents, PacketForm, PacketForms, Values
from rpcqm.fast.formats.received_response import (
    Received,
    ReceivedResponse,
    Rooms,
    UnplacedError,
    kind_of_label,
)
from rpcqm.fast.learned import Budget, Learned
from rpcqm.interfaces._received_buffer import fill

MOST_FORMS = 8
"""Forms of packets that those which clients receive are tried with.

The forms of the messages that are read are few.

Bound `rpc.receive_template_forms` [forms]: the oldest is forgotten, and such messages are answered
with one by one.
"""
MOST_KINDS = 64
"""Kinds of messages whose answers to one shape of requests are known.

Each takes about a kilobyte.

Bound `rpc.receive_templates` [templates]: the one that was used longest ago is forgotten.
"""
LEARNED_AT_ONCE = 32
"""Templates of answers that are made in one moment.

Bound `rpc.receive_templates_learned_at_once` [templates]: requests are carried out one by one.
"""
LEARNED_PER_SECOND = 4
"""Templates of answers that are made in a second.

Learning costs as much as some twenty requests, and requests that never repeat gain little by it.

Bound `rpc.receive_templates_learned` [templates]: requests are carried out one by one.
"""

_Kind = tuple[Constants, int]
"""The constants of messages whose answers one template fills in; the last is that of the label."""


class KnownAnswers:
    """The answers to requests of one shape, by the kinds of messages; None where no template holds.

    Each comes with the time to be received of its messages.
    """

    __slots__ = ("_codec", "by_kind")

    def __init__(self, codec: OperationCodec) -> None:
        self._codec = codec
        self.by_kind: Learned[_Kind, tuple[ReceivedResponse | None, int]] = Learned(MOST_KINDS)

    def learn(self, kind: _Kind, form: PacketForm, packet: bytes, stub: bytes) -> None:
        """Have the careful path answer a request with other messages of a kind."""
        limit = Message(packet).attributes.time_to_be_received
        careful = partial(self._careful, form, packet, limit, stub)
        rooms = _rooms(self._codec.request.decode(stub).ptb.old)
        made = ReceivedResponse.learn(careful, rooms, form.contents(packet).label)
        self.by_kind.keep(kind, (made, limit))

    def _careful(
        self, form: PacketForm, packet: bytes, limit: int, stub: bytes, answer: Received
    ) -> bytes:
        """The answer with a message like one; raises UnplacedError where it is refused."""
        buffer: CACTransferBufferV2 = self._codec.request.decode(stub).ptb
        receive = buffer.old.u.value
        assert isinstance(receive, CACTransferBufferV1_Receive)
        receive.RequestTimeout, receive.Action = answer.timeout, answer.action
        sent_and_number = answer.sent.to_bytes(4, "little") + answer.number.to_bytes(4, "little")
        contents = Contents(
            answer.correlation,
            answer.body_type,
            answer.application_tag,
            answer.label,
            answer.extension,
            answer.body,
        )
        message = Message(form.packet_with(packet, sent_and_number, contents, len(answer.body)))
        message.arrival_time = answer.arrival * 1000
        status = fill(buffer, message, answer.sent + limit - answer.left)
        if status is not HResult.MQ_OK:
            raise UnplacedError
        return self._codec.response.encode(rpc_ACReceiveMessageExResponse(ptb=buffer, result=0))


def _rooms(old: CACTransferBufferV1) -> Rooms:
    body = old.ulBodyBufferSizeInBytes if _is_there(old.ppBody) else None
    extension = old.ulMsgExtensionBufferInBytes if _is_there(old.ppMsgExtension) else None
    return Rooms(body, extension, _room_of_label(old) if _is_there(old.ppTitle) else None)


def _room_of_label(old: CACTransferBufferV1) -> int:
    """The characters of a label that travel, or fewer if the request says so."""
    told = old.pulTitleBufferSizeInWCHARs
    size = old.ulTitleBufferSizeInWCHARs
    return size if told is None else min(size, told)


def _is_there(pointer: object) -> bool:
    return pointer is not None and not isinstance(pointer, NullPointer)


class ReceiveTemplates:
    """The forms of messages in queues, and their answers, for all clients."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._forms = PacketForms(MOST_FORMS)
        self._budget = Budget(clock, LEARNED_AT_ONCE, LEARNED_PER_SECOND)

    def answer(
        self, known: KnownAnswers, stub: bytes, message: Message, timeout: int, action: int
    ) -> bytes | None:
        """The answer to a request of a shape; None for the careful path. Raises DecodeError."""
        packet = message.packet
        for form in self._forms.known:
            values = form.read(packet, 0)
            if values is None:
                continue
            contents = form.contents(packet)
            found = known.by_kind.find((values[0], kind_of_label(contents.label)))
            if found is not None:
                arrival = message.arrival_time // 1000
                return self._filled(found, (timeout, action, arrival), values, contents)
        if self._budget.take():
            self._learn(known, stub, message)
        return None

    def _filled(
        self,
        known: tuple[ReceivedResponse | None, int],
        others: tuple[int, int, int],
        values: Values,
        contents: Contents,
    ) -> bytes | None:
        template, limit = known
        left = 0
        if limit != INFINITE:
            left = max(0, values.sent_time + limit - self._clock.now() // 1000)
        if template is None or left > INFINITE:
            return None
        correlation, body_type, application_tag, label, extension, body = contents
        answer = Received(
            *others,
            values.sent_time,
            int.from_bytes(values.message_id, "little"),
            left,
            body_type,
            application_tag,
            correlation,
            label,
            extension,
            body,
        )
        return template.filled(answer) if template.rooms.hold(answer) else None

    def _learn(self, known: KnownAnswers, stub: bytes, message: Message) -> None:
        """Learn the form of a message, and the answer to a request that gets such messages."""
        packet = message.packet
        found = self._forms.learn(message.attributes, packet, plain=True)
        if found is not None:
            form, values = found
            label = form.contents(packet).label
            known.learn((values.constants, kind_of_label(label)), form, packet, stub)
