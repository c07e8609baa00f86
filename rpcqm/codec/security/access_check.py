"""The rights on MSMQ's objects, and the access check of [MS-DTYP] 2.5.3.2."""

import enum
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from rpcqm.codec.security.descriptor import Ace, AceFlags, AceType, SecurityDescriptor
from rpcqm.codec.security.identifier import (
    ANONYMOUS,
    BUILTIN_ADMINISTRATORS,
    LOCAL_SYSTEM,
    OWNER_RIGHTS,
)

GENERIC_READ = 0x80000000
GENERIC_WRITE = 0x40000000
GENERIC_EXECUTE = 0x20000000
GENERIC_ALL = 0x10000000
ACCESS_SYSTEM_SECURITY = 0x01000000
WRITE_OWNER = 0x00080000
WRITE_DAC = 0x00040000
READ_CONTROL = 0x00020000
DELETE = 0x00010000

_EVERYTHING = 0x00FFFFFF
"""All specific and standard rights."""
_GENERIC = GENERIC_READ | GENERIC_WRITE | GENERIC_EXECUTE | GENERIC_ALL
_CACHE_AT_MOST = 1024
"""Principals whose rights one descriptor remembers; then all are forgotten and found anew."""


class MQQUEUEACCESSMASK(enum.IntFlag):
    """Rights on a queue ([MS-MQMQ] 2.2.24)."""

    MQSEC_DELETE_MESSAGE = 0x00000001
    MQSEC_PEEK_MESSAGE = 0x00000002
    MQSEC_WRITE_MESSAGE = 0x00000004
    MQSEC_DELETE_JOURNAL_MESSAGE = 0x00000008
    MQSEC_SET_QUEUE_PROPERTIES = 0x00000010
    MQSEC_GET_QUEUE_PROPERTIES = 0x00000020
    MQSEC_DELETE_QUEUE = 0x00010000
    MQSEC_GET_QUEUE_PERMISSIONS = 0x00020000
    MQSEC_CHANGE_QUEUE_PERMISSIONS = 0x00040000
    MQSEC_TAKE_QUEUE_OWNERSHIP = 0x00080000
    MQSEC_RECEIVE_MESSAGE = MQSEC_DELETE_MESSAGE | MQSEC_PEEK_MESSAGE
    MQSEC_RECEIVE_JOURNAL_MESSAGE = MQSEC_DELETE_JOURNAL_MESSAGE | MQSEC_PEEK_MESSAGE
    MQSEC_QUEUE_GENERIC_READ = (
        MQSEC_GET_QUEUE_PROPERTIES
        | MQSEC_GET_QUEUE_PERMISSIONS
        | MQSEC_RECEIVE_MESSAGE
        | MQSEC_RECEIVE_JOURNAL_MESSAGE
    )
    MQSEC_QUEUE_GENERIC_WRITE = (
        MQSEC_GET_QUEUE_PROPERTIES | MQSEC_GET_QUEUE_PERMISSIONS | MQSEC_WRITE_MESSAGE
    )
    MQSEC_QUEUE_GENERIC_ALL = (
        MQSEC_RECEIVE_MESSAGE
        | MQSEC_RECEIVE_JOURNAL_MESSAGE
        | MQSEC_WRITE_MESSAGE
        | MQSEC_SET_QUEUE_PROPERTIES
        | MQSEC_GET_QUEUE_PROPERTIES
        | MQSEC_DELETE_QUEUE
        | MQSEC_GET_QUEUE_PERMISSIONS
        | MQSEC_CHANGE_QUEUE_PERMISSIONS
        | MQSEC_TAKE_QUEUE_OWNERSHIP
    )


class MQQMACCESSMASK(enum.IntFlag):
    """Rights on a queue manager ([MS-MQMQ] 2.2.23)."""

    MQSEC_DELETE_DEADLETTER_MESSAGE = 0x00000001
    MQSEC_PEEK_DEADLETTER_MESSAGE = 0x00000002
    MQSEC_CREATE_QUEUE = 0x00000004
    MQSEC_SET_MACHINE_PROPERTIES = 0x00000010
    MQSEC_GET_MACHINE_PROPERTIES = 0x00000020
    MQSEC_DELETE_JOURNAL_QUEUE_MESSAGE = 0x00000040
    MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE = 0x00000080
    MQSEC_DELETE_MACHINE = 0x00010000
    MQSEC_GET_MACHINE_PERMISSIONS = 0x00020000
    MQSEC_CHANGE_MACHINE_PERMISSIONS = 0x00040000
    MQSEC_TAKE_MACHINE_OWNERSHIP = 0x00080000
    MQSEC_RECEIVE_DEADLETTER_MESSAGE = (
        MQSEC_DELETE_DEADLETTER_MESSAGE | MQSEC_PEEK_DEADLETTER_MESSAGE
    )
    MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE = (
        MQSEC_DELETE_JOURNAL_QUEUE_MESSAGE | MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE
    )
    MQSEC_MACHINE_GENERIC_READ = (
        MQSEC_GET_MACHINE_PROPERTIES
        | MQSEC_GET_MACHINE_PERMISSIONS
        | MQSEC_RECEIVE_DEADLETTER_MESSAGE
        | MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE
    )
    MQSEC_MACHINE_GENERIC_WRITE = (
        MQSEC_GET_MACHINE_PROPERTIES | MQSEC_GET_MACHINE_PERMISSIONS | MQSEC_CREATE_QUEUE
    )
    MQSEC_MACHINE_GENERIC_ALL = (
        MQSEC_RECEIVE_DEADLETTER_MESSAGE
        | MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE
        | MQSEC_CREATE_QUEUE
        | MQSEC_SET_MACHINE_PROPERTIES
        | MQSEC_GET_MACHINE_PROPERTIES
        | MQSEC_DELETE_MACHINE
        | MQSEC_GET_MACHINE_PERMISSIONS
        | MQSEC_CHANGE_MACHINE_PERMISSIONS
        | MQSEC_TAKE_MACHINE_OWNERSHIP
    )
    MQSEC_MACHINE_WORLD_RIGHTS = MQSEC_GET_MACHINE_PROPERTIES | MQSEC_GET_MACHINE_PERMISSIONS


