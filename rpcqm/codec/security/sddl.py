"""Security descriptors as text ([MS-DTYP] 2.5.1).

Queue rights have no letters in SDDL and are written as hexadecimal numbers. Conditional and
attribute entries, which no queue can carry ([MS-MQMQ] <27>), are refused in both directions.
"""

import re
from typing import NoReturn
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.security.descriptor import Ace, AceFlags, AceType, Acl, Control, SecurityDescriptor
from rpcqm.codec.security.identifier import ALIASES, DOMAIN_RELATIVE, WELL_KNOWN, Sid

_NO_ACCESS_CONTROL = "NO_ACCESS_CONTROL"
_PARTS = re.compile(r"(?:O:(?P<O>[^:]*?))?(?:G:(?P<G>[^:]*?))?(?:D:(?P<D>.*?))?(?:S:(?P<S>.*))?")
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]+|[0-9]+")
_GUID = re.compile(r"(?:[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12})?")
_QUOTED_AT_MOST = 80
"""Characters of a wrong text that an error repeats."""
_ACL = re.compile(r"(?P<flags>(?:P|AR|AI)*)(?P<aces>(?:\([^()]*\))*)")

ACE_TYPES = {
    "A": AceType.ACCESS_ALLOWED_ACE_TYPE,
    "D": AceType.ACCESS_DENIED_ACE_TYPE,
    "OA": AceType.ACCESS_ALLOWED_OBJECT_ACE_TYPE,
    "OD": AceType.ACCESS_DENIED_OBJECT_ACE_TYPE,
    "AU": AceType.SYSTEM_AUDIT_ACE_TYPE,
    "OU": AceType.SYSTEM_AUDIT_OBJECT_ACE_TYPE,
    "ML": AceType.SYSTEM_MANDATORY_LABEL_ACE_TYPE,
    "SP": AceType.SYSTEM_SCOPED_POLICY_ID_ACE_TYPE,
}
ACE_FLAGS = {
    "OI": AceFlags.OBJECT_INHERIT_ACE,
    "CI": AceFlags.CONTAINER_INHERIT_ACE,
    "NP": AceFlags.NO_PROPAGATE_INHERIT_ACE,
    "IO": AceFlags.INHERIT_ONLY_ACE,
    "ID": AceFlags.INHERITED_ACE,
    "SA": AceFlags.SUCCESSFUL_ACCESS_ACE_FLAG,
    "FA": AceFlags.FAILED_ACCESS_ACE_FLAG,
}
GENERIC_AND_STANDARD_RIGHTS = {
    "GA": 0x10000000,
    "GX": 0x20000000,
    "GW": 0x40000000,
    "GR": 0x80000000,
    "RC": 0x00020000,
    "SD": 0x00010000,
    "WD": 0x00040000,
    "WO": 0x00080000,
}
OBJECT_SPECIFIC_RIGHTS = {
    "FA": 0x001F01FF,
    "FX": 0x001200A0,
    "FW": 0x00120116,
    "FR": 0x00120089,
    "KA": 0x000F003F,
    "KR": 0x00020019,
    "KX": 0x00020019,
    "KW": 0x00020006,
    "CR": 0x00000100,
    "LO": 0x00000080,
    "DT": 0x00000040,
    "WP": 0x00000020,
    "RP": 0x00000010,
    "SW": 0x00000008,
    "LC": 0x00000004,
    "DC": 0x00000002,
    "CC": 0x00000001,
}
_RIGHTS = GENERIC_AND_STANDARD_RIGHTS | OBJECT_SPECIFIC_RIGHTS
_DACL_FLAGS = {"P": Control.PD, "AR": Control.DC, "AI": Control.DI}
_SACL_FLAGS = {"P": Control.PS, "AR": Control.SC, "AI": Control.SI}
_OBJECT_TYPES = (
    AceType.ACCESS_ALLOWED_OBJECT_ACE_TYPE,
    AceType.ACCESS_DENIED_OBJECT_ACE_TYPE,
    AceType.SYSTEM_AUDIT_OBJECT_ACE_TYPE,
)


def parse_sddl(text: str, domain: Sid | None = None) -> SecurityDescriptor:
    """Read a descriptor; `domain` is what names like DA are relative to.

    Raises MQError(MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR) that tells which part is wrong.
    """
    parts = _PARTS.fullmatch(text.strip())
    if not parts:
        _refuse(f"{_quoted(text)} is not made of O:, G:, D: and S: in this order")
    dacl, dacl_control = _parse_acl(parts["D"], _DACL_FLAGS, Control.DP, domain)
    sacl, sacl_control = _parse_acl(parts["S"], _SACL_FLAGS, Control.SP, domain)
    return SecurityDescriptor(
        parse_sid(parts["O"], domain) if parts["O"] is not None else None,
        parse_sid(parts["G"], domain) if parts["G"] is not None else None,
        sacl,
        dacl,
        dacl_control | sacl_control,
    )


