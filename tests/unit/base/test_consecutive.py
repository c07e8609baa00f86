"""Runs of numbers without a gap."""

import pytest

from rpcqm.base.consecutive import consecutive


@pytest.mark.parametrize(
    ("numbers", "runs"),
    [
        ([], []),
        ([7], [(7, 1)]),
        ([0, 1, 2, 5, 6, 9], [(0, 3), (5, 2), (9, 1)]),
        ([6, 5, 5, 6], [(6, 1), (5, 1), (5, 2)]),
    ],
)
def test_numbers_that_follow_each_other_are_one_run(
    numbers: list[int], runs: list[tuple[int, int]]
) -> None:
    assert list(consecutive(numbers)) == runs
