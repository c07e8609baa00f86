"""The tables of a directory file: their keys, and the values that these may have."""

import base64
import binascii
import ipaddress
import re
from uuid import UUID

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import COMPUTER_NAME, PathName, QueueKind
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import FormatNameType, QueuePrivacyLevel
from rpcqm.config.values import Entry, each, text, truth, whole_within

MAXIMUM_COST = 999_999
"""The dearest routing link ([MS-MQDMPR] 3.1.1.8)."""

_OF_ONE_QUEUE = frozenset(
    {
        FormatNameType.QUEUE_FORMAT_TYPE_DIRECT,
        FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC,
        FormatNameType.QUEUE_FORMAT_TYPE_PRIVATE,
    }
)
PRIVACY = {
    "none": QueuePrivacyLevel.MQ_PRIV_LEVEL_NONE,
    "optional": QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL,
    "body": QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY,
}


def _computer(value: object) -> str:
    if not re.fullmatch(COMPUTER_NAME, text(value)):
        raise ValueError
    return str(value)


def _guid(value: object) -> UUID:
    return UUID(text(value))


def _address(value: object) -> str:
    return str(ipaddress.ip_address(text(value)))


def _public_path(value: object) -> PathName:
    try:
        path = PathName.parse(text(value))
    except MQError:
        raise ValueError from None
    if path.kind is not QueueKind.PUBLIC or path.suffix or path.queue.endswith("$"):
        raise ValueError
    return path


def _format_name(value: object) -> str:
    try:
        return str(FormatName.parse(text(value)))
    except MQError:
        raise ValueError from None


def _alias_of(value: object) -> str:
    """The name of one queue: of those that [MS-MQDSSM] 2.3 has, a direct, a public or a private."""
    name = _format_name(value)
    if FormatName.parse(name).type not in _OF_ONE_QUEUE:
        raise ValueError
    return name


def _privacy(value: object) -> QueuePrivacyLevel:
    if text(value) not in PRIVACY:
        raise ValueError
    return PRIVACY[text(value)]


def _descriptor(value: object) -> bytes:
    try:
        return parse_sddl(text(value)).encode()
    except (DecodeError, MQError):
        raise ValueError from None


def _sid(value: object) -> bytes:
    return sid_bytes(text(value))


def _ldap_url(value: object) -> str:
    """Check what begins the form that [MS-MQMQ] 2.3.1.24 asks for; the rest is not looked at."""
    if not text(value).upper().startswith("LDAP://"):
        raise ValueError
    return str(value)


def _base64(value: object) -> bytes:
    try:
        return base64.b64decode(text(value), validate=True)
    except binascii.Error:
        raise ValueError from None


_NAME = Entry(text, "a text", required=True)
_GUID = Entry(_guid, "a GUID like 6b29fc40-ca47-1067-b31d-00dd010662da")
_OWN_GUID = Entry(_GUID.read, _GUID.form, required=True)
_FLAG = Entry(truth, "true or false")
_NAMES = Entry(each(text), "a list of names")
_SECONDS = Entry(whole_within(0, 0xFFFF_FFFF), "seconds from 0 to 4294967295")
_KILOBYTES = Entry(whole_within(0, 0xFFFF_FFFF), "KiB from 0 to 4294967295")
_KEY = Entry(_base64, "base64 of a public key")
_PLACE = {
    "full_path": Entry(text, "the distinguished name in Active Directory"),
    "directory_path": Entry(_ldap_url, "an LDAP URL, LDAP://SERVER/NAME"),
}
"""Where Active Directory has an object that paths may name ([MC-MQAC] 3.12.6.1)."""

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
        "description": Entry(text, "a text"),
        "sites": Entry(each(text, 2), "a list of two names of sites", required=True),
        "cost": Entry(
            whole_within(1, MAXIMUM_COST), f"a cost from 1 to {MAXIMUM_COST}", required=True
        ),
        "gates": _NAMES,
    },
    "queue_manager": {
        "name": Entry(_computer, "a computer's name", required=True),
        "identifier": _OWN_GUID,
        "qualified_name": Entry(_computer, "a computer's full name"),
        "addresses": Entry(each(_address), "a list of IP addresses"),
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
        "path": Entry(
            _public_path,
            "the path name of a public queue, COMPUTER\\NAME, no $ at its end",
            True,
        ),
        "identifier": _OWN_GUID,
        "label": Entry(text, "a text"),
        "type": _GUID,
        "transactional": _FLAG,
        "journal": _FLAG,
        "quota": _KILOBYTES,
        "journal_quota": _KILOBYTES,
        "authenticate": _FLAG,
        "privacy": Entry(_privacy, "one of none, optional, body"),
        "base_priority": Entry(whole_within(-0x8000, 0x7FFF), "a number from -32768 to 32767"),
        "sddl": Entry(_descriptor, "a security descriptor in SDDL"),
        **_PLACE,
    },
    "user": {
        "name": _NAME,
        "identifier": _GUID,
        "sid": Entry(_sid, "a security identifier like S-1-5-21-1-2-3-1001", required=True),
        "certificates": Entry(each(_base64), "a list of certificates (base64 of DER)"),
    },
    "distribution_list": {
        "name": _NAME,
        "identifier": _OWN_GUID,
        "members": Entry(each(_format_name), "a list of format names", required=True),
        **_PLACE,
    },
    "queue_alias": {
        "name": _NAME,
        "identifier": _GUID,
        "format_name": Entry(
            _alias_of, "the name of a queue, DIRECT=…, PUBLIC=… or PRIVATE=…", required=True
        ),
        **_PLACE,
    },
}
"""Every table of the file, with its keys; `enterprise` is one table, the others are lists."""
