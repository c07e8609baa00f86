"""Attributes of elements and their values in a directory, both ways.

One table for each kind of element ([MS-MQDSSM] 3.1.6.1, 3.1.6.10 and 3.1.6.11). Values are octets,
as in LDAP. An attribute that is not set has the default that its element begins with.
"""

import calendar
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from rpcqm.adm.enums import DirectoryOperationResult, DirectoryServerType, OperatingSystemType
from rpcqm.base.errors import DecodeError
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel

LONGEST_LABEL = 124
ROUTING_SERVICE, REMOTE_ACCESS = 0x01, 0x10
"""Bits of mSMQServiceType ([MS-MQDSSM] 3.1.6.1.1.5)."""
SERVER_TYPES = {
    DirectoryServerType.BACKUP_SITE_CONTROLLER: 0x02,
    DirectoryServerType.PRIMARY_SITE_CONTROLLER: 0x04,
    DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER: 0x08,
}
SYSTEM_TYPES = {
    OperatingSystemType.OTHER: 0x000,
    OperatingSystemType.FOREIGN: 0x100,
    OperatingSystemType.WIN95: 0x200,
    OperatingSystemType.WIN_CLIENT: 0x300,
    OperatingSystemType.WIN_SERVER: 0x400,
    OperatingSystemType.WIN_ENT: 0x500,
}
"""Values of mSMQOSType ([MS-MQDSSM] 3.1.6.1.1.4)."""

_TIME = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:[.,]\d+)?Z")
_INTEGER = re.compile(rb"-?\d{1,10}")


@dataclass(frozen=True, slots=True)
class Entry:
    """An object as a directory returns it; the names of its attributes are in lower case."""

    name: str
    values: Mapping[str, Sequence[bytes]]

    def first(self, attribute: str) -> bytes | None:
        """The only value of an attribute, None if it is not set."""
        return next(iter(self.values.get(attribute.lower(), ())), None)

    def all(self, attribute: str) -> Sequence[bytes]:
        return self.values.get(attribute.lower(), ())


class Kind(NamedTuple):
    """The reader and the writer for values of one syntax."""

    read: Callable[[bytes], object]
    write: Callable[..., bytes]
    several: bool = False


def read_boolean(value: bytes) -> bool:
    """A Boolean; DecodeError for other values than TRUE and FALSE."""
    if value not in (b"TRUE", b"FALSE"):
        raise DecodeError("a value is neither TRUE nor FALSE")
    return value == b"TRUE"


def write_boolean(value: bool) -> bytes:
    return b"TRUE" if value else b"FALSE"


def read_integer(value: bytes) -> int:
    """A signed number of 32 bits; DecodeError for another text."""
    if not _INTEGER.fullmatch(value) or not -(1 << 31) <= (number := int(value)) < 1 << 32:
        raise DecodeError("a value is no number of 32 bits")
    return number - (1 << 32) if number >= 1 << 31 else number


def write_integer(value: int) -> bytes:
    """A number as a signed one: 0xFFFFFFFF is -1."""
    return b"%d" % (value - (1 << 32) if value >= 1 << 31 else value)


def read_quota(value: bytes) -> int:
    """A number without a sign, which the directory keeps as a signed one."""
    return read_integer(value) & 0xFFFFFFFF