class GenericMapping:
    """What the generic rights mean for one kind of object."""

    __slots__ = ("everything", "execute", "read", "write")

    def __init__(self, read: int, write: int, execute: int, everything: int) -> None:
        self.read = int(read)
        self.write = int(write)
        self.execute = int(execute)
        self.everything = int(everything)

    def map(self, mask: int) -> int:
        """Replace the generic bits of `mask` by the rights they stand for."""
        if not mask & _GENERIC:
            return mask
        specific = mask & ~_GENERIC
        specific |= self.read if mask & GENERIC_READ else 0
        specific |= self.write if mask & GENERIC_WRITE else 0
        specific |= self.execute if mask & GENERIC_EXECUTE else 0
        specific |= self.everything if mask & GENERIC_ALL else 0
        return specific


# Executing means nothing for queues and queue managers, hence the rights of everybody.
QUEUE_MAPPING = GenericMapping(
    MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_READ,
    MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_WRITE,
    0,
    MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_ALL,
)
QUEUE_MANAGER_MAPPING = GenericMapping(
    MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_READ,
    MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_WRITE,
    0,
    MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_ALL,
)


class Privilege(enum.IntFlag):
    """Privileges of a token that the check looks at ([MS-DTYP] 2.5.3.2)."""

    NONE = 0
    SeSecurityPrivilege = 1
    SeTakeOwnershipPrivilege = 2


_ADMINISTRATORS = frozenset({str(BUILTIN_ADMINISTRATORS), str(LOCAL_SYSTEM)})


def privileges_of(sids: AbstractSet[str]) -> Privilege:
    """The privileges that group membership brings: administrators have both, others none."""
    if _ADMINISTRATORS & sids:
        return Privilege.SeSecurityPrivilege | Privilege.SeTakeOwnershipPrivilege
    return Privilege.NONE


def _is_owner(descriptor: SecurityDescriptor, sids: AbstractSet[str]) -> bool:
    """Whether a principal has the implicit rights of an owner; Anonymous never has them (G83)."""
    return descriptor.owner != ANONYMOUS and str(descriptor.owner) in sids


def _limits_its_owner(descriptor: SecurityDescriptor) -> bool:
    aces = descriptor.dacl.aces if descriptor.dacl else ()
    return any(ace.sid == OWNER_RIGHTS and _is_effective(ace) for ace in aces)


def _is_effective(ace: Ace) -> bool:
    return not ace.flags & AceFlags.INHERIT_ONLY_ACE


_EVALUATED = frozenset(
    {
        AceType.ACCESS_ALLOWED_ACE_TYPE,
        AceType.ACCESS_DENIED_ACE_TYPE,
        AceType.ACCESS_DENIED_CALLBACK_ACE_TYPE,
    }
)


class Reason(enum.StrEnum):
    """Why a step of the check has the rights that it has."""

    PRIVILEGE = "privilege"
    OWNER = "owner"
    NO_LIST = "no list"
    ENTRY = "entry"


