r"""Format names of queues, like DIRECT=OS:host\private$\orders ([MS-MQMQ] 2.1.2 to 2.1.7)."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import folded
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.names.grammar import (
    ALLOWED_SUFFIXES,
    DIRECT,
    DL,
    MACHINE,
    MULTICAST,
    NO_SUFFIX,
    PRIVATE,
    PUBLIC,
    READ_ONLY_SUFFIXES,
    READERS,
    SUBQUEUE,
    SUFFIX_TEXTS,
    UNKNOWN,
    WRITERS,
    XACTONLY,
    DirectName,
    DistributionListName,
    FormatNameValue,
    MulticastAddress,
    SuffixType,
    read_direct,
    refuse,
    split_direct_name,
)
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.packet.user import PrivateQueueFormatName, QueueFormatType, WireQueueName
from rpcqm.codec.types.mqvalues import FormatNameType

__all__ = [
    "DirectName",
    "DistributionListName",
    "FormatName",
    "FormatNameType",
    "FormatNameValue",
    "MulticastAddress",
    "PrivateQueueFormatName",
    "QueueFormat",
    "SuffixType",
    "direct_from_wire",
    "format_names",
    "from_queue_format",
    "from_user_header",
    "parse_format_names",
    "to_destination",
    "to_other_queue",
    "to_queue_format",
    "without_prefix",
]

QUEUE_FORMAT_FLAG_SYSTEM = 0x80
PREFIX = "formatname:"
"""The prefix of format names in System.Messaging, in small letters."""


class QueueFormat(NamedTuple):
    """The fields of a QUEUE_FORMAT ([MS-MQMQ] 2.2.7); `value` is None for an unknown name."""

    m_qft: int
    m_suffix_and_flags: int
    value: FormatNameValue | None


@dataclass(frozen=True, slots=True, eq=False)
class FormatName:
    """The name of one queue; compared without regard to case.

    Names of several queues are tuples of these; see `parse_format_names`.
    """

    type: FormatNameType
    value: FormatNameValue
    suffix: SuffixType = NO_SUFFIX

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the name of one queue; raises MQError(MQ_ERROR_ILLEGAL_FORMATNAME).

        A prefix "FormatName:", as System.Messaging writes it, is accepted (G183).
        """
        prefix, equals, rest = without_prefix(text).partition("=")
        read = READERS.get(prefix.upper()) if equals and prefix.isascii() else None
        if read is None:
            refuse(text)
        return cls(*read(rest))

    @classmethod
    def direct(cls, text: str) -> Self:
        """Read a direct name without its "DIRECT="; raises MQError as `parse` does."""
        return cls(*read_direct(text))

    @classmethod
    def private(cls, queue_manager: UUID, identifier: int) -> Self:
        """The name of a private queue by its number."""
        return cls(PRIVATE, PrivateQueueFormatName(queue_manager, identifier))

    @classmethod
    def of_path(cls, path: PathName) -> Self:
        """The DIRECT=OS: name of the queue with this path name; raises MQError."""
        return cls.direct(f"OS:{path}")

    @property
    def direct_name(self) -> DirectName:
        """The parts of a direct name; raises MQError for another kind of name."""
        if not isinstance(self.value, str):
            refuse(str(self))
        return split_direct_name(self.value)

    @property
    def is_http(self) -> bool:
        """Whether messages for that name travel by HTTP or HTTPS."""
        return isinstance(self.value, str) and self.value[:4].upper() == "HTTP"

    @property
    def path_name(self) -> PathName:
        """The path name in a direct name; raises MQError for other kinds."""
        name = self.direct_name
        return PathName(name.host, name.queue, name.kind, name.suffix)

    @property
    def is_read_only(self) -> bool:
        """Whether messages cannot be sent to it: a journal or a dead-letter queue."""
        return self.suffix in READ_ONLY_SUFFIXES

    def __str__(self) -> str:
        suffix = "" if isinstance(self.value, str) else SUFFIX_TEXTS.get(self.suffix, "")
        return WRITERS[self.type](self.value) + suffix

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FormatName) and _key(self) == _key(other)

    def __hash__(self) -> int:
        return hash(_key(self))


