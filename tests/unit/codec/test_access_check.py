"""The access check of [MS-DTYP] 2.5.3.2 on queue descriptors."""

from hypothesis import given
from hypothesis import strategies as st

from rpcqm.codec.security.access_check import (
    ACCESS_SYSTEM_SECURITY,
    GENERIC_ALL,
    GENERIC_READ,
    GENERIC_WRITE,
    MQQMACCESSMASK,
    MQQUEUEACCESSMASK,
    QUEUE_MANAGER_MAPPING,
    QUEUE_MAPPING,
    READ_CONTROL,
    WRITE_DAC,
    WRITE_OWNER,
    Concern,
    GenericMapping,
    PreparedDescriptor,
    Reason,
    steps,
)
from rpcqm.codec.security.descriptor import Ace, Acl, SecurityDescriptor
from rpcqm.codec.security.identifier import (
    ANONYMOUS,
    BUILTIN_ADMINISTRATORS,
    EVERYONE,
    OWNER_RIGHTS,
    Sid,
)
from rpcqm.codec.security.sddl import parse_sddl

ALICE = "S-1-5-21-1-2-3-1001"
BOB = "S-1-5-21-1-2-3-1002"
WORLD = "S-1-1-0"
ADMINISTRATORS = "S-1-5-32-544"
PEEK = int(MQQUEUEACCESSMASK.MQSEC_PEEK_MESSAGE)
RECEIVE = int(MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE)
WRITE = int(MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE)
EVERYTHING = int(MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_ALL)


def access_check(
    descriptor: SecurityDescriptor,
    sids: set[str],
    desired: int,
    mapping: GenericMapping = QUEUE_MAPPING,
) -> int:
    """The rights that a principal desires, or 0 if it does not get them all."""
    allowed = PreparedDescriptor(descriptor, mapping).allows(frozenset(sids), desired)
    return mapping.map(desired) if allowed else 0


def test_allowed_right_is_granted_and_no_other() -> None:
    descriptor = parse_sddl(f"D:(A;;0x3;;;{ALICE})")
    assert access_check(descriptor, {ALICE, WORLD}, RECEIVE) == RECEIVE
    assert access_check(descriptor, {ALICE, WORLD}, PEEK) == PEEK
    assert access_check(descriptor, {ALICE, WORLD}, RECEIVE | WRITE) == 0
    assert access_check(descriptor, {BOB, WORLD}, PEEK) == 0


def test_rights_add_up_over_several_entries() -> None:
    descriptor = parse_sddl(f"D:(A;;0x1;;;{ALICE})(A;;0x2;;;WD)")
    assert access_check(descriptor, {ALICE, WORLD}, RECEIVE) == RECEIVE


def test_denial_before_permission_wins() -> None:
    descriptor = parse_sddl(f"D:(D;;0x1;;;{ALICE})(A;;0x3;;;WD)")
    assert access_check(descriptor, {ALICE, WORLD}, RECEIVE) == 0
    assert access_check(descriptor, {ALICE, WORLD}, PEEK) == PEEK
    assert access_check(descriptor, {BOB, WORLD}, RECEIVE) == RECEIVE


def test_permission_before_denial_wins() -> None:
    descriptor = parse_sddl(f"D:(A;;0x3;;;WD)(D;;0x1;;;{ALICE})")
    assert access_check(descriptor, {ALICE, WORLD}, RECEIVE) == RECEIVE


def test_inherit_only_entry_concerns_nobody() -> None:
    descriptor = parse_sddl("D:(A;IO;0x3;;;WD)(D;IO;0x4;;;WD)(A;;0x4;;;WD)")
    assert access_check(descriptor, {WORLD}, PEEK) == 0
    assert access_check(descriptor, {WORLD}, WRITE) == WRITE


def test_absent_list_grants_everything_and_empty_list_nothing() -> None:
    assert access_check(parse_sddl("O:BA"), {WORLD}, EVERYTHING) == EVERYTHING
    assert access_check(parse_sddl("O:BAD:"), {WORLD}, PEEK) == 0


def test_generic_rights_mean_queue_rights_in_request_and_entry() -> None:
    descriptor = parse_sddl("D:(A;;GR;;;WD)")
    assert access_check(descriptor, {WORLD}, GENERIC_READ) == (
        MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_READ
    )
    assert access_check(descriptor, {WORLD}, RECEIVE) == RECEIVE
    assert access_check(descriptor, {WORLD}, GENERIC_WRITE) == 0
    assert access_check(parse_sddl("D:(A;;GA;;;WD)"), {WORLD}, GENERIC_ALL) == EVERYTHING


def test_generic_rights_of_a_queue_manager() -> None:
    descriptor = parse_sddl("D:(A;;GA;;;WD)")
    wanted = int(MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_ALL)
    assert access_check(descriptor, {WORLD}, wanted, QUEUE_MANAGER_MAPPING) == wanted


def test_owner_may_always_read_and_change_the_permissions() -> None:
    descriptor = parse_sddl(f"O:{ALICE}D:(D;;0x60000;;;WD)")
    both = READ_CONTROL | WRITE_DAC
    assert access_check(descriptor, {ALICE, WORLD}, both) == both
    assert access_check(descriptor, {BOB, WORLD}, READ_CONTROL) == 0