def read_text(value: bytes) -> str:
    """A text; DecodeError for octets that are not UTF-8."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError("a text is not in UTF-8") from error


def read_guid(value: bytes) -> UUID:
    """A GUID; DecodeError for another length."""
    if len(value) != 16:
        raise DecodeError(f"an identifier has {len(value)} octets")
    return UUID(bytes_le=bytes(value))


def write_guid(value: UUID) -> bytes:
    return value.bytes_le


def read_time(value: bytes) -> int:
    """Seconds since 1970 of a generalized time; DecodeError for another text."""
    if (match := _TIME.fullmatch(value)) is None:
        raise DecodeError("a value is no time")
    return calendar.timegm((*map(int, match.groups()), 0, 0, 0))


def _read_privacy(value: bytes) -> QueuePrivacyLevel:
    try:
        return QueuePrivacyLevel(read_integer(value))
    except ValueError as error:
        raise DecodeError("a privacy level is none of 0, 1 and 2") from error


def _read_system(value: bytes) -> OperatingSystemType:
    number = read_integer(value)
    found = (each for each, written in SYSTEM_TYPES.items() if written == number)
    return next(found, OperatingSystemType.OTHER)


def _write_system(value: OperatingSystemType) -> bytes:
    return write_integer(SYSTEM_TYPES[value])


BOOLEAN = Kind(read_boolean, write_boolean)
INTEGER = Kind(read_integer, write_integer)
QUOTA = Kind(read_quota, write_integer)
TEXT = Kind(read_text, str.encode)
OCTETS = Kind(bytes, bytes)
GUID = Kind(read_guid, write_guid)
GUIDS = Kind(read_guid, write_guid, several=True)
OCTETS_LIST = Kind(bytes, bytes, several=True)
TIME = Kind(read_time, str.encode)
PRIVACY = Kind(_read_privacy, write_integer)
SYSTEM = Kind(_read_system, _write_system)
YES = Kind(lambda value: value in (b"Y", b"y"), lambda value: b"Y" if value else b"N")
OLD_VERSION = Kind(lambda value: value == b"3", lambda value: b"3" if value else b"200")


class Attribute(NamedTuple):
    """An attribute of an element, the directory's name for it, and its syntax."""

    name: str
    stored: str
    kind: Kind


IDENTIFIER = Attribute("identifier", "objectGUID", GUID)
TIMES = (
    Attribute("create_time", "whenCreated", TIME),
    Attribute("modify_time", "whenChanged", TIME),
)

QUEUE = (
    Attribute("label", "mSMQLabelEx", TEXT),
    Attribute("type", "mSMQQueueType", GUID),
    Attribute("journaling", "mSMQJournal", BOOLEAN),
    Attribute("quota", "mSMQQueueQuota", QUOTA),
    Attribute("journal_quota", "mSMQQueueJournalQuota", QUOTA),
    Attribute("authentication", "mSMQAuthenticate", BOOLEAN),
    Attribute("privacy_level", "mSMQPrivacyLevel", PRIVACY),
    Attribute("transactional", "mSMQTransactional", BOOLEAN),
    Attribute("multicast_address", "MSMQ-MulticastAddress", TEXT),
    Attribute("base_priority", "mSMQBasePriority", INTEGER),
)
QUEUE_MANAGER = (
    Attribute("queue_manager_version", "mSMQComputerTypeEx", TEXT),
    Attribute("operating_system_type", "mSMQOSType", SYSTEM),
    Attribute("queue_manager_quota", "mSMQQuota", QUOTA),
    Attribute("journal_quota", "mSMQJournalQuota", QUOTA),
    Attribute("foreign_system", "mSMQForeign", BOOLEAN),
    Attribute("site_identifier_list", "mSMQSites", GUIDS),
    Attribute("routing_server", "mSMQRoutingServices", BOOLEAN),
    Attribute("directory_server", "mSMQDsServices", BOOLEAN),
    Attribute("supporting_server", "mSMQDependentClientServices", BOOLEAN),
    Attribute("public_encryption_key_list", "mSMQEncryptKey", OCTETS),
)
COMPUTER = (
    Attribute("qualified_computer_name", "dNSHostName", TEXT),
    Attribute("operating_system_version", "operatingSystemVersion", TEXT),
    Attribute("public_signing_key_list", "mSMQSignCertificates", OCTETS),
)
ENTERPRISE = (
    Attribute("weakened_security", "mSMQNameStyle", BOOLEAN),
    Attribute("non_ldap_capable_queue_manager_notification", "mSMQCSPName", YES),
    Attribute("default_time_to_live", "mSMQLongLived", QUOTA),
    Attribute("old_directory", "mSMQVersion", OLD_VERSION),
)
SITE = (
    Attribute("name", "cn", TEXT),
    Attribute("intra_site_replication_interval", "mSMQInterval1", INTEGER),
    Attribute("inter_site_replication_interval", "mSMQInterval2", INTEGER),
    Attribute("foreign_site", "mSMQSiteForeign", BOOLEAN),
    Attribute("migrated_from_msmq10", "mSMQNt4Stub", INTEGER),
)
ROUTING_LINK = (
    Attribute("description", "description", TEXT),
    Attribute("actual_cost", "mSMQCost", INTEGER),
)
USER = (
    Attribute("security_identifier", "objectSid", OCTETS),
    Attribute("certificate_digest_list", "mSMQDigests", OCTETS_LIST),
    Attribute("certificates", "mSMQSignCertificates", OCTETS),
)


