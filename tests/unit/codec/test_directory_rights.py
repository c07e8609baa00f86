"""Rights of queues and queue managers as entries of a directory's objects, and back."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.codec.security.access_check import PreparedDescriptor
from rpcqm.codec.security.descriptor import Ace, AceFlags, AceType, Acl, SecurityDescriptor
from rpcqm.codec.security.directory_rights import (
    CONFIGURATION_CLASS,
    CONTROL_ACCESS,
    QUEUE_CLASS,
    QUEUE_MANAGER_RIGHTS,
    QUEUE_RIGHTS,
    READ_PROPERTY,
    WRITE_PROPERTY,
    ObjectRights,
    from_directory,
    machine_entry,
    to_directory,
)
from rpcqm.codec.security.identifier import EVERYONE, Sid
from rpcqm.codec.security.sddl import parse_sddl

ALICE = Sid.parse("S-1-5-21-1-2-3-1001")
STAFF = Sid.parse("S-1-5-21-1-2-3-1002")
MACHINE = Sid.parse("S-1-5-21-1-2-3-1103")
PEOPLE = (ALICE, STAFF, EVERYONE)
BOTH = [pytest.param(QUEUE_RIGHTS, id="queue"), pytest.param(QUEUE_MANAGER_RIGHTS, id="machine")]
PARTS = UUID("77b5b886-944a-11d1-aebd-0000f80367c1")
"""A set of properties, which is a part of all of them."""

allow_or_deny = st.sampled_from([AceType.ACCESS_ALLOWED_ACE_TYPE, AceType.ACCESS_DENIED_ACE_TYPE])
object_entries = st.sampled_from(
    [AceType.ACCESS_ALLOWED_OBJECT_ACE_TYPE, AceType.ACCESS_DENIED_OBJECT_ACE_TYPE]
)
people = st.sampled_from(PEOPLE)
everywhere = st.sampled_from([READ_PROPERTY, WRITE_PROPERTY, 0x10000, 0x40000, 0x80000000])
anything = everywhere | st.just(CONTROL_ACCESS) | st.just(1) | st.just(0x10000000)
GUIDS = [
    guid
    for rights in (QUEUE_RIGHTS, QUEUE_MANAGER_RIGHTS)
    for guid in (*(each[1] for each in rights.extended.values()), uuid4(), None)
]


def full(rights: ObjectRights) -> int:
    return rights.mapping.everything


def bits(rights: ObjectRights) -> list[int]:
    return [1 << place for place in range(32) if full(rights) >> place & 1]


def listed(aces: list[Ace]) -> SecurityDescriptor:
    return SecurityDescriptor(dacl=Acl(tuple(aces), 4))


def aces_of(descriptor: SecurityDescriptor) -> tuple[Ace, ...]:
    assert descriptor.dacl is not None
    return descriptor.dacl.aces


def granted(descriptor: SecurityDescriptor, person: Sid, rights: ObjectRights) -> int:
    sids = frozenset({str(person), str(EVERYONE)})
    return PreparedDescriptor(descriptor, rights.mapping).granted(sids) & full(rights)


def decisions(aces: list[Ace], person: Sid) -> Iterator[tuple[int, UUID | None, bool]]:
    """What each entry says of a person, as a directory reads its entries ([MS-ADTS] 5.1.3.3)."""
    for ace in aces:
        if ace.sid in (person, EVERYONE) and not ace.flags & AceFlags.INHERIT_ONLY_ACE:
            allowed = ace.type in (0x00, 0x05)
            yield ace.mask, ace.object_type, allowed


def directory_allows(aces: list[Ace], person: Sid, right: int, about: UUID | None) -> bool:
    for mask, object_type, allowed in decisions(aces, person):
        everything = mask & 0x10000000 or (mask & 0x80000000 and right & 0x20014)
        if (mask & right or everything) and object_type in (None, about):
            return allowed
    return False


@pytest.mark.parametrize("rights", BOTH)
@given(data=st.data())
def test_permissions_come_back_from_the_directory_as_they_were(
    rights: ObjectRights, data: st.DataObject
) -> None:
    masks = st.integers(1, full(rights)).map(lambda mask: mask & full(rights)).filter(bool)
    one = st.builds(lambda kind, mask, sid: Ace(kind, 0, mask, sid), allow_or_deny, masks, people)
    before = SecurityDescriptor(dacl=Acl(tuple(data.draw(st.lists(one, max_size=6)))))
    octets = to_directory(before, rights, MACHINE).encode()
    after = from_directory(SecurityDescriptor.decode(octets), rights, MACHINE)
    for person in PEOPLE:
        assert granted(after, person, rights) == granted(before, person, rights)
    again = from_directory(to_directory(after, rights, MACHINE), rights, MACHINE)
    assert again == after


@pytest.mark.parametrize("rights", BOTH)
@given(data=st.data())
def test_a_right_is_granted_here_as_the_directory_grants_its_pair(
    rights: ObjectRights, data: st.DataObject
) -> None:
    plain = st.builds(
        lambda kind, mask, sid: Ace(kind, 0, mask, sid), allow_or_deny, anything, people
    )
    about = st.builds(
        lambda kind, sid, guid: Ace(kind, 0, CONTROL_ACCESS, sid, guid),
        object_entries,
        people,
        st.sampled_from(GUIDS),
    )
    aces = data.draw(st.lists(plain | about, max_size=8))
    read = from_directory(listed(aces), rights)
    for person in PEOPLE:
        found = granted(read, person, rights)
        for bit, (right, guid) in rights.extended.items():
            assert bool(found & bit) == directory_allows(aces, person, right, guid)
        pairs = {rights.get_properties: READ_PROPERTY, rights.set_properties: WRITE_PROPERTY}
        for bit, right in {**pairs, 0x10000: 0x10000, 0x40000: 0x40000}.items():
            assert bool(found & bit) == directory_allows(aces, person, right, None)


@pytest.mark.parametrize("rights", BOTH)
def test_no_right_on_messages_is_a_right_on_the_object(rights: ObjectRights) -> None:
    """Copied bits would let everybody who may send or peek change the object."""
    for bit in bits(rights):
        written = to_directory(listed([Ace(0, 0, bit, EVERYONE)]), rights, MACHINE)
        for ace in aces_of(written)[:-1]:
            if ace.object_type is None:
                assert bit in (rights.get_properties, rights.set_properties) or bit == ace.mask
            else:
                assert (ace.mask, ace.object_type) == rights.extended[bit]


def of_the_schema(text: str) -> SecurityDescriptor:
    return listed(list(aces_of(parse_sddl(text))))


def test_entries_are_those_of_the_schema() -> None:
    before = parse_sddl(f"D:(D;;0x4;;;{ALICE})(A;;0x3;;;WD)(A;;0x20;;;WD)(A;;0x10;;;{STAFF})")
    after = to_directory(before, QUEUE_RIGHTS, MACHINE)
    assert after == of_the_schema(
        f"D:(OD;;CR;06bd3202-df3e-11d1-9c86-006008764d0e;;{ALICE})"
        "(OA;;CR;06bd3200-df3e-11d1-9c86-006008764d0e;;WD)"
        "(OA;;CR;06bd3201-df3e-11d1-9c86-006008764d0e;;WD)"
        f"(A;;RP;;;WD)(A;;WP;;;{STAFF})(A;;LCRPWPSDRCWD;;;{MACHINE})"
    )


def test_the_right_to_make_queues_is_one_about_their_class() -> None:
    before = parse_sddl(f"D:(A;;0x4;;;{ALICE})(A;;0x40;;;{ALICE})")
    after = to_directory(before, QUEUE_MANAGER_RIGHTS, MACHINE)
    assert after == of_the_schema(
        f"D:(OA;;CC;{QUEUE_CLASS};;{ALICE})"
        f"(OA;;CR;4b6e08c2-df3c-11d1-9c86-006008764d0e;;{ALICE})(A;;LCRPWPSDRCWD;;;{MACHINE})"
    )


def test_what_is_inherited_is_read_and_not_written() -> None:
    below = f"(OA;CIIO;CR;;{QUEUE_CLASS};{STAFF})"
    text = f"D:(A;ID;RP;;;{ALICE})(OA;ID;CR;;{CONFIGURATION_CLASS};{STAFF}){below}"
    read = from_directory(parse_sddl(text), QUEUE_RIGHTS)
    assert granted(read, ALICE, QUEUE_RIGHTS) == QUEUE_RIGHTS.get_properties
    assert granted(read, STAFF, QUEUE_RIGHTS) == 0
    assert aces_of(to_directory(read, QUEUE_RIGHTS, MACHINE)) == (machine_entry(MACHINE, True),)


def test_a_part_of_the_properties_allows_nothing_and_denies_all() -> None:
    allowed = from_directory(parse_sddl(f"D:(OA;;RPWP;{PARTS};;{ALICE})"), QUEUE_RIGHTS)
    assert granted(allowed, ALICE, QUEUE_RIGHTS) == 0
    denied = from_directory(parse_sddl(f"D:(OD;;WP;{PARTS};;WD)(A;;RPWP;;;WD)"), QUEUE_RIGHTS)
    assert granted(denied, ALICE, QUEUE_RIGHTS) == QUEUE_RIGHTS.get_properties


def test_conditions_never_allow_and_always_deny() -> None:
    allowing = Ace(AceType.ACCESS_ALLOWED_CALLBACK_ACE_TYPE, 0, READ_PROPERTY, ALICE)
    denying = Ace(AceType.ACCESS_DENIED_CALLBACK_OBJECT_ACE_TYPE, 0, READ_PROPERTY, ALICE)
    everything = Ace(AceType.ACCESS_ALLOWED_ACE_TYPE, 0, READ_PROPERTY, EVERYONE)
    assert granted(from_directory(listed([allowing]), QUEUE_RIGHTS), ALICE, QUEUE_RIGHTS) == 0
    read = from_directory(listed([denying, everything]), QUEUE_RIGHTS)
    assert granted(read, ALICE, QUEUE_RIGHTS) == 0
    assert granted(read, STAFF, QUEUE_RIGHTS) == QUEUE_RIGHTS.get_properties


def test_no_list_is_everybodys_here_and_nobodys_there() -> None:
    written = to_directory(SecurityDescriptor(), QUEUE_RIGHTS, MACHINE)
    assert {ace.sid for ace in aces_of(written)[:-1]} == {EVERYONE}
    assert granted(from_directory(written, QUEUE_RIGHTS), ALICE, QUEUE_RIGHTS) == full(QUEUE_RIGHTS)
    unseen = from_directory(SecurityDescriptor(owner=ALICE), QUEUE_RIGHTS)
    assert granted(unseen, STAFF, QUEUE_RIGHTS) == 0