def test_owner_rights_entry_takes_the_place_of_the_owners_rights() -> None:
    descriptor = parse_sddl(f"O:{ALICE}D:(A;;RC;;;OW)")
    assert access_check(descriptor, {ALICE, WORLD}, READ_CONTROL) == READ_CONTROL
    assert access_check(descriptor, {ALICE, WORLD}, WRITE_DAC) == 0
    assert access_check(descriptor, {BOB, WORLD}, READ_CONTROL) == 0


def test_administrators_may_take_ownership_and_see_the_audit_list() -> None:
    descriptor = parse_sddl(f"O:{ALICE}D:")
    wanted = WRITE_OWNER | ACCESS_SYSTEM_SECURITY
    assert access_check(descriptor, {BOB, ADMINISTRATORS}, wanted) == wanted
    assert access_check(descriptor, {BOB, WORLD}, WRITE_OWNER) == 0


def test_entry_cannot_give_away_the_audit_list() -> None:
    descriptor = parse_sddl("D:(A;;0x01000001;;;WD)")
    assert access_check(descriptor, {WORLD}, ACCESS_SYSTEM_SECURITY) == 0
    assert access_check(SecurityDescriptor(), {WORLD}, ACCESS_SYSTEM_SECURITY) == 0


def test_conditional_entry_denies_but_never_allows() -> None:
    allow = Ace(0x09, 0, RECEIVE, EVERYONE, data=b"artx")
    deny = Ace(0x0A, 0, RECEIVE, EVERYONE, data=b"artx")
    plain = Ace(0x00, 0, RECEIVE, EVERYONE)
    assert access_check(SecurityDescriptor(dacl=Acl((allow,))), {WORLD}, PEEK) == 0
    assert access_check(SecurityDescriptor(dacl=Acl((deny, plain))), {WORLD}, PEEK) == 0


_people = (Sid.parse(ALICE), Sid.parse(BOB), EVERYONE, ANONYMOUS, BUILTIN_ADMINISTRATORS)
_descriptors = st.builds(
    SecurityDescriptor,
    st.none() | st.sampled_from(_people),
    st.none(),
    st.none(),
    st.none()
    | st.builds(
        Acl,
        st.lists(
            st.builds(
                Ace,
                st.sampled_from([0, 0, 1, 0x09, 0x0A, 5]),
                st.sampled_from([0, 0, 0, 8]),
                st.integers(0, 0xF) | st.sampled_from([0x60000, GENERIC_ALL, GENERIC_READ]),
                st.sampled_from((*_people, OWNER_RIGHTS)),
            ),
            max_size=6,
        ).map(tuple),
    ),
)
_tokens = st.sets(st.sampled_from([str(sid) for sid in _people])).map(frozenset)


def _published(descriptor: SecurityDescriptor, sids: frozenset[str], desired: int) -> bool:
    """What the algorithm of [MS-DTYP] 2.5.3.2 answers: it asks entry by entry what is left."""
    found = list(steps(descriptor, sids, QUEUE_MAPPING))
    remaining = QUEUE_MAPPING.map(desired)
    for step in found:
        remaining &= ~step.mask if step.reason in (Reason.PRIVILEGE, Reason.OWNER) else ~0
    if descriptor.dacl is None:
        return not remaining & ACCESS_SYSTEM_SECURITY
    for step in found:
        if step.reason is not Reason.ENTRY or step.concern is not Concern.COUNTS:
            continue
        if step.allows:
            remaining &= ~step.mask
        elif remaining & step.mask:
            return False
    return not remaining


@given(_descriptors, _tokens)
def test_every_entry_has_a_step_and_only_those_that_concern_the_caller_decide(
    descriptor: SecurityDescriptor, sids: frozenset[str]
) -> None:
    found = list(steps(descriptor, sids, QUEUE_MAPPING))
    entries = [step for step in found if step.reason is Reason.ENTRY]
    assert [step.ace for step in entries] == list(descriptor.dacl.aces if descriptor.dacl else ())
    assert all(not step.decides for step in entries if step.concern is not Concern.COUNTS)
    decided = 0
    for step in found:
        assert not step.decides & decided
        decided |= step.decides


@given(_descriptors, _tokens)
def test_prepared_descriptor_agrees_with_the_algorithm_on_every_right(
    descriptor: SecurityDescriptor, sids: frozenset[str]
) -> None:
    granted = PreparedDescriptor(descriptor).granted(sids)
    for bit in (1 << place for place in range(25)):
        assert _published(descriptor, sids, bit) == bool(granted & bit)


@given(_descriptors, _tokens, st.integers(0, 0xFFFFF) | st.sampled_from([GENERIC_ALL]))
def test_prepared_descriptor_agrees_with_the_algorithm_on_any_request(
    descriptor: SecurityDescriptor, sids: frozenset[str], desired: int
) -> None:
    allowed = PreparedDescriptor(descriptor).allows(sids, desired)
    assert allowed == _published(descriptor, sids, desired)


def test_prepared_descriptor_remembers_only_so_many_principals() -> None:
    prepared = PreparedDescriptor(parse_sddl("D:(A;;0x4;;;WD)"))
    for number in range(3000):
        assert prepared.granted(frozenset({f"S-1-5-21-{number}", WORLD})) == WRITE
    assert len(prepared._answers) <= 1024
