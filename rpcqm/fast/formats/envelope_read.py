"""Envelopes like one that was read before.

A template keeps an outcome of `reading.parse_envelope`, which stays the only definition of an
envelope: the octets around the values that change from message to message, and the parsed envelope.
The next one with the same octets there is not parsed; its values are read with the parsers of their
elements, which accept no character with a meaning in XML.

A template is made when the same octets come a second time. With each value in turn replaced, the
careful reading must then agree with the template; otherwise there is none.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple

from rpcqm.base.errors import DecodeError
from rpcqm.fast.formats.srmp_packet import PacketTemplate
from rpcqm.fast.learned import Learned
from rpcqm.srmp.dates import parse_date
from rpcqm.srmp.elements import Envelope, Msmq, Stream
from rpcqm.srmp.reading import (
    ReadEnvelope,
    correlation,
    current,
    message_id,
    number_32,
    parse_envelope,
)

LONGEST = 4_096
"""Longest envelope whose form is remembered.

Those that senders write have about a thousand, and no bound of the careful reading is so low.

Bound `srmp.template_envelope` [octets]: it is parsed each time that it comes.
"""
_PLAIN = re.compile(r"[\w .,:;/@#+*()!?%=$-]*")
_BASE64 = re.compile("[A-Za-z0-9+/]{27}=")

Constants = tuple[bytes, ...]


def _plain(text: str) -> str:
    """A text without markup, references and line breaks."""
    if _PLAIN.fullmatch(text) is None:
        raise DecodeError("a text that is not plain")
    return text


def _unbroken(text: str) -> bytes:
    """A correlation without white space: Python has more kinds of it than XML."""
    if _BASE64.fullmatch(text) is None:
        raise DecodeError("a correlation that is written otherwise")
    return correlation(text)


class _Hole(NamedTuple):
    """An element with a value: the beginning of its text, its parser, its field.

    `owner` is the part of the envelope that has the field, "" for the envelope itself. Those that
    are `in_form` differ between messages of one form. `samples` are two values to try, at least one
    of which the envelope does not have. `before` is the field of the number before, where that is
    left out.
    """

    opening: bytes
    parse: Callable[[str], object]
    owner: str
    field: str
    in_form: bool
    samples: tuple[bytes, bytes]
    before: str = ""


_DATES = b"20010203T040506", b"20060504T030201"
_NUMBERS = b"91", b"4294967290"
_IDS = (
    b"uuid:91@0a0b0c0d-0102-0304-0506-0708090a0b0c",
    b"uuid:18446744073709551615@F0E0D0C0-0102-0304-0506-0708090a0b0c",
)
_CORRELATIONS = b"AAECAwQFBgcICQoLDA0ODxAREhM=", b"////////////////////////AAE="
_CURRENT = _Hole(b"<current>", current, "stream", "current", False, _NUMBERS)
_PREVIOUS = _Hole(b"<previous>", number_32, "stream", "previous", False, _NUMBERS)
_HOLES = (
    _Hole(b"<action>", _plain, "", "action", False, (b"MSMQ:", b"MSMQ:another label")),
    _Hole(b"<id>", message_id, "", "id", True, _IDS),
    _Hole(b"<expiresAt>", parse_date, "", "expires_at", True, _DATES),
    _Hole(b"<sentAt>", parse_date, "", "sent_at", True, _DATES),
    _CURRENT,
    _PREVIOUS,
    _Hole(b"<Correlation>", _unbroken, "msmq", "correlation", False, _CORRELATIONS),
    _Hole(b"<TTrq>", parse_date, "msmq", "ttrq", True, _DATES),
)
"""In the order of [MC-MQSRM] 3.1.7.2.4: each is sought behind the one before."""
_OPENINGS = [(hole.opening, len(hole.opening)) for hole in _HOLES]
_VALUES: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    kind: attrgetter(*(field.name for field in fields(kind))) for kind in (Envelope, Stream, Msmq)
}


def _cut(octets: bytes) -> tuple[Constants, list[bytes]]:
    """The octets around the holes of an envelope, and the values in them."""
    constants: list[bytes] = []
    values: list[bytes] = []
    at, find = 0, octets.find
    for opening, length in _OPENINGS:
        start = find(opening, at)
        if start >= 0:
            start += length
            end = find(b"<", start)
            if end < 0:
                break
            constants.append(octets[at:start])
            values.append(octets[start:end])
            at = end
    constants.append(octets[at:])
    return tuple(constants), values


def _holes_of(constants: Constants) -> list[_Hole]:
    """The holes at which an envelope was cut: each behind its opening."""
    holes = [
        next(hole for hole in _HOLES if constant.endswith(hole.opening))
        for constant in constants[:-1]
    ]
    if _PREVIOUS in holes:
        return holes
    return [hole._replace(before=_PREVIOUS.field) if hole is _CURRENT else hole for hole in holes]


def _joined(constants: Constants, values: list[bytes]) -> bytes:
    parts = zip(constants, values, strict=False)
    return b"".join(part for pair in parts for part in pair) + constants[-1]


def _copy(value: Any) -> Any:
    """A copy of one level; `copy.copy` takes ten times as long for classes with slots."""
    return type(value)(*_VALUES[type(value)](value))


@dataclass(slots=True, eq=False)
class EnvelopeForm:
    """The constants of envelopes that differ in their identifiers and times only."""

    packet: PacketTemplate | None = None
    """The template of their messages' packets, once one has been built."""


