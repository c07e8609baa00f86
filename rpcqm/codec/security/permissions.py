"""Permissions of queues and of the queue manager in plain words, and changes of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from rpcqm.codec.security.access_check import (
    MQQMACCESSMASK,
    MQQUEUEACCESSMASK,
    QUEUE_MANAGER_MAPPING,
    QUEUE_MAPPING,
    GenericMapping,
)
from rpcqm.codec.security.descriptor import Ace, AceType, Acl, SecurityDescriptor
from rpcqm.codec.security.identifier import (
    ANONYMOUS,
    AUTHENTICATED_USERS,
    BUILTIN_ADMINISTRATORS,
    EVERYONE,
    LOCAL_SYSTEM,
    Sid,
)

_Q, _M = MQQUEUEACCESSMASK, MQQMACCESSMASK


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words for the rights of one kind of object; some of them include others."""

    words: dict[str, int]
    mapping: GenericMapping

    @property
    def full(self) -> int:
        """Every right."""
        return self.words["full"]


QUEUE = Vocabulary(
    {
        "full": int(_Q.MQSEC_QUEUE_GENERIC_ALL),
        "receive": int(_Q.MQSEC_RECEIVE_MESSAGE),
        "receive-journal": int(_Q.MQSEC_RECEIVE_JOURNAL_MESSAGE),
        "peek": int(_Q.MQSEC_PEEK_MESSAGE),
        "send": int(_Q.MQSEC_WRITE_MESSAGE),
        "get-properties": int(_Q.MQSEC_GET_QUEUE_PROPERTIES),
        "set-properties": int(_Q.MQSEC_SET_QUEUE_PROPERTIES),
        "get-permissions": int(_Q.MQSEC_GET_QUEUE_PERMISSIONS),
        "change-permissions": int(_Q.MQSEC_CHANGE_QUEUE_PERMISSIONS),
        "take-ownership": int(_Q.MQSEC_TAKE_QUEUE_OWNERSHIP),
        "delete": int(_Q.MQSEC_DELETE_QUEUE),
    },
    QUEUE_MAPPING,
)
MACHINE = Vocabulary(
    {
        "full": int(_M.MQSEC_MACHINE_GENERIC_ALL),
        "receive-dead-letter": int(_M.MQSEC_RECEIVE_DEADLETTER_MESSAGE),
        "peek-dead-letter": int(_M.MQSEC_PEEK_DEADLETTER_MESSAGE),
        "receive-journal": int(_M.MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE),
        "peek-journal": int(_M.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE),
        "create-queue": int(_M.MQSEC_CREATE_QUEUE),
        "get-properties": int(_M.MQSEC_GET_MACHINE_PROPERTIES),
        "set-properties": int(_M.MQSEC_SET_MACHINE_PROPERTIES),
        "get-permissions": int(_M.MQSEC_GET_MACHINE_PERMISSIONS),
        "change-permissions": int(_M.MQSEC_CHANGE_MACHINE_PERMISSIONS),
        "take-ownership": int(_M.MQSEC_TAKE_MACHINE_OWNERSHIP),
        "delete": int(_M.MQSEC_DELETE_MACHINE),
    },
    QUEUE_MANAGER_MAPPING,
)
FULL = QUEUE.full
RIGHTS = QUEUE.words

WELL_KNOWN: dict[str, Sid] = {
    "everyone": EVERYONE,
    "anonymous": ANONYMOUS,
    "authenticated": AUTHENTICATED_USERS,
    "administrators": BUILTIN_ADMINISTRATORS,
    "users": Sid(5, (32, 545)),
    "guests": Sid(5, (32, 546)),
    "system": LOCAL_SYSTEM,
}
"""Words for identifiers that are the same on every computer."""

_ALLOW, _DENY = AceType.ACCESS_ALLOWED_ACE_TYPE, AceType.ACCESS_DENIED_ACE_TYPE


@dataclass(frozen=True, slots=True)
class Permission:
    """The rights that one group or account has, and those that it is denied."""

    sid: Sid
    allowed: int
    denied: int