def read_values(entry: Entry, attributes: Iterable[Attribute]) -> dict[str, object]:
    """The values of the attributes that are set; DecodeError names the attribute with a wrong
    value."""
    found: dict[str, object] = {}
    for name, stored, kind in attributes:
        values = entry.all(stored)
        if not values:
            continue
        try:
            found[name] = [kind.read(v) for v in values] if kind.several else kind.read(values[0])
        except DecodeError as error:
            raise DecodeError(f"{stored} of {entry.name}: {error}") from error
    return found


def write_values(
    element: object, attributes: Iterable[Attribute], names: Iterable[str] | None = None
) -> dict[str, list[bytes]]:
    """The directory's values for the attributes listed, all without a list.

    An empty value becomes no value: a directory refuses empty ones.
    """
    wanted = None if names is None else frozenset(names)
    found: dict[str, list[bytes]] = {}
    for name, stored, kind in attributes:
        if wanted is None or name in wanted:
            value = getattr(element, name)
            values = value if kind.several else [] if value is None else [value]
            found[stored] = [octets for each in values if (octets := kind.write(each))]
    return found


def service_type(
    routing: bool, remote_access: bool, server: DirectoryServerType | None = None
) -> int:
    """The bits of mSMQServiceType ([MS-MQDSSM] 3.1.6.1.1.5)."""
    bits = ROUTING_SERVICE * routing | REMOTE_ACCESS * remote_access
    return bits | (0 if server is None else SERVER_TYPES.get(server, 0))


def server_type(bits: int) -> DirectoryServerType:
    """The kind of controller in mSMQServiceType ([MS-MQDSSM] 3.1.6.11.1.5)."""
    found = (each for each, bit in SERVER_TYPES.items() if bits & bit)
    return next(found, DirectoryServerType.STANDALONE)


# Results

_RESULTS = {
    0: DirectoryOperationResult.SUCCESS,
    16: DirectoryOperationResult.ATTRIBUTE_NOT_FOUND,
    32: DirectoryOperationResult.OBJECT_NOT_FOUND,
    68: DirectoryOperationResult.OBJECT_ALREADY_EXISTS,
}
_NOT_CONNECTED = frozenset({-1, -5, -11, 51, 52, 80, 81, 85, 91})
"""Server down, time-out and connect error of the library, busy, unavailable, and others."""


def result_of(code: int) -> DirectoryOperationResult:
    """The outcome for a result of LDAP ([MS-MQDSSM] 2.2.6)."""
    if code in _NOT_CONNECTED:
        return DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
    return _RESULTS.get(code, DirectoryOperationResult.GENERIC_ERROR)


# Filters


def escaped_octets(value: bytes) -> str:
    r"""Any value in a filter: every octet as \xx."""
    return "".join(f"\\{octet:02x}" for octet in value)


def equals_filter(attribute: str, value: bytes) -> str:
    """The filter for one value of an attribute."""
    return f"({attribute}={escaped_octets(value)})"


def guid_base(identifier: UUID) -> str:
    """The base of a search for one object by its identifier ([MS-MQDSSM] 3.1.6.19)."""
    return f"<GUID={identifier}>"