class _Template:
    """An envelope and its values, from which others differ."""

    __slots__ = ("_envelope", "_form", "_holes", "_values")

    def __init__(self, holes: list[_Hole], values: list[bytes], envelope: Envelope) -> None:
        self._holes, self._values, self._envelope = holes, values, envelope
        self._form = EnvelopeForm()

    def filled(self, text: str, values: list[bytes]) -> ReadEnvelope:
        """The envelope with these values; raises DecodeError or UnicodeDecodeError."""
        form: EnvelopeForm | None = self._form
        envelope: Envelope = _copy(self._envelope)
        for hole, value, before in zip(self._holes, values, self._values, strict=True):
            if value == before:
                continue
            field = hole.parse(value.decode("utf-8"))
            owner: Any = envelope
            if hole.owner:
                owner = _copy(getattr(envelope, hole.owner))
                setattr(envelope, hole.owner, owner)
            setattr(owner, hole.field, field)
            if hole.before:
                setattr(owner, hole.before, owner.current - 1)
            if not hole.in_form:
                form = None
        return ReadEnvelope(text, envelope, form)


class EnvelopeTemplates:
    """Reads envelopes as `parse_envelope` does, most of them without parsing them.

    At most `size` templates are kept, those that were used last. Envelopes of one template share
    the equal parts, so nobody may change them.
    """

    def __init__(self, size: int) -> None:
        self._templates: Learned[Constants, _Template] = Learned(size)
        self._seen: Learned[int, None] = Learned(size)
        """Hashes of envelopes that have come once."""

    def __len__(self) -> int:
        return len(self._templates)

    def read(self, octets: bytes) -> ReadEnvelope:
        """The values of an envelope; raises DecodeError."""
        if len(octets) > LONGEST:
            return parse_envelope(octets)
        constants, values = _cut(octets)
        template = self._templates.find(constants)
        if template is None:
            read = parse_envelope(octets)
            self._note(constants, values, read.envelope)
            return read
        try:
            return template.filled(octets.decode("utf-8"), values)
        except (DecodeError, UnicodeDecodeError):
            # a value is wrong, or is written in another way
            return parse_envelope(octets)

    def _note(self, constants: Constants, values: list[bytes], envelope: Envelope) -> None:
        """Make a template of a carefully read envelope, if the same octets came before."""
        if constants in self._templates:
            return
        printed = hash(constants)
        if printed not in self._seen:
            self._seen.keep(printed, None)
            return
        self._seen.forget(printed)
        self._templates.keep(constants, _learned(constants, values, envelope))


def _learned(constants: Constants, values: list[bytes], envelope: Envelope) -> _Template | None:
    """A template, if it agrees with the careful reading, whichever value is replaced."""
    holes = _holes_of(constants)
    if any(hole.owner and getattr(envelope, hole.owner) is None for hole in holes):
        return None
    template = _Template(holes, values, envelope)
    for number, hole in enumerate(holes):
        first, second = hole.samples
        other = first if values[number] != first else second
        if not _is_right(template, constants, [*values[:number], other, *values[number + 1 :]]):
            return None
    return template


def _is_right(template: _Template, constants: Constants, values: list[bytes]) -> bool:
    octets = _joined(constants, values)
    try:
        return template.filled(octets.decode("utf-8"), values)[:2] == parse_envelope(octets)[:2]
    except DecodeError:
        return False
