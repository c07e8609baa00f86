"""Permissions in plain words: each change does what its word says, and nothing else."""

import functools
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.codec.security.access_check import QUEUE_MAPPING, PreparedDescriptor
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.permissions import (
    FULL,
    RIGHTS,
    WELL_KNOWN,
    Permission,
    denied,
    granted,
    permissions,
    revoked,
    undenied,
    words_of,
)
from rpcqm.codec.security.sddl import parse_sddl

EVERYONE = WELL_KNOWN["everyone"]
ALICE = Sid.parse("S-1-5-21-1-2-3-1000")
masks = st.lists(st.sampled_from(list(RIGHTS.values())), min_size=1).map(
    lambda rights: functools.reduce(operator.or_, rights)
)
changes = st.lists(
    st.tuples(
        st.sampled_from([granted, denied, revoked, undenied]),
        st.sampled_from([ALICE, EVERYONE]),
        masks,
    ),
    max_size=5,
)


def rights(descriptor: SecurityDescriptor, *sids: Sid) -> int:
    """What the access check lets somebody do."""
    prepared = PreparedDescriptor(descriptor, QUEUE_MAPPING)
    everyone = frozenset(map(str, sids))
    return sum(
        bit for bit in (1 << n for n in range(20)) if bit & FULL and prepared.allows(everyone, bit)
    )


@given(changes, masks)
def test_a_grant_grants(before: list[tuple[object, Sid, int]], mask: int) -> None:
    descriptor = _changed(before)
    after = granted(descriptor, ALICE, mask)
    assert rights(after, ALICE) & mask == mask
    assert rights(after, EVERYONE) == rights(descriptor, EVERYONE)


@given(changes, masks)
def test_a_denial_wins_whatever_was_granted(
    before: list[tuple[object, Sid, int]], mask: int
) -> None:
    descriptor = _changed(before)
    after = denied(descriptor, ALICE, mask)
    assert rights(after, ALICE, EVERYONE) & mask == 0
    assert rights(after, EVERYONE) == rights(descriptor, EVERYONE)


@given(changes, masks)
def test_a_denial_that_is_taken_back_leaves_what_was_granted(
    before: list[tuple[object, Sid, int]], mask: int
) -> None:
    descriptor = undenied(_changed(before), ALICE, FULL)
    after = undenied(denied(descriptor, ALICE, mask), ALICE, mask)
    assert rights(after, ALICE) == rights(descriptor, ALICE)
    assert set(permissions(after)) == set(permissions(descriptor))


@given(changes, masks)
def test_what_is_revoked_is_neither_granted_nor_denied(
    before: list[tuple[object, Sid, int]], mask: int
) -> None:
    after = revoked(_changed(before), ALICE, mask)
    for entry in permissions(after):
        if entry.sid == ALICE:
            assert (entry.allowed | entry.denied) & mask == 0
    assert rights(after, ALICE) & mask == 0


def _changed(steps: list[tuple[object, Sid, int]]) -> SecurityDescriptor:
    descriptor = parse_sddl("D:(A;;0x3;;;WD)")
    for change, sid, mask in steps:
        assert callable(change)
        descriptor = change(descriptor, sid, mask)
    return descriptor


def test_without_a_list_everybody_may_do_everything() -> None:
    assert permissions(SecurityDescriptor()) == [Permission(EVERYONE, FULL, 0)]
    after = revoked(SecurityDescriptor(), EVERYONE, RIGHTS["delete"])
    assert rights(after, EVERYONE) == FULL & ~RIGHTS["delete"]


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (FULL, "full"),
        (3, "receive"),
        (0xB, "receive, receive-journal"),
        (2, "peek"),
        (6, "peek, send"),
        (0, "nothing"),
        (1, "0x1"),
    ],
)
def test_masks_are_told_in_words(mask: int, words: str) -> None:
    assert words_of(mask) == words


def test_generic_rights_are_told_as_what_they_stand_for() -> None:
    (entry,) = permissions(parse_sddl("D:(A;;GA;;;WD)"))
    assert words_of(entry.allowed) == "full"
