"""What the tables of a directory file have in them, and what their values may be."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rpcqm.adm.enums import QueuePrivacyLevel
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import COMPUTER_NAME, PathName, QueueKind
from rpcqm.codec.security.identifier import Sid, sid_bytes
from rpcqm.codec.security.sddl import parse_sddl

MAXIMUM_COST = 999_999
"""The dearest routing link ([MS-MQDMPR] 3.1.1.8)."""

_PRIVACY = {"none": QueuePrivacyLevel.NONE, "optional": QueuePrivacyLevel.OPTIONAL}
_PRIVACY["body"] = QueuePrivacyLevel.BODY


@dataclass(frozen=True, slots=True)
class Entry:
    """One key: how its value is read (ValueError when it cannot be), and what it should be."""

    read: Callable[[Any], Any]
    form: str
    required: bool = False


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError
        return value

    return read


def _each(read: Callable[[Any], Any], count: int | None = None) -> Callable[[Any], list[Any]]:
    def read_all(value: object) -> list[Any]:
        if not isinstance(value, list) or (count is not None and len(value) != count):
            raise ValueError
        return [read(item) for item in value]

    return read_all


def _computer(value: object) -> str:
    if not re.fullmatch(COMPUTER_NAME, _text(value)):
        raise ValueError
    return str(value)


def _guid(value: object) -> UUID:
    return UUID(_text(value))


def _address(value: object) -> str:
    return str(ipaddress.ip_address(_text(value)))


def _public_path(value: object) -> PathName:
    try:
        path = PathName.parse(_text(value))
    except MQError:
        raise ValueError from None
    if path.kind is not QueueKind.PUBLIC or path.suffix:
        raise ValueError
    return path


def _format_name(value: object) -> str:
    try:
        return str(FormatName.parse(_text(value)))
    except MQError:
        raise ValueError from None


def _privacy(value: object) -> QueuePrivacyLevel:
    if value not in _PRIVACY:
        raise ValueError
    return _PRIVACY[value]


def _descriptor(value: object) -> bytes:
    try:
        return parse_sddl(_text(value)).encode()
    except (DecodeError, MQError):
        raise ValueError from None


def _sid(value: object) -> bytes:
    Sid.parse(_text(value))
    return sid_bytes(value)


def _ldap_url(value: object) -> str:
    """The form that [MS-MQMQ] 2.3.1.24 asks for, as far as it is looked at here."""
    if not _text(value).upper().startswith("LDAP://"):
        raise ValueError
    return str(value)


def _base64(value: object) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except binascii.Error:
        raise ValueError from None


_NAME = Entry(_text, "a text", required=True)
_GUID = Entry(_guid, "a GUID like 6b29fc40-ca47-1067-b31d-00dd010662da")
_OWN_GUID = Entry(_GUID.read, _GUID.form, required=True)
_FLAG = Entry(_truth, "true or false")
_NAMES = Entry(_each(_text), "a list of names")
_SECONDS = Entry(_whole(0, 0xFFFF_FFFF), "seconds from 0 to 4294967295")
_KILOBYTES = Entry(_whole(0, 0xFFFF_FFFF), "KiB from 0 to 4294967295")
_KEY = Entry(_base64, "base64 of a public key")

TABLES: dict[str, dict[str, Entry]] = {
    "enterprise": {
        "name": _NAME,
        "identifier": _GUID,
        "default_time_to_live": _SECONDS,
        "weakened_security": _FLAG,
    },
    "site": {
        "name": _NAME,
        "identifier": _GUID,
        "foreign": _FLAG,
        "gates": _NAMES,
    },
    "routing_link": {
        "identifier": _GUID,
        "description": Entry(_text, "a text"),
        "sites": Entry(_each(_text, 2), "a list of two names of sites", required=True),
        "cost": Entry(_whole(1, MAXIMUM_COST), f"a cost from 1 to {MAXIMUM_COST}", required=True),
        "gates": _NAMES,
    },
    "queue_manager": {
        "name": Entry(_computer, "a computer's name", required=True),
        "identifier": _OWN_GUID,
        "qualified_name": Entry(_computer, "a computer's full name"),
        "addresses": Entry(_each(_address), "a list of IP addresses"),
        "sites": _NAMES,
        "routing_server": _FLAG,
        "foreign": _FLAG,
        "in_routing_servers": _NAMES,
        "out_routing_servers": _NAMES,
        "quota": _KILOBYTES,
        "journal_quota": _KILOBYTES,
        "encryption_key": _KEY,
        "signing_key": _KEY,
    },
    "queue": {
        "path": Entry(_public_path, "the path name of a public queue, COMPUTER\\NAME", True),
        "identifier": _OWN_GUID,
        "label": Entry(_text, "a text"),
        "type": _GUID,
        "transactional": _FLAG,
        "journal": _FLAG,
        "quota": _KILOBYTES,
        "journal_quota": _KILOBYTES,
        "authenticate": _FLAG,
        "privacy": Entry(_privacy, "one of none, optional, body"),
        "base_priority": Entry(_whole(-0x8000, 0x7FFF), "a number from -32768 to 32767"),
        "sddl": Entry(_descriptor, "a security descriptor in SDDL"),
        "full_path": Entry(_text, "the distinguished name of the queue in Active Directory"),
        "directory_path": Entry(_ldap_url, "an LDAP URL, LDAP://SERVER/NAME"),
    },
    "user": {
        "name": _NAME,
        "identifier": _GUID,
        "sid": Entry(_sid, "a security identifier like S-1-5-21-1-2-3-1001", required=True),
        "certificates": Entry(_each(_base64), "a list of certificates (base64 of DER)"),
    },
    "distribution_list": {
        "name": _NAME,
        "identifier": _OWN_GUID,
        "members": Entry(_each(_format_name), "a list of format names", required=True),
    },
}
"""Every table of the file, with its keys; `enterprise` is one table, the others are lists."""
