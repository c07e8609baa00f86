r"""The grammar of format names ([MS-MQMQ] 2.1.2 to 2.1.6): text to parts and back.

Use `format_name`; this module only has the syntax.
"""

import enum
import functools
import ipaddress
import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn
from urllib.parse import unquote
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import visible
from rpcqm.codec.names.path_name import COMPUTER_NAME, SYSTEM_QUEUES, QueueKind, split_queue_part
from rpcqm.codec.packet.user import PrivateQueueFormatName
from rpcqm.codec.types.mqvalues import FormatNameType


class SuffixType(enum.IntEnum):
    """QUEUE_SUFFIX_TYPE ([MS-MQMQ] 2.2.11)."""

    QUEUE_SUFFIX_TYPE_NONE = 0
    QUEUE_SUFFIX_TYPE_JOURNAL = 1
    QUEUE_SUFFIX_TYPE_DEADLETTER = 2
    QUEUE_SUFFIX_TYPE_DEADXACT = 3
    QUEUE_SUFFIX_TYPE_XACTONLY = 4
    QUEUE_SUFFIX_TYPE_SUBQUEUE = 5


UNKNOWN = FormatNameType.QUEUE_FORMAT_TYPE_UNKNOWN
PUBLIC = FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC
PRIVATE = FormatNameType.QUEUE_FORMAT_TYPE_PRIVATE
DIRECT = FormatNameType.QUEUE_FORMAT_TYPE_DIRECT
MACHINE = FormatNameType.QUEUE_FORMAT_TYPE_MACHINE
CONNECTOR = FormatNameType.QUEUE_FORMAT_TYPE_CONNECTOR
DL = FormatNameType.QUEUE_FORMAT_TYPE_DL
MULTICAST = FormatNameType.QUEUE_FORMAT_TYPE_MULTICAST
SUBQUEUE = FormatNameType.QUEUE_FORMAT_TYPE_SUBQUEUE

NO_SUFFIX = SuffixType.QUEUE_SUFFIX_TYPE_NONE
JOURNAL = SuffixType.QUEUE_SUFFIX_TYPE_JOURNAL
DEADLETTER = SuffixType.QUEUE_SUFFIX_TYPE_DEADLETTER
DEADXACT = SuffixType.QUEUE_SUFFIX_TYPE_DEADXACT
XACTONLY = SuffixType.QUEUE_SUFFIX_TYPE_XACTONLY
SUBQUEUE_SUFFIX = SuffixType.QUEUE_SUFFIX_TYPE_SUBQUEUE

# The suffixes of each kind of name ([MS-MQMQ] 2.2.7, m_SuffixAndFlags)
ALLOWED_SUFFIXES: dict[FormatNameType, frozenset[SuffixType]] = {
    PUBLIC: frozenset({NO_SUFFIX, JOURNAL}),
    PRIVATE: frozenset({NO_SUFFIX, JOURNAL}),
    DIRECT: frozenset({NO_SUFFIX, JOURNAL, DEADLETTER, DEADXACT}),
    MACHINE: frozenset({JOURNAL, DEADLETTER, DEADXACT}),
    CONNECTOR: frozenset({NO_SUFFIX, XACTONLY}),
    DL: frozenset({NO_SUFFIX}),
    MULTICAST: frozenset({NO_SUFFIX}),
    SUBQUEUE: frozenset({SUBQUEUE_SUFFIX}),
}
READ_ONLY_SUFFIXES = frozenset({JOURNAL, DEADLETTER, DEADXACT})
SUFFIX_TEXTS = {
    JOURNAL: ";JOURNAL",
    DEADLETTER: ";DEADLETTER",
    DEADXACT: ";DEADXACT",
    XACTONLY: ";XACTONLY",
}
_SUFFIXES = {text[1:]: suffix for suffix, text in SUFFIX_TEXTS.items()}


class DistributionListName(NamedTuple):
    """A list in a directory and, optionally, its domain: DL_ID ([MS-MQMQ] 2.2.9)."""

    guid: UUID
    domain: str | None = None


class MulticastAddress(NamedTuple):
    """An IPv4 group and a port: MULTICAST_ID ([MS-MQMQ] 2.2.10).

    `address` is the number whose little-endian bytes are those of the dotted form.
    """

    address: int
    port: int