class Concern(enum.StrEnum):
    """Whether an entry of the list counts for a principal, or why not."""

    COUNTS = "counts"
    OTHERS = "others"
    INHERITED_ONLY = "inherited only"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the check, in their order.

    `mask` is what it is about, `decides` what of it no step before has decided; an entry that does
    not count decides nothing. `place` is that of an entry in its list.
    """

    reason: Reason
    allows: bool
    mask: int
    decides: int
    concern: Concern = Concern.COUNTS
    place: int | None = None
    ace: Ace | None = None


def steps(
    descriptor: SecurityDescriptor, sids: AbstractSet[str], mapping: GenericMapping = QUEUE_MAPPING
) -> Iterator[Step]:
    """The check of a principal, step by step ([MS-DTYP] 2.5.3.2).

    Conditions cannot be evaluated here, and count against the principal: a conditional entry
    never allows and always denies (G70). Entries for directory objects concern no queue.
    """
    decided = 0
    for reason, mask in _implicit(descriptor, sids):
        yield Step(reason, True, mask, mask & ~decided)
        decided |= mask
    if descriptor.dacl is None:
        yield Step(Reason.NO_LIST, True, _EVERYTHING, _EVERYTHING & ~decided)
        return
    if str(descriptor.owner) in sids:
        sids = sids | {str(OWNER_RIGHTS)}
    for place, ace in enumerate(descriptor.dacl.aces):
        allows = ace.type == AceType.ACCESS_ALLOWED_ACE_TYPE
        mask = mapping.map(ace.mask) & ~ACCESS_SYSTEM_SECURITY
        concern = _concern(ace, sids)
        decides = mask & ~decided if concern is Concern.COUNTS else 0
        yield Step(Reason.ENTRY, allows, mask, decides, concern, place, ace)
        decided |= decides


def _implicit(
    descriptor: SecurityDescriptor, sids: AbstractSet[str]
) -> Iterator[tuple[Reason, int]]:
    """What a principal may do whatever the list says."""
    held = privileges_of(sids)
    privileged = ACCESS_SYSTEM_SECURITY if held & Privilege.SeSecurityPrivilege else 0
    privileged |= WRITE_OWNER if held & Privilege.SeTakeOwnershipPrivilege else 0
    if privileged:
        yield Reason.PRIVILEGE, privileged
    if _is_owner(descriptor, sids) and not _limits_its_owner(descriptor):
        yield Reason.OWNER, READ_CONTROL | WRITE_DAC


def _concern(ace: Ace, sids: AbstractSet[str]) -> Concern:
    if ace.type not in _EVALUATED:
        return Concern.UNSUPPORTED
    if not _is_effective(ace):
        return Concern.INHERITED_ONLY
    return Concern.COUNTS if str(ace.sid) in sids else Concern.OTHERS


_AUDITED = frozenset({AceType.SYSTEM_AUDIT_ACE_TYPE, AceType.SYSTEM_AUDIT_CALLBACK_ACE_TYPE})
_OUTCOME = {
    True: AceFlags.SUCCESSFUL_ACCESS_ACE_FLAG,
    False: AceFlags.FAILED_ACCESS_ACE_FLAG,
}


def is_audited(
    descriptor: SecurityDescriptor,
    sids: AbstractSet[str],
    desired: int,
    granted: bool,
    mapping: GenericMapping = QUEUE_MAPPING,
) -> bool:
    """Whether the system access control list asks for a record of an access of a principal.

    It asks when one of its entries concerns the principal, one of the desired rights and the
    outcome ([MS-DTYP] 2.4.4.1 AceFlags, 2.4.4.10). Conditions cannot be evaluated here: a
    conditional entry asks for a record (G70).
    """
    if descriptor.sacl is None:
        return False
    desired = mapping.map(desired)
    return any(
        ace.type in _AUDITED
        and _is_effective(ace)
        and ace.flags & _OUTCOME[granted]
        and mapping.map(ace.mask) & desired
        and str(ace.sid) in sids
        for ace in descriptor.sacl.aces
    )


class PreparedDescriptor:
    """A descriptor ready for many checks: the answer for each principal is remembered.

    It is immutable; a changed descriptor is prepared anew. `audited` tells whether it has a
    system access control list at all. `sids` are a principal's own SID and those of its groups, in
    text form. Source: [MS-DTYP] 2.5.3.2 EvaluateTokenAgainstDescriptor.
    """

    __slots__ = ("_answers", "_mapping", "audited", "descriptor")

    def __init__(
        self, descriptor: SecurityDescriptor, mapping: GenericMapping = QUEUE_MAPPING
    ) -> None:
        self.descriptor = descriptor
        self._mapping = mapping
        self._answers: dict[frozenset[str], int] = {}
        self.audited = descriptor.sacl is not None and bool(descriptor.sacl.aces)

    def granted(self, sids: frozenset[str]) -> int:
        """All rights that the descriptor grants to a principal."""
        answer = self._answers.get(sids)
        if answer is None:
            answer = self._evaluate(sids)
            if len(self._answers) >= _CACHE_AT_MOST:
                self._answers.clear()
            self._answers[sids] = answer
        return answer

    def allows(self, sids: frozenset[str], desired: int) -> bool:
        """Whether all rights of `desired`, generic ones included, are granted."""
        return not self._mapping.map(desired) & ~self.granted(sids)

    def audits(self, sids: frozenset[str], desired: int, granted: bool) -> bool:
        """Whether an access with that outcome is to be recorded."""
        return is_audited(self.descriptor, sids, desired, granted, self._mapping)

    def _evaluate(self, sids: frozenset[str]) -> int:
        granted = 0
        for step in steps(self.descriptor, sids, self._mapping):
            granted |= step.decides if step.allows else 0
        return granted

    def steps(self, sids: frozenset[str]) -> Iterator[Step]:
        """What `granted` is made of, for those who want to know why."""
        return steps(self.descriptor, sids, self._mapping)