def format_sddl(descriptor: SecurityDescriptor) -> str:
    """The text of a descriptor.

    Raises MQError(MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR) if an entry has no text form.
    """
    parts = []
    if descriptor.owner:
        parts.append("O:" + format_sid(descriptor.owner))
    if descriptor.group:
        parts.append("G:" + format_sid(descriptor.group))
    if descriptor.dacl:
        parts.append("D:" + _format_acl(descriptor.dacl, descriptor.control, _DACL_FLAGS))
    elif descriptor.control & Control.DP:
        parts.append("D:" + _NO_ACCESS_CONTROL)
    if descriptor.sacl:
        parts.append("S:" + _format_acl(descriptor.sacl, descriptor.control, _SACL_FLAGS))
    return "".join(parts)


def parse_sid(text: str, domain: Sid | None = None) -> Sid:
    """Read a SID or its two-letter name.

    Raises MQError(MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR) if it is neither.
    """
    name = text.upper()
    if name in WELL_KNOWN:
        return WELL_KNOWN[name]
    if name in DOMAIN_RELATIVE:
        if domain is None:
            _refuse(f"{name} needs a domain, and there is none")
        return Sid(domain.authority, (*domain.sub_authorities, DOMAIN_RELATIVE[name]))
    try:
        return Sid.parse(name.replace("0X", "0x"))
    except ValueError:
        _refuse(f"{_quoted(text)} is no SID")


def format_sid(sid: Sid) -> str:
    """The two-letter name of a well-known SID, else its ordinary text."""
    return ALIASES.get(sid) or str(sid)


def _parse_acl(
    text: str | None, flags: dict[str, Control], present: Control, domain: Sid | None
) -> tuple[Acl | None, int]:
    if text is None:
        return None, 0
    if text == _NO_ACCESS_CONTROL:
        return None, int(present)
    match = _ACL.fullmatch(text)
    if not match:
        _refuse(f"{_quoted(text)} is no list of entries")
    control = sum(flags[flag] for flag in set(re.findall("P|AR|AI", match["flags"])))
    entries = re.findall(r"\(([^()]*)\)", match["aces"])
    aces = tuple(_parse_ace(entry, domain) for entry in entries)
    revision = 4 if any(ace.type in _OBJECT_TYPES for ace in aces) else 2
    return Acl(aces, revision), control | present


def _parse_ace(text: str, domain: Sid | None) -> Ace:
    fields = [field.strip() for field in text.split(";")]
    if len(fields) != 6 or fields[0].upper() not in ACE_TYPES:
        _refuse(f"{_quoted(f'({text})')} is no entry that a queue can carry")
    return Ace(
        ACE_TYPES[fields[0].upper()],
        _tokens(fields[1], ACE_FLAGS),
        _parse_rights(fields[2]),
        parse_sid(fields[5], domain),
        _parse_guid(fields[3]),
        _parse_guid(fields[4]),
    )


def _parse_rights(text: str) -> int:
    if not text[:1].isdigit():
        return _tokens(text, _RIGHTS)
    if not _NUMBER.fullmatch(text):
        _refuse(f"{_quoted(text)} is no access mask")
    octal = re.fullmatch("0[0-7]+", text)
    try:
        value = int(text, 8 if octal else 0)
    except ValueError:
        _refuse(f"{_quoted(text)} is no access mask")
    if value > 0xFFFFFFFF:
        _refuse(f"{_quoted(text)} has more than 32 bits")
    return value


def _tokens(text: str, values: "dict[str, AceFlags] | dict[str, int]") -> int:
    bits = 0
    for start in range(0, len(text), 2):
        token = text[start : start + 2].upper()
        if token not in values:
            _refuse(f"{token!r} in {_quoted(text)} is unknown")
        bits |= values[token]
    return int(bits)


def _parse_guid(text: str) -> UUID | None:
    if not _GUID.fullmatch(text):
        _refuse(f"{_quoted(text)} is no GUID")
    return UUID(text) if text else None


def _format_acl(acl: Acl, control: int, flags: dict[str, Control]) -> str:
    shown = "".join(name for name, flag in flags.items() if control & flag)
    return shown + "".join(f"({_format_ace(ace)})" for ace in acl.aces)


def _format_ace(ace: Ace) -> str:
    kind = next((name for name, value in ACE_TYPES.items() if value == ace.type), None)
    if kind is None or ace.sid is None:
        _refuse(f"entries of type {ace.type} have no text form here")
    flags = "".join(name for name, value in ACE_FLAGS.items() if ace.flags & value)
    types = [str(guid) if guid else "" for guid in (ace.object_type, ace.inherited_object_type)]
    return ";".join((kind, flags, _format_rights(ace.mask), *types, format_sid(ace.sid)))


def _format_rights(mask: int) -> str:
    names = [name for name, bit in GENERIC_AND_STANDARD_RIGHTS.items() if mask & bit]
    whole = sum(GENERIC_AND_STANDARD_RIGHTS[name] for name in names) == mask
    return "".join(names) if whole and names else f"0x{mask:x}"


def _quoted(text: str) -> str:
    """A text as an error repeats it: as much of it as somebody would read."""
    return repr(text if len(text) <= _QUOTED_AT_MOST else f"{text[:_QUOTED_AT_MOST]}…")


def _refuse(reason: str) -> NoReturn:
    raise MQError(HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR, reason)
