"""Who gives way first where strangers fill a table (G184, G510)."""

import random

import pytest

from rpcqm.base.shares import RankedShares, Shares
from tests.support.work import steps

OWNERS = ("a", "b", "c")


def naive_surplus(owners: dict[int, str]) -> set[int]:
    """Which keys may give way: the oldest of each owner who has most.

    `owners` are in the order of the last use of their keys.
    """
    counts = {owner: list(owners.values()).count(owner) for owner in owners.values()}
    most = [owner for owner, count in counts.items() if count == max(counts.values())]
    return {next(key for key, each in owners.items() if each == owner) for owner in most}


@pytest.mark.parametrize("seed", range(20))
def test_whoever_has_most_loses_what_was_used_longest_ago(seed: int) -> None:
    """Against a list that is searched each time."""
    choose = random.Random(seed)
    shares: Shares[int] = Shares()
    known: dict[int, str] = {}
    for _ in range(300):
        key, owner = choose.randrange(20), choose.choice(OWNERS)
        act = choose.randrange(6)
        if act < 3:
            known.pop(key, None)
            known[key] = owner
            shares.use(key, owner)
        elif act == 3:
            known.pop(key, None)
            shares.remove(key)
        elif act == 4:
            taken = [each for each, its in known.items() if its == owner][:2]
            assert shares.take_oldest(2, owner) == taken
            for each in taken:
                del known[each]
        elif known:
            copied = shares.copied()
            surplus = shares.take_surplus()
            assert surplus in naive_surplus(known)
            assert copied.take_surplus() == surplus
            del known[surplus]
        assert len(shares) == len(known)
        assert all(shares.count(each) == list(known.values()).count(each) for each in OWNERS)
    with pytest.raises(KeyError):
        Shares[int]().take_surplus()


def test_many_owners_cost_no_search() -> None:
    """A stranger has as many addresses as there are /64 in its network."""
    shares: Shares[int] = Shares()
    for number in range(10_000):
        shares.use(number, f"owner {number}")
    assert steps(shares.take_surplus) < 50


def test_what_is_worth_nothing_gives_way_first() -> None:
    shares: RankedShares[str] = RankedShares()
    for key, owner, worthless in (("x", "a", False), ("y", "a", False), ("z", "b", True)):
        shares.use(key, owner, worthless=worthless)
    shares.use("y", "a", worthless=True)
    copied = shares.copied()
    assert [len(shares), "y" in shares, "other" in shares] == [3, True, False]
    assert {shares.take_surplus(), shares.take_surplus()} == {"y", "z"}
    assert shares.take_surplus() == "x"
    assert len(copied) == 3
    copied.remove("x")
    copied.remove("y")
    assert copied.take_surplus() == "z"
