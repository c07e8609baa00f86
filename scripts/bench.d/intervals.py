"""How certain the median of some pairs is."""

import math
from collections.abc import Sequence

DOUBT = 0.05


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Where the median of all pairs there could be lies with 95 %, by ranks.

    So many of the pairs are below that median as coins would tell.
    """
    ordered, count = sorted(ratios), len(ratios)
    chance, rank = 0.5**count, 0
    while rank < count // 2 and (more := chance + _coins(count, rank + 1)) <= DOUBT / 2:
        chance, rank = more, rank + 1
    return ordered[rank], ordered[-rank - 1]


def _coins(count: int, heads: int) -> float:
    return float(math.comb(count, heads)) * 0.5**count