def _key(name: FormatName) -> tuple[object, ...]:
    value = name.value
    if isinstance(value, str):
        place, question, query = value.partition("?") if name.is_http else (value, "", "")
        # The query of a URL may tell streams apart, so its case counts (G231).
        return name.type, folded(place).replace("/", "\\") + question + query
    if isinstance(value, DistributionListName):
        return name.type, value.guid, (value.domain or "").upper()
    return name.type, value, name.suffix


def without_prefix(text: str) -> str:
    """The format name behind "FormatName:", in any case of letters; any other text unchanged."""
    return text[len(PREFIX) :] if text[: len(PREFIX)].lower() == PREFIX else text


def parse_format_names(text: str) -> tuple[FormatName, ...]:
    """Read a name of one or several queues; raises MQError(MQ_ERROR_ILLEGAL_FORMATNAME).

    Among several, none may be of a machine, a journal or a dead-letter queue
    ([MS-MQMQ] 2.1.7).
    """
    text = without_prefix(text)
    if "," not in text or (text[:3].upper() == "DL=" and "=" not in text[3:]):
        return (FormatName.parse(text),)
    names = tuple(FormatName.parse(part) for part in text.split(","))
    if any(name.is_read_only or name.type == MACHINE for name in names):
        refuse(text, "a list cannot hold queues that are only read")
    return names


def format_names(names: tuple[FormatName, ...]) -> str:
    """The text of a name of one or several queues."""
    return ",".join(map(str, names))


def to_queue_format(name: FormatName | None) -> QueueFormat:
    """The QUEUE_FORMAT of a name; None is the unknown name.

    Raises MQError(MQ_ERROR_ILLEGAL_FORMATNAME) for MACHINE= without its suffix.
    """
    if name is None:
        return QueueFormat(UNKNOWN, 0, None)
    if name.suffix not in ALLOWED_SUFFIXES[name.type]:
        refuse(str(name))
    flags = QUEUE_FORMAT_FLAG_SYSTEM if name.suffix in READ_ONLY_SUFFIXES else 0
    return QueueFormat(name.type, name.suffix | flags, name.value)


def from_queue_format(m_qft: int, m_suffix_and_flags: int, value: object) -> FormatName:
    """The name in a QUEUE_FORMAT; `value` is the plain value of its union.

    Raises MQError(MQ_ERROR_ILLEGAL_FORMATNAME) for the unknown name, for a value that does not fit,
    and for a suffix or flag that [MS-MQMQ] 2.2.7 rules out. A direct string may lack the suffix
    that the nibble states.
    """
    try:
        kind, suffix = FormatNameType(m_qft), SuffixType(m_suffix_and_flags & 0x0F)
    except ValueError:
        refuse(f"QUEUE_FORMAT of type {m_qft} with suffix 0x{m_suffix_and_flags:02X}")
    system = m_suffix_and_flags & 0xF0
    if kind == UNKNOWN or suffix not in ALLOWED_SUFFIXES[kind] or not _flag_fits(suffix, system):
        refuse(f"QUEUE_FORMAT of type {m_qft} with suffix 0x{m_suffix_and_flags:02X}")
    if kind in (DIRECT, SUBQUEUE):
        return _from_direct(kind, suffix, value)
    return FormatName(kind, _checked_value(kind, value), suffix)


def _flag_fits(suffix: SuffixType, system: int) -> bool:
    if suffix == XACTONLY:
        return system in (0, QUEUE_FORMAT_FLAG_SYSTEM)
    return system == (QUEUE_FORMAT_FLAG_SYSTEM if suffix in READ_ONLY_SUFFIXES else 0)


def _from_direct(kind: FormatNameType, suffix: SuffixType, value: object) -> FormatName:
    if not isinstance(value, str):
        refuse(repr(value))
    text = SUFFIX_TEXTS.get(suffix, "")
    if text and not value.upper().endswith(text):
        value += text
    name = FormatName.direct(value)
    if suffix != NO_SUFFIX and (name.type, name.suffix) != (kind, suffix):
        refuse(value, "the suffix is another one")
    return name


