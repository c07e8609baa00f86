"""Who an account of a domain is, as its controller says in a ticket ([MS-PAC] 2.2, 2.5).

What is read here counts only when the ticket's privilege attribute certificate was signed for the
service that reads it; the library of Kerberos checks that.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.codec.pickling import serialized
from rpcqm.codec.security.identifier import Sid, is_account
from rpcqm.codec.types.pac import (
    LOGON_EXTRA_SIDS,
    LOGON_GUEST,
    LOGON_RESOURCE_GROUPS,
    SE_GROUP_ENABLED,
    USER_ACCOUNT_DISABLED,
)

MOST_GROUPS = 1024
"""Groups of an account of a domain.

Windows takes about as many into an access token.

Bound `domain.groups_of_account` [groups]: the logon is refused.
"""

_NT_AUTHORITY, _DOMAIN_SIDS, _DOMAIN_SIZE = 5, 21, 4
_ASSERTED = 18
"""The authority whose identifiers say how a controller has found out who an account is."""
_LOGON = serialized("pac", "PAC_LOGON_INFO")


@dataclass(frozen=True, slots=True)
class LogonInformation:
    """An account of a domain with its groups; `domain` is the short name, such as CORP."""

    account: str
    domain: str
    sid: Sid
    groups: frozenset[Sid]


@lru_cache(maxsize=128)  # programs log on for each request, with the same ticket for hours
def read_logon_information(octets: bytes) -> LogonInformation:
    """Read a KERB_VALIDATION_INFO.

    Raises DecodeError also for what no account may log on with: a guest's, one that is disabled,
    one whose identifier is of no account, and one with more than MOST_GROUPS groups.
    """
    found = _LOGON.decode(octets).LogonInfo
    if found is None or found.LogonDomainId is None:
        raise DecodeError("the logon information names no domain")
    if found.GroupCount + found.SidCount + found.ResourceGroupCount > MOST_GROUPS:
        raise DecodeError(f"the account has more than {MOST_GROUPS} groups")
    if found.UserFlags & LOGON_GUEST or found.UserAccountControl & USER_ACCOUNT_DISABLED:
        raise DecodeError("the account is a guest's, or disabled")
    domain = _domain(found.LogonDomainId)
    sid = _relative(domain, found.UserId)
    if not is_account(sid):
        raise DecodeError(f"{sid} is no account of a domain")
    groups = frozenset(_groups(found, domain)) - {sid}
    return LogonInformation(
        found.EffectiveName.Buffer or "", found.LogonDomainName.Buffer or "", sid, groups
    )


def _groups(found: Any, domain: Sid) -> Iterator[Sid]:
    """The groups that are enabled."""
    yield _relative(domain, found.PrimaryGroupId)
    yield from _enabled(domain, found.GroupIds)
    if found.UserFlags & LOGON_EXTRA_SIDS:
        for each in found.ExtraSids or ():
            if each.Attributes & SE_GROUP_ENABLED and each.Sid is not None:
                yield from _of_domains(_sid(each.Sid))
    if found.UserFlags & LOGON_RESOURCE_GROUPS and found.ResourceGroupDomainSid is not None:
        yield from _enabled(_domain(found.ResourceGroupDomainSid), found.ResourceGroupIds)


def _enabled(domain: Sid, groups: Iterable[Any] | None) -> Iterator[Sid]:
    for each in groups or ():
        if each.Attributes & SE_GROUP_ENABLED:
            yield _relative(domain, each.RelativeId)


def _of_domains(sid: Sid) -> Iterator[Sid]:
    """The identifier itself if a domain may give it: never a group or a user of this machine."""
    of_domain = _is_of_domain(sid) and len(sid.sub_authorities) > _DOMAIN_SIZE
    if of_domain or sid.authority == _ASSERTED:
        yield sid


def _domain(value: Any) -> Sid:
    """The identifier of a domain; DecodeError for any other."""
    sid = _sid(value)
    if not _is_of_domain(sid) or len(sid.sub_authorities) != _DOMAIN_SIZE:
        raise DecodeError(f"{sid} is no domain")
    return sid


def _is_of_domain(sid: Sid) -> bool:
    parts = sid.sub_authorities
    return sid.authority == _NT_AUTHORITY and parts[:1] == (_DOMAIN_SIDS,)


def _relative(domain: Sid, identifier: int) -> Sid:
    return Sid(domain.authority, (*domain.sub_authorities, identifier))


def _sid(value: Any) -> Sid:
    """Raises DecodeError for a SID of another revision, or with too many parts."""
    if value.Revision != 1:
        raise DecodeError(f"SID of revision {value.Revision}")
    try:
        authority = int.from_bytes(value.IdentifierAuthority.Value, "big")
        return Sid(authority, tuple(value.SubAuthority))
    except ValueError as error:
        raise DecodeError(str(error)) from error
