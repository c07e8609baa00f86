"""JSON for programs about received messages, filled into the text of an earlier one.

`shown` and `delivery` of `operations.shapes` stay the only definition of that text. Messages of one
form with the same label, correlation and the like have the same text, but for their numbers, times
and bodies.
"""

import binascii
import functools
from collections.abc import Callable, Mapping
from typing import Any

from rpcqm.api.reading import write_json
from rpcqm.base.clock import Clock
from rpcqm.base.text import iso_time
from rpcqm.codec.bodies.budget import SMALLEST_MEASURED, DecodeBudget
from rpcqm.codec.bodies.described import LONGEST_DECODED, described_body, described_value
from rpcqm.codec.bodies.kinds import BYTES, may_be_document, read_body
from rpcqm.fast.doors.api_leases import TakenMessage
from rpcqm.fast.formats.packet_form import Contents, PacketForms, Values
from rpcqm.fast.learned import Budget, Learned
from rpcqm.operations.messages import Lease, Message
from rpcqm.operations.shapes import delivery, shown

TEXTS = 256
"""Kinds of messages that programs are told of without reading all of them.

Bound `program.received_texts` [texts]: the one that was used longest ago is forgotten.
"""
FORMS = 4
"""Forms that are kept; each text takes about two kilobytes."""
LONGEST_VALUES = 1024
"""Octets of label and extension in kept texts; longer ones seldom repeat."""
LEARNED_AT_ONCE, LEARNED_PER_SECOND = 64, 32
"""Lessons at once and a second: each costs as much as some receives."""

_BEHIND = b',"delivery_count":%d,"lease":"%b","lease_expires":%b}'
_VARYING = {
    "lookup_id": b'"%d"',
    "sent": b"%b",
    "arrived": b"%b",
    "body_size": b"%d",
}
"""The values that are filled in, in this order, with the number of the message behind the first."""
_FROM_BODY = "value_type"
"""The first of the members that depend on the body."""


Answered = Callable[[Lease], None]
"""Begins the time of a lease when its answer leaves."""


def told_carefully(taken: TakenMessage, answered: Answered | None = None) -> bytes:
    """The answer with one message on the careful path."""
    received = taken.received
    told = shown(received.message)
    if answered is not None:
        answered(taken.lease)
    return write_json({"messages": [told | delivery(received)], "next": None})


class ReceivedTexts:
    """The texts of earlier messages, without their own values."""

    def __init__(self, clock: Clock) -> None:
        self._forms = PacketForms(FORMS)
        self._texts: Learned[tuple[object, ...], bytes] = Learned(TEXTS)
        self._budget = Budget(clock, LEARNED_AT_ONCE, LEARNED_PER_SECOND)

    def __len__(self) -> int:
        return len(self._texts)

    def answer(self, taken: TakenMessage, answered: Answered | None = None) -> bytes:
        """The answer with one message."""
        stored = taken.first.stored
        for form in self._forms.known:
            values = form.read(stored, 0)
            if values is None:
                continue
            contents = form.contents(stored)
            key = _key(values, contents)
            text = self._texts.find(key)
            if text is not None:
                return _filled(text, taken, values, contents, answered)
        if self._budget.take():
            self._learn(taken.received.message)
        return told_carefully(taken, answered)

    def _learn(self, message: Message) -> None:
        found = self._forms.learn(message.attributes, message.packet, plain=True)
        if found is None:
            return
        form, values = found
        contents = form.contents(message.packet)
        if len(contents.label) + len(contents.extension) > LONGEST_VALUES:
            return
        told = shown(message)
        if "soap_envelope" in told:
            return
        self._texts.keep(_key(values, contents), _pattern(told))


def _key(values: Values, contents: Contents) -> tuple[object, ...]:
    correlation, body_type, tag, label, extension, _ = contents
    return values.constants, correlation, body_type, tag, label, extension


def _pattern(told: Mapping[str, Any]) -> bytes:
    """The text about a message up to its body, with a place for each value of its own."""
    members = []
    for name, value in told.items():
        if name == _FROM_BODY:
            break
        text = _VARYING.get(name) or write_json(value).replace(b"%", b"%%")
        if name == "id":
            text = text[: text.rindex(b"\\") + 1] + b'%d"'
        members.append(write_json(name) + b":" + text)
    return b'{"messages":[{' + b",".join(members)


def _filled(
    text: bytes,
    taken: TakenMessage,
    values: Values,
    contents: Contents,
    answered: Answered | None,
) -> bytes:
    first, lease = taken
    body = told_body(contents.body, contents.body_type)
    if answered is not None and len(contents.body) >= SMALLEST_MEASURED:
        answered(lease)  # smaller ones take no time
    head = text % (
        first.key,
        int.from_bytes(values.message_id, "little"),
        _moment(values.sent_time),
        _moment(first.arrival / 1000),
        len(contents.body),
    )
    behind = _BEHIND % (
        lease.delivery_count,
        lease.identifier.encode("ascii"),
        _moment(lease.expires / 1000),
    )
    return b"".join((head, body, behind, _END))


_END = b'],"next":null}'


def told_body(body: bytes, body_type: int) -> bytes:
    """The members of `described_body`, each behind a comma."""
    if body_type == 0 and len(body) < SMALLEST_MEASURED and not may_be_document(body):
        return _told_octets(BYTES, body)
    if len(body) > LONGEST_DECODED:
        return _behind_comma(described_body(body, body_type, LONGEST_DECODED))
    budget = DecodeBudget(len(body))
    read = read_body(body, body_type, budget)
    if body_type == 0 and read.value is body and not read.problem:
        told = _told_octets(read.kind, body)
        if len(body) < SMALLEST_MEASURED or len(told) < budget.octets:
            return told
    return _behind_comma(described_value(body, body_type, read, budget))


def _behind_comma(told: Mapping[str, object]) -> bytes:
    return b"," + write_json(told)[1:-1]


def _told_octets(kind: str, body: bytes) -> bytes:
    """The same for a body of plain octets, which appear twice."""
    octets = binascii.b2a_base64(body, newline=False)
    try:
        text = b',"body":' + write_json(body.decode().rstrip("\0"))
    except UnicodeDecodeError:
        text = b""
    head = b',"value_type":"%b","value":"%b"' % (kind.encode("ascii"), octets)
    return b'%b%b,"body_base64":"%b"' % (head, text, octets)


@functools.lru_cache(maxsize=256)
def _moment(seconds: float) -> bytes:
    return write_json(iso_time(seconds))
