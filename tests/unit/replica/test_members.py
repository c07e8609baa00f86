"""Members of a cluster: what they tell, and how far the log may be trimmed."""

from dataclasses import replace

import pytest

from rpcqm.replica.members import Member, first_to_keep, is_too_far_behind, members_of
from rpcqm.store.replication import LogBounds

MEMBER = Member("a", "00" * 16, "standby", "ff" * 16, 3, 70, 60, 0, 1, "0.1.0", "digest", 10)
BOUNDS = LogBounds(11, 110, 1_000)
"""A hundred records of ten octets each."""


def test_a_member_is_read_as_it_was_told() -> None:
    assert Member.decode(MEMBER.encode()) == MEMBER
    later = MEMBER.encode()[:-1] + b',"word":"of a later version"}'
    assert Member.decode(later) == MEMBER


@pytest.mark.parametrize(
    "octets",
    [b"", b"{", b"[]", b"{}", b"[" * 2_000, MEMBER.encode().replace(b":70", b':"70"'), b"\xff"],
    ids=["none", "json", "list", "empty", "deep", "type", "text"],
)
def test_what_no_member_tells_is_left_out(octets: bytes) -> None:
    other = replace(MEMBER, node="b")
    assert members_of({"b": other.encode(), "a": octets}) == [other]


@pytest.mark.parametrize(
    ("own", "others", "keep", "first"),
    [
        (110, [], 1_000, 11),
        (110, [], 300, 81),
        (110, [95], 300, 81),
        (110, [70], 300, 71),
        (60, [70], 300, 61),
        (110, [5], 300, 11),
        (110, [], 0, 111),
    ],
    ids=["small", "kept", "near", "slowest", "own", "lost already", "nothing kept"],
)
def test_the_log_is_trimmed_behind_the_slowest_and_keeps_some(
    own: int, others: list[int], keep: int, first: int
) -> None:
    assert first_to_keep(BOUNDS, own, others, keep, 10_000) == first


def test_nobody_is_waited_for_once_the_log_is_almost_full() -> None:
    assert first_to_keep(BOUNDS, 110, [20], 300, 1_112) == 21
    assert first_to_keep(BOUNDS, 110, [20], 300, 1_111) == 81
    assert first_to_keep(BOUNDS, 60, [20], 300, 1_000) == 61


def test_an_empty_log_is_left_alone() -> None:
    assert first_to_keep(LogBounds(5, 4, 100), 4, [], 10, 20) == 5


def test_who_lacks_a_record_that_was_trimmed_is_too_far_behind() -> None:
    assert not is_too_far_behind(replace(MEMBER, place=10), BOUNDS)
    assert is_too_far_behind(replace(MEMBER, place=9), BOUNDS)