class DirectName(NamedTuple):
    """The parts of a direct format name ([MS-MQMQ] 2.1.2).

    Of a URL, `queue` and `suffix` are without percent-encoding, and `query` is as it is written.
    """

    protocol: str
    host: str
    port: int | None
    queue: str
    kind: QueueKind
    suffix: str
    query: str = ""

    @property
    def is_url(self) -> bool:
        """Whether messages for that name travel by HTTP or HTTPS."""
        return self.protocol in URL_PROTOCOLS


# By the type of the name: UUID (public, machine, connector), PrivateQueueFormatName, str (direct
# and subqueue, without "DIRECT="), DistributionList, MulticastAddress.
FormatNameValue = UUID | PrivateQueueFormatName | str | DistributionListName | MulticastAddress


@functools.lru_cache(maxsize=256)
def split_direct_name(text: str) -> DirectName:
    """The parts of a direct name without "DIRECT="; raises MQError."""
    protocol, _, rest = text.partition(":")
    rules = _PROTOCOLS.get(protocol.upper()) if protocol.isascii() else None
    match = rules.pattern.fullmatch(rest) if rules else None
    if not rules or not match or not rules.is_host(match["host"]):
        refuse(text)
    query = match["query"] or "" if rules.pattern is _URL else ""
    path = _path_of_url(match["path"]) if rules.pattern is _URL else match["path"]
    parts = split_queue_part(path) if path else None
    if not parts or (parts[1] is QueueKind.SYSTEM and parts[0].upper() not in SYSTEM_QUEUES):
        refuse(text)
    port = int(match["port"]) if match["port"] else rules.port
    if port is not None and port > _LAST_PORT:
        refuse(text)
    return DirectName(protocol.upper(), match["host"], port, *parts, query)


_LAST_PORT = 0xFFFF
# The host that every reader of URLs finds: no user, no escapes (G231)
_HOST = r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z._~-]{1,256})"
_URL = re.compile(
    rf"//{_HOST}(?::(?P<port>[0-9]{{0,5}}))?/msmq[\\/](?P<path>[^?]+)(?P<query>\?[\x21-\x7e]*)?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})?")
# Encoded, these would hide parts of the path, or of the queue's name
_NEVER_ENCODED = re.compile(r"[\\;\x00-\x1f\x7f]")
_ADDRESS = re.compile(
    rf"(?P<port>)(?P<host>{COMPUTER_NAME})\\(?P<path>.+)",
    re.DOTALL,
)


def _path_of_url(path: str) -> str | None:
    """The path below /msmq as path names have it; None if it is wrong (G231).

    Escapes are UTF-8. A slash that is encoded belongs to the queue's name; no part may be a dot
    or two, whether encoded or not.
    """
    parts = [_unescaped(part) for part in re.split(r"[\\/]", path)]
    if any(part is None or not {".", ".."}.isdisjoint(part.split("/")) for part in parts):
        return None
    return "\\".join(part for part in parts if part is not None)


def _unescaped(text: str) -> str | None:
    """A part of a URL without its percent-encoding; None if it is wrong."""
    if "%" not in text:
        return text
    escapes = _ESCAPE.findall(text)
    decoded = unquote(text, errors="surrogateescape")  # not allowed in a queue's name
    new = [unquote(f"%{each}", errors="ignore") for each in escapes]
    return None if "" in escapes or any(map(_NEVER_ENCODED.match, new)) else decoded


def _is_host(text: str) -> bool:
    """Whether a host has no brackets, or an IPv6 address in them: nobody reads IPv4 there."""
    return not text.startswith("[") or (":" in text and _is_ip_address(text))


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _is_ipx_address(text: str) -> bool:
    return re.fullmatch("[0-9A-Fa-f]{1,8}[:.][0-9A-Fa-f]{1,12}", text) is not None


class _Protocol(NamedTuple):
    pattern: re.Pattern[str]
    is_host: Callable[[str], bool]
    port: int | None = None


# IPX and SPX are both in use for the same thing ([MS-MQMQ] 2.1.2, [MS-MQQB] 2.2.4).
URL_PROTOCOLS = frozenset({"HTTP", "HTTPS"})
_PROTOCOLS = {
    "TCP": _Protocol(_ADDRESS, _is_ip_address),
    "OS": _Protocol(_ADDRESS, bool),
    "HTTP": _Protocol(_URL, _is_host, 80),
    "HTTPS": _Protocol(_URL, _is_host, 443),
    "IPX": _Protocol(_ADDRESS, _is_ipx_address),
    "SPX": _Protocol(_ADDRESS, _is_ipx_address),
}