def permissions(descriptor: SecurityDescriptor, of: Vocabulary = QUEUE) -> list[Permission]:
    """The permissions of each account and group; entries of other kinds are left out.

    A descriptor without a list allows everything to everyone.
    """
    if descriptor.dacl is None:
        return [Permission(EVERYONE, of.full, 0)]
    found: dict[Sid, Permission] = {}
    for ace in descriptor.dacl.aces:
        if ace.sid is None or ace.type not in (_ALLOW, _DENY):
            continue
        known = found.get(ace.sid, Permission(ace.sid, 0, 0))
        mask = of.mapping.map(ace.mask)
        if ace.type == _ALLOW:
            found[ace.sid] = replace(known, allowed=known.allowed | mask)
        else:
            found[ace.sid] = replace(known, denied=known.denied | mask)
    return list(found.values())


def granted(
    descriptor: SecurityDescriptor, sid: Sid, mask: int, of: Vocabulary = QUEUE
) -> SecurityDescriptor:
    """Allow `mask` to `sid`, and remove what denies any of it to `sid`."""
    known = next((p.allowed for p in permissions(descriptor, of) if p.sid == sid), 0)
    aces = _without(_entries(descriptor, of), sid, mask, of, {_DENY})
    others = _without(aces, sid, known, of, {_ALLOW})
    return _with_entries(descriptor, [*others, _entry(_ALLOW, known | mask, sid)])


def denied(
    descriptor: SecurityDescriptor, sid: Sid, mask: int, of: Vocabulary = QUEUE
) -> SecurityDescriptor:
    """Deny `mask` to `sid`; the new entry comes first, so that it wins over what allows it.

    What is allowed stays in the list, and counts again when the denial is taken back.
    """
    aces = _without(_entries(descriptor, of), sid, mask, of, {_DENY})
    return _with_entries(descriptor, [_entry(_DENY, mask, sid), *aces])


def revoked(
    descriptor: SecurityDescriptor, sid: Sid, mask: int, of: Vocabulary = QUEUE
) -> SecurityDescriptor:
    """Remove the bits of `mask` from the entries of `sid` that allow or deny."""
    aces = _without(_entries(descriptor, of), sid, mask, of, {_ALLOW, _DENY})
    return _with_entries(descriptor, [*aces])


def undenied(
    descriptor: SecurityDescriptor, sid: Sid, mask: int, of: Vocabulary = QUEUE
) -> SecurityDescriptor:
    """Remove the bits of `mask` from the entries that deny them to `sid`."""
    return _with_entries(descriptor, [*_without(_entries(descriptor, of), sid, mask, of, {_DENY})])


def has_way_back(descriptor: SecurityDescriptor, of: Vocabulary = QUEUE) -> bool:
    """Whether some entry lets somebody change the permissions, who is not denied that."""
    ruling = of.words["change-permissions"]
    return any(each.allowed & ~each.denied & ruling for each in permissions(descriptor, of))


def words_of(mask: int, of: Vocabulary = QUEUE) -> str:
    """A mask in words, the larger ones first."""
    return ", ".join(rights_in(mask, of)) or "nothing"


def rights_in(mask: int, of: Vocabulary = QUEUE) -> list[str]:
    """The words of a mask, the larger ones first; none for a mask without rights."""
    found = []
    rest = mask
    for word, bits in of.words.items():
        if bits & mask == bits and bits & rest:
            found.append(word)
            rest &= ~bits
    if rest:
        found.append(f"0x{rest:x}")
    return found


def mask_of(words: Iterable[str], of: Vocabulary = QUEUE) -> int:
    """The mask of some words; every right if there is no word."""
    return reduce(or_, (of.words[each] for each in words), 0) or of.full


def _entries(descriptor: SecurityDescriptor, of: Vocabulary) -> tuple[Ace, ...]:
    if descriptor.dacl is None:
        return (_entry(_ALLOW, of.full, EVERYONE),)
    return descriptor.dacl.aces


def _without(
    aces: Iterable[Ace], sid: Sid, mask: int, of: Vocabulary, types: set[AceType]
) -> Iterable[Ace]:
    """The entries without the bits of `mask` for `sid`; an entry without other bits is dropped."""
    for ace in aces:
        if ace.sid != sid or ace.type not in types:
            yield ace
        elif rest := of.mapping.map(ace.mask) & ~mask:
            yield replace(ace, mask=rest)


def _entry(kind: AceType, mask: int, sid: Sid) -> Ace:
    return Ace(kind, mask=mask, sid=sid)


def _with_entries(descriptor: SecurityDescriptor, aces: list[Ace]) -> SecurityDescriptor:
    """A descriptor of the list alone, since only the parts that it has are changed."""
    revision = descriptor.dacl.revision if descriptor.dacl else 2
    return SecurityDescriptor(dacl=Acl(tuple(aces), revision))