def _checked_value(kind: FormatNameType, value: object) -> FormatNameValue:
    pair = _PAIRS.get(kind)
    if pair is None:
        return value if isinstance(value, UUID) else refuse(repr(value))
    if not isinstance(value, tuple) or len(value) != 2:
        refuse(repr(value))
    checked = pair(*value)
    return checked if kind == PRIVATE else FormatName.parse(WRITERS[kind](checked)).value


_PAIRS: dict[FormatNameType, Callable[..., FormatNameValue]] = {
    PRIVATE: PrivateQueueFormatName,
    DL: DistributionListName,
    MULTICAST: MulticastAddress,
}


# Queue names in a UserHeader ([MS-MQMQ] 2.2.19.2, DestinationQueue to ResponseQueue).


def to_destination(name: FormatName) -> tuple[QueueFormatType, WireQueueName, UUID | None]:
    """A destination for a header: Flags.DQ, DestinationQueue, and its queue manager if it is in the
    name.

    Raises MQError(MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION) for names of other kinds, which the
    sender resolves first.
    """
    value = name.value
    if isinstance(value, str):
        return QueueFormatType.DIRECT, value, None
    if isinstance(value, PrivateQueueFormatName):
        owner, number = value
        return QueueFormatType.PRIVATE_ON_DESTINATION, number, owner
    if name.type == PUBLIC and isinstance(value, UUID):
        return QueueFormatType.PUBLIC, value, None
    raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, str(name))


def to_other_queue(
    name: FormatName | None,
    source: UUID,
    destination: UUID,
    administration: FormatName | None = None,
) -> tuple[QueueFormatType, WireQueueName]:
    """An administration or response queue for a header: Flags.AQ or RQ, and the name.

    `administration` is given for a response queue only. Raises
    MQError(MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION) as `to_destination` does.
    """
    if name is None:
        return QueueFormatType.NONE, None
    if administration is not None and name == administration:
        return QueueFormatType.SAME_AS_ADMIN, None
    kind, wire, owner = to_destination(name)
    if owner is None:
        return kind, wire
    if owner == source:
        return QueueFormatType.PRIVATE_ON_SOURCE, wire
    if owner == destination:
        return QueueFormatType.PRIVATE_ON_DESTINATION, wire
    if administration is not None and owner == _host_of(administration):
        return QueueFormatType.PRIVATE_ON_ADMIN_HOST, wire
    return QueueFormatType.PRIVATE_ON_OTHER, PrivateQueueFormatName(owner, _number(wire))


def _number(wire: WireQueueName) -> int:
    return wire if isinstance(wire, int) else 0


def from_user_header(
    kind: int,
    wire: WireQueueName,
    source: UUID,
    destination: UUID,
    administration: FormatName | None = None,
) -> FormatName | None:
    """The name of a queue in a UserHeader; None if the header names no queue.

    `source` and `destination` are the header's queue managers, `administration` the queue that
    response queues of types 1 and 4 refer to. A direct text is kept even where it breaks the
    grammar, because an application may have put anything there.
    """
    if kind == QueueFormatType.SAME_AS_ADMIN:
        return administration
    if isinstance(wire, str):
        return direct_from_wire(wire)
    if isinstance(wire, UUID):
        return FormatName(PUBLIC, wire)
    if isinstance(wire, int):
        owners = (source, destination, _host_of(administration))
        return FormatName.private(owners[kind - QueueFormatType.PRIVATE_ON_SOURCE], wire)
    return None if wire is None else FormatName(PRIVATE, wire)


@functools.lru_cache(maxsize=256)
def direct_from_wire(text: str) -> FormatName:
    """A direct name from a packet, its text kept even where it breaks the grammar."""
    try:
        return FormatName.direct(text)
    except MQError:  # the text of a peer stays unchanged
        return FormatName(DIRECT, text)


def _host_of(name: FormatName | None) -> UUID:
    if name is not None and isinstance(name.value, PrivateQueueFormatName):
        return name.value.source_queue_manager
    return NULL_GUID
