"""Numbers that follow each other without a gap."""

from collections.abc import Iterable, Iterator


def consecutive(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first number of each run, and how many there are in it, in the order of `numbers`."""
    first = count = 0
    for number in numbers:
        if count and number == first + count:
            count += 1
            continue
        if count:
            yield first, count
        first, count = number, 1
    if count:
        yield first, count