Parts = tuple[FormatNameType, FormatNameValue, SuffixType]


@functools.lru_cache(maxsize=1024)
def read_direct(text: str) -> Parts:
    name = split_direct_name(text)
    text = name.protocol + text[len(name.protocol) :]
    if name.kind is QueueKind.SYSTEM:
        return DIRECT, text, _SUFFIXES[name.queue.upper()]
    if name.suffix.upper() == "JOURNAL":
        return DIRECT, text, JOURNAL
    if name.suffix:
        return SUBQUEUE, text, SUBQUEUE_SUFFIX
    return DIRECT, text, NO_SUFFIX


def _read_guid(kind: FormatNameType, text: str) -> Parts:
    guid, semicolon, suffix = text.partition(";")
    found = _SUFFIXES.get(suffix.upper()) if semicolon else NO_SUFFIX
    bare_machine = kind == MACHINE and found == NO_SUFFIX
    if found is None or not (bare_machine or found in ALLOWED_SUFFIXES[kind]):
        refuse(text)
    return kind, _guid(guid), found


def _read_private(text: str) -> Parts:
    match = re.fullmatch(r"([^\\;]+)\\([0-9A-Fa-f]{1,8})(;JOURNAL)?", text, re.IGNORECASE)
    if not match:
        refuse(text)
    value = PrivateQueueFormatName(_guid(match[1]), int(match[2], 16))
    return PRIVATE, value, JOURNAL if match[3] else NO_SUFFIX


def _read_dl(text: str) -> Parts:
    guid, at, domain = text.partition("@")
    if at and not re.fullmatch(r"[\x21-\x7e]{1,255}", domain):
        refuse(text)
    return DL, DistributionListName(_guid(guid), domain or None), NO_SUFFIX


def read_multicast(text: str) -> Parts:
    """An IPv4 group and a port, like 224.1.2.3:80; raises MQError."""
    dotted, _, port = text.partition(":")
    try:
        address = ipaddress.IPv4Address(dotted)
    except ValueError:
        refuse(text)
    if not address.is_multicast or not re.fullmatch("0|[1-9][0-9]{0,4}", port):
        refuse(text)
    if int(port) > _LAST_PORT:
        refuse(text)
    value = MulticastAddress(int.from_bytes(address.packed, "little"), int(port))
    return MULTICAST, value, NO_SUFFIX


READERS: dict[str, Callable[[str], Parts]] = {
    "DIRECT": read_direct,
    "PUBLIC": functools.partial(_read_guid, PUBLIC),
    "PRIVATE": _read_private,
    "MACHINE": functools.partial(_read_guid, MACHINE),
    "CONNECTOR": functools.partial(_read_guid, CONNECTOR),
    "DL": _read_dl,
    "MULTICAST": read_multicast,
}
_GUID = re.compile("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def _guid(text: str) -> UUID:
    if not _GUID.fullmatch(text):
        refuse(text)
    return UUID(text)


def _write_private(value: PrivateQueueFormatName) -> str:
    return f"PRIVATE={value.source_queue_manager}\\{value.private_queue_identifier:08x}"


def _write_dl(value: DistributionListName) -> str:
    return f"DL={value.guid}" + (f"@{value.domain}" if value.domain else "")


def _write_multicast(value: MulticastAddress) -> str:
    dotted = ipaddress.IPv4Address(value.address.to_bytes(4, "little"))
    return f"MULTICAST={dotted}:{value.port}"


WRITERS: dict[FormatNameType, Callable[..., str]] = {
    PUBLIC: "PUBLIC={}".format,
    PRIVATE: _write_private,
    DIRECT: "DIRECT={}".format,
    MACHINE: "MACHINE={}".format,
    CONNECTOR: "CONNECTOR={}".format,
    DL: _write_dl,
    MULTICAST: _write_multicast,
    SUBQUEUE: "DIRECT={}".format,
}


def refuse(text: str, reason: str = "") -> NoReturn:
    detail = f"`{visible(text)}` is no format name" + (f": {reason}" if reason else "")
    raise MQError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, detail)
