"""Rights on queues and queue managers as entries of a directory's objects, and back.

One bit means two things: 0x20 is "get properties" of a queue and "write every attribute" of a
directory's object. So descriptors are translated and never copied ([MS-MQDSSM] 3.1.6.17 copies;
G780). A right to messages becomes an entry for one extended right, a right to properties the right
to read or write the object's attributes; standard rights are the same on both sides.

Order is kept, and so a denial wins in the directory over what it wins over here. What the object
has inherited is read and never written: the directory brings it itself.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from rpcqm.codec.security.access_check import (
    DELETE,
    MQQMACCESSMASK,
    MQQUEUEACCESSMASK,
    QUEUE_MANAGER_MAPPING,
    QUEUE_MAPPING,
    READ_CONTROL,
    WRITE_DAC,
    GenericMapping,
)
from rpcqm.codec.security.descriptor import Ace, AceFlags, AceType, Acl, SecurityDescriptor
from rpcqm.codec.security.identifier import EVERYONE, Sid

CREATE_CHILD = 0x00000001
DELETE_CHILD = 0x00000002
LIST_CHILDREN = 0x00000004
READ_PROPERTY = 0x00000010
WRITE_PROPERTY = 0x00000020
CONTROL_ACCESS = 0x00000100
"""Rights on objects of a directory ([MS-ADTS] 5.1.3.2)."""

QUEUE_CLASS = UUID("9a0dc343-c100-11d1-bbc5-0080c76670c0")
CONFIGURATION_CLASS = UUID("9a0dc344-c100-11d1-bbc5-0080c76670c0")
"""The classes mSMQQueue and mSMQConfiguration ([MS-ADSC] 2.165, 2.158)."""

_STANDARD = 0x000F0000
_PROPERTIES = READ_PROPERTY | WRITE_PROPERTY
_DIRECTORY_MAPPING = GenericMapping(0x00020094, 0x00020028, 0x00020004, 0x000F01FF)
"""What the generic rights mean for objects of a directory ([MS-ADTS] 5.1.3.2)."""

_Q, _M = MQQUEUEACCESSMASK, MQQMACCESSMASK


@dataclass(frozen=True, slots=True)
class ObjectRights:
    """How the rights of one kind of object are paired with those of its directory's class.

    `extended` has the right's bit with the mask and the object type of its entry.
    """

    object_class: UUID
    mapping: GenericMapping
    get_properties: int
    set_properties: int
    extended: dict[int, tuple[int, UUID]]


def _message_right(number: int, family: str = "06bd3200-df3e-11d1") -> tuple[int, UUID]:
    first, rest = family[:8], family[8:]
    return CONTROL_ACCESS, UUID(f"{int(first, 16) + number:08x}{rest}-9c86-006008764d0e")


_DEAD_LETTERS = "4b6e08c0-df3c-11d1"

QUEUE_RIGHTS = ObjectRights(
    QUEUE_CLASS,
    QUEUE_MAPPING,
    int(_Q.MQSEC_GET_QUEUE_PROPERTIES),
    int(_Q.MQSEC_SET_QUEUE_PROPERTIES),
    {
        int(_Q.MQSEC_DELETE_MESSAGE): _message_right(0),
        int(_Q.MQSEC_PEEK_MESSAGE): _message_right(1),
        int(_Q.MQSEC_WRITE_MESSAGE): _message_right(2),
        int(_Q.MQSEC_DELETE_JOURNAL_MESSAGE): _message_right(3),
    },
)
QUEUE_MANAGER_RIGHTS = ObjectRights(
    CONFIGURATION_CLASS,
    QUEUE_MANAGER_MAPPING,
    int(_M.MQSEC_GET_MACHINE_PROPERTIES),
    int(_M.MQSEC_SET_MACHINE_PROPERTIES),
    {
        int(_M.MQSEC_DELETE_DEADLETTER_MESSAGE): _message_right(0, _DEAD_LETTERS),
        int(_M.MQSEC_PEEK_DEADLETTER_MESSAGE): _message_right(1, _DEAD_LETTERS),
        int(_M.MQSEC_DELETE_JOURNAL_QUEUE_MESSAGE): _message_right(2, _DEAD_LETTERS),
        int(_M.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE): _message_right(3, _DEAD_LETTERS),
        int(_M.MQSEC_CREATE_QUEUE): (CREATE_CHILD, QUEUE_CLASS),
    },
)

_ALLOW, _DENY = AceType.ACCESS_ALLOWED_ACE_TYPE, AceType.ACCESS_DENIED_ACE_TYPE
_OBJECT_ENTRY = {
    _ALLOW: AceType.ACCESS_ALLOWED_OBJECT_ACE_TYPE,
    _DENY: AceType.ACCESS_DENIED_OBJECT_ACE_TYPE,
}
_MEANING: dict[int, AceType] = {
    AceType.ACCESS_ALLOWED_ACE_TYPE: _ALLOW,
    AceType.ACCESS_ALLOWED_OBJECT_ACE_TYPE: _ALLOW,
    AceType.ACCESS_DENIED_ACE_TYPE: _DENY,
    AceType.ACCESS_DENIED_OBJECT_ACE_TYPE: _DENY,
    AceType.ACCESS_DENIED_CALLBACK_ACE_TYPE: _DENY,
    AceType.ACCESS_DENIED_CALLBACK_OBJECT_ACE_TYPE: _DENY,
}
"""Conditions cannot be evaluated here, and so they never allow and always deny (G70)."""


def machine_entry(machine: Sid, changes_permissions: bool = False) -> Ace:
    """What a queue manager needs to keep an object of its own in the directory."""
    mask = READ_PROPERTY | WRITE_PROPERTY | LIST_CHILDREN | DELETE | READ_CONTROL
    return Ace(_ALLOW, mask=mask | (WRITE_DAC if changes_permissions else 0), sid=machine)


def to_directory(
    descriptor: SecurityDescriptor, rights: ObjectRights, machine: Sid
) -> SecurityDescriptor:
    """The list that the object of a queue or queue manager gets in the directory.

    Owner, group and audited accesses belong to the directory, and are not written. `machine` is
    the account of the queue manager, which has to keep the object. Everybody has every right where
    there is no list.
    """
    dacl = descriptor.dacl
    everything = Ace(_ALLOW, mask=rights.mapping.everything, sid=EVERYONE)
    entries = [everything] if dacl is None else dacl.aces
    written = [each for ace in entries for each in _to_entries(ace, rights)]
    written.append(machine_entry(machine, changes_permissions=True))
    return SecurityDescriptor(dacl=Acl(tuple(written), revision=4))


def _to_entries(ace: Ace, rights: ObjectRights) -> Iterator[Ace]:
    kind = _kind(ace)
    if kind is None or ace.flags & (AceFlags.INHERITED_ACE | AceFlags.INHERIT_ONLY_ACE):
        return
    mask = rights.mapping.map(ace.mask)
    plain = mask & _STANDARD
    plain |= READ_PROPERTY if mask & rights.get_properties else 0
    plain |= WRITE_PROPERTY if mask & rights.set_properties else 0
    if plain:
        yield Ace(kind, mask=plain, sid=ace.sid)
    for bit, (right, object_type) in rights.extended.items():
        if mask & bit:
            yield Ace(_OBJECT_ENTRY[kind], mask=right, sid=ace.sid, object_type=object_type)


def from_directory(
    descriptor: SecurityDescriptor, rights: ObjectRights, machine: Sid | None = None
) -> SecurityDescriptor:
    """The rights that the descriptor of an object in the directory gives here.

    An object without a list gives nobody a right: its list was not shown. The entry by which the
    queue manager itself, the account `machine`, keeps the object says nothing about messages, and
    is left out.
    """
    own = None if machine is None else machine_entry(machine, changes_permissions=True)
    dacl = descriptor.dacl or Acl()
    read = [_from_entry(ace, rights) for ace in dacl.aces if ace != own]
    entries = _joined(ace for ace in read if ace is not None)
    return SecurityDescriptor(descriptor.owner, descriptor.group, dacl=Acl(tuple(entries)))


def _from_entry(ace: Ace, rights: ObjectRights) -> Ace | None:
    kind = _kind(ace)
    if kind is None or ace.flags & AceFlags.INHERIT_ONLY_ACE:
        return None
    if ace.inherited_object_type not in (None, rights.object_class):
        return None
    mask = _rights_in(ace, kind, rights)
    if not mask:
        return None
    return Ace(kind, ace.flags & AceFlags.INHERITED_ACE, mask, ace.sid)


def _rights_in(ace: Ace, kind: AceType, rights: ObjectRights) -> int:
    """The bits that an entry is about.

    An entry for a single attribute or set of them allows nothing here, where a right is about all
    properties; one that denies such a part denies all of it.
    """
    mask = _DIRECTORY_MAPPING.map(ace.mask)
    found = mask & _STANDARD
    of_all = ace.object_type in (None, rights.object_class)
    if of_all or (kind == _DENY and mask & _PROPERTIES):
        found |= rights.get_properties if mask & READ_PROPERTY else 0
        found |= rights.set_properties if mask & WRITE_PROPERTY else 0
    for bit, (right, object_type) in rights.extended.items():
        if mask & right and ace.object_type in (None, object_type):
            found |= bit
    return found


def _kind(ace: Ace) -> AceType | None:
    return None if ace.sid is None else _MEANING.get(ace.type)


def _joined(entries: Iterable[Ace]) -> list[Ace]:
    """Neighbours that differ in nothing but their rights are one entry."""
    joined: list[Ace] = []
    for ace in entries:
        if joined and replace(joined[-1], mask=ace.mask) == ace:
            joined[-1] = replace(ace, mask=joined[-1].mask | ace.mask)
        else:
            joined.append(ace)
    return joined
