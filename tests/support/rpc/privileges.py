"""Privilege attribute certificates as a domain controller makes them ([MS-PAC] 2.3 to 2.8)."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from impacket.krb5.crypto import _SHA1AES256, Key

from rpcqm.codec.pickling import serialized
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.types.pac import (
    CYPHER_BLOCK,
    FILETIME,
    GROUP_MEMBERSHIP,
    KERB_SID_AND_ATTRIBUTES,
    KERB_VALIDATION_INFO,
    LOGON_EXTRA_SIDS,
    LOGON_RESOURCE_GROUPS,
    PAC_LOGON_INFO,
    RPC_SID,
    RPC_SID_IDENTIFIER_AUTHORITY,
    RPC_UNICODE_STRING,
    USER_SESSION_KEY,
)

DOMAIN = "S-1-5-21-11-22-33"
ENABLED = 7
ALICE, USERS, BUYERS = 1103, 513, 1110
LOGON_INFORMATION, SERVER_CHECKSUM, PRIVILEGED_CHECKSUM, CLIENT_INFORMATION = 1, 6, 7, 10
_CHECKSUM_SIZE = 12
_HMAC_SHA1_96_AES256 = 16
_SIGNATURE_USAGE = 17


@dataclass(frozen=True)
class Person:
    """What a controller would say of an account: groups by number, others by SID."""

    name: str = "alice"
    number: int = ALICE
    groups: Sequence[int] = (USERS,)
    extra: Sequence[str] = ()
    resource: Sequence[int] = ()
    resource_domain: str | None = None
    domain: str | None = DOMAIN
    domain_name: str = "CORP"
    attributes: int = ENABLED
    primary: int = USERS
    flags: int | None = None
    control: int = 0x10


def logon_information(person: Person) -> bytes:
    """A KERB_VALIDATION_INFO as octets."""
    flags = LOGON_EXTRA_SIDS * bool(person.extra) | LOGON_RESOURCE_GROUPS * bool(person.resource)
    never = FILETIME(dwLowDateTime=0xFFFFFFFF, dwHighDateTime=0x7FFFFFFF)
    extra = [
        KERB_SID_AND_ATTRIBUTES(Sid=sid(each), Attributes=person.attributes)
        for each in person.extra
    ]
    value = KERB_VALIDATION_INFO(
        LogonTime=never,
        LogoffTime=never,
        KickOffTime=never,
        PasswordLastSet=never,
        PasswordCanChange=never,
        PasswordMustChange=never,
        EffectiveName=text(person.name),
        FullName=text(""),
        LogonScript=text(""),
        ProfilePath=text(""),
        HomeDirectory=text(""),
        HomeDirectoryDrive=text(""),
        LogonCount=1,
        BadPasswordCount=0,
        UserId=person.number,
        PrimaryGroupId=person.primary,
        GroupCount=len(person.groups),
        GroupIds=_memberships(person.groups, person.attributes),
        UserFlags=flags if person.flags is None else person.flags,
        UserSessionKey=USER_SESSION_KEY(data=[CYPHER_BLOCK(data=bytes(8))] * 2),
        LogonServer=text("DC1"),
        LogonDomainName=text(person.domain_name),
        LogonDomainId=None if person.domain is None else sid(person.domain),
        Reserved1=[0, 0],
        UserAccountControl=person.control,
        SubAuthStatus=0,
        LastSuccessfulILogon=never,
        LastFailedILogon=never,
        FailedILogonCount=0,
        Reserved3=0,
        SidCount=len(extra),
        ExtraSids=extra or None,
        ResourceGroupDomainSid=sid(person.resource_domain) if person.resource_domain else None,
        ResourceGroupCount=len(person.resource),
        ResourceGroupIds=_memberships(person.resource, person.attributes),
    )
    return serialized("pac", "PAC_LOGON_INFO").encode(PAC_LOGON_INFO(LogonInfo=value))


def _memberships(groups: Sequence[int], attributes: int) -> list[GROUP_MEMBERSHIP] | None:
    made = [GROUP_MEMBERSHIP(RelativeId=each, Attributes=attributes) for each in groups]
    return made or None


def text(value: str) -> RPC_UNICODE_STRING:
    size = len(value.encode("utf-16-le"))
    return RPC_UNICODE_STRING(Length=size, MaximumLength=size, Buffer=value or None)


def sid(value: str) -> RPC_SID:
    parsed = Sid.parse(value)
    authority = RPC_SID_IDENTIFIER_AUTHORITY(Value=parsed.authority.to_bytes(6, "big"))
    parts = list(parsed.sub_authorities)
    return RPC_SID(
        Revision=1, SubAuthorityCount=len(parts), IdentifierAuthority=authority, SubAuthority=parts
    )


def certificate(information: bytes | None, client: str, authenticated_at: int, key: bytes) -> bytes:
    """A PAC for a service with an AES key: signed for it, and by nobody else that it could ask.

    `authenticated_at` is in seconds since 1970, as in the ticket.
    """
    name = client.encode("utf-16-le")
    time = (authenticated_at + 11_644_473_600) * 10_000_000
    parts = {CLIENT_INFORMATION: struct.pack("<QH", time, len(name)) + name}
    if information is not None:
        parts[LOGON_INFORMATION] = information
    empty = struct.pack("<i", _HMAC_SHA1_96_AES256) + bytes(_CHECKSUM_SIZE)
    parts |= {SERVER_CHECKSUM: empty, PRIVILEGED_CHECKSUM: empty}
    unsigned = _laid_out(parts)
    signature = _SHA1AES256.checksum(Key(18, key), _SIGNATURE_USAGE, unsigned)
    parts[SERVER_CHECKSUM] = struct.pack("<i", _HMAC_SHA1_96_AES256) + signature
    return _laid_out(parts)


def _laid_out(parts: dict[int, bytes]) -> bytes:
    offset = 8 + 16 * len(parts)
    heads, bodies = [struct.pack("<II", len(parts), 0)], []
    for kind, body in sorted(parts.items()):
        heads.append(struct.pack("<IIQ", kind, len(body), offset))
        bodies.append(body.ljust(-(-len(body) // 8) * 8, b"\0"))
        offset += len(bodies[-1])
    return b"".join(heads + bodies)
