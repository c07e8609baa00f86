"""Rows of regular segments of one connection, one behind the other, and the calls they make.

Everything is computed for all connections of a batch at once; what a run needs to know of its
connection's state before it is left to the caller that plays it (`analysis`).
"""

from dataclasses import dataclass

import numpy as np

from rpcqm.capture.columnar.record_batch import Array
from rpcqm.capture.columnar.segments import MASK, Directions, Segments, directions

SHORTEST_RUN = 8
"""Fewer segments cost less record by record than in columns."""

_HALF = 1 << 31
"""Sequence numbers wrap: less than half of them ahead is ahead, anything else is behind."""


@dataclass(slots=True)
class ConsecutiveSegments:
    """Runs of regular segments, in arrays by run; `place` has the records of all of them.

    `start` and `stop` delimit a run in `place` and in the arrays that are as long; `client` and
    `server` are the keys' numbers of its directions. `asked` and `told` are the positions of
    requests and of their answers in `place`, `loose` those of segments that pair with none here;
    `unsure` those of which nothing of the other side comes before.
    """

    place: Array
    run: Array
    start: Array
    stop: Array
    client: Array
    server: Array
    request: Array
    unsure: Array
    bad: Array
    asked: Array
    told: Array
    loose: Array
    keys: list[bytes]


def find_consecutive(found: Segments) -> ConsecutiveSegments | None:
    """All runs of a batch; None if it has no run."""
    place = np.flatnonzero(found.regular | found.keyed)
    if not len(place):
        return None
    sides = directions(found.addresses[place], found.ports[place])
    if sides is None:
        return None
    order = _by_flow(sides)
    sorted_ = _Sorted(found, place[order], sides, order)
    sorted_.leave_out_what_does_not_follow()
    return sorted_.runs(sides.keys)


def _by_flow(sides: Directions) -> Array:
    """An order of the segments that puts those of each flow together."""
    narrow = np.uint16 if len(sides.keys) < 1 << 16 else np.int64
    return np.argsort(sides.flow.astype(narrow), kind="stable")


def _last_before(mine: Array, begin: Array) -> Array:
    """For each position the last one before it that is `mine`; -1 if that is below `begin`."""
    every = np.where(mine, np.arange(len(mine)), -1)
    before = np.empty_like(every)
    before[0] = -1
    np.maximum.accumulate(every[:-1], out=before[1:])
    return np.where(before >= begin, before, -1)


class _Sorted:
    """The segments of a batch, flow by flow."""

    def __init__(self, found: Segments, place: Array, sides: Directions, order: Array) -> None:
        self.place = place
        self.regular = found.regular[place]
        self.seq, self.ack = found.seq[place], found.ack[place]
        self.next = (self.seq + found.length[place]) & MASK
        self.request = found.kind[place] == 0
        self.call = found.call[place]
        self.code = sides.code[order].astype(np.int64)
        self.flow = sides.flow[order]
        self.opposite = sides.other[self.code]
        # A record that may belong to any flow ends all runs.
        self.barrier = np.cumsum(found.barriers)[place]

    def leave_out_what_does_not_follow(self) -> None:
        """Take for irregular the segments that do not follow the one before them."""
        count = len(self.place)
        changed = np.flatnonzero(self.flow[1:] != self.flow[:-1]) + 1
        begin = np.zeros(count, np.int64)
        begin[changed] = changed
        np.maximum.accumulate(begin, out=begin)
        lower = self.code == self.flow
        own, other = self._before(lower, begin)
        known = (own >= 0) & self.regular[own]
        good = ~known | (self.next[own] == self.seq)
        known = (other >= 0) & self.regular[other]
        good &= ~known | ~self._early(self.next[other])
        client = np.where(self.request, self.code, self.opposite)
        same = np.empty(count, bool)
        same[0] = True
        same[1:] = (client[1:] == client[:-1]) | (self.flow[1:] != self.flow[:-1])
        same[1:] |= ~self.regular[:-1]
        self.regular = self.regular & good & same

    def _before(self, lower: Array, begin: Array) -> tuple[Array, Array]:
        """The last segment before each in its own and in the other direction, or -1."""
        one, two = _last_before(lower, begin), _last_before(~lower, begin)
        return np.where(lower, one, two), np.where(lower, two, one)

    def _early(self, expected: Array) -> Array:
        """Whether more is acknowledged than `expected` of the other side."""
        ahead = (self.ack - expected) & MASK
        return np.asarray((ahead > 0) & (ahead < _HALF))

    def runs(self, keys: list[bytes]) -> ConsecutiveSegments | None:
        regular, flow, barrier = self.regular, self.flow, self.barrier
        joins = np.zeros(len(regular), bool)
        joins[1:] = regular[1:] & regular[:-1] & (flow[1:] == flow[:-1])
        joins[1:] &= barrier[1:] == barrier[:-1]
        number = np.cumsum(~joins) - 1
        sizes = np.bincount(number)
        kept = regular & (sizes[number] >= SHORTEST_RUN)
        if not kept.any():
            return None
        return self._made(np.flatnonzero(kept), number, keys)

    def _made(self, kept: Array, number: Array, keys: list[bytes]) -> ConsecutiveSegments:
        number = number[kept]
        start = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
        stop = np.append(start[1:], len(kept))
        run = np.repeat(np.arange(len(start)), stop - start)
        request, code, opposite = self.request[kept], self.code[kept], self.opposite[kept]
        # Whether the other side has been heard before in the same run.
        _, other = self._before(request, start[run])
        first = start
        client = np.where(request[first], code[first], opposite[first])
        server = np.where(request[first], opposite[first], code[first])
        pairs = _Pairs(run, request, self.call[kept].astype(np.int64), len(start))
        return ConsecutiveSegments(
            self.place[kept],
            run,
            start,
            stop,
            client,
            server,
            request,
            np.flatnonzero(other < 0),
            pairs.bad,
            pairs.asked,
            pairs.told,
            pairs.loose,
            keys,
        )


class _Pairs:
    """Requests and their answers within runs, by call identifier.

    A run in which an identifier does not alternate between the two is `bad`.
    """

    def __init__(self, run: Array, request: Array, call: Array, runs: int) -> None:
        self.bad = np.zeros(runs, bool)
        self._run, self._request = run, request
        self._key = run << 32 | call
        # Nearly always the answer is what comes next.
        follows = request[:-1] & ~request[1:] & (self._key[1:] == self._key[:-1])
        at = np.flatnonzero(follows)
        alone = np.ones(len(run), bool)
        alone[at] = alone[at + 1] = False
        self.asked, self.told = at, at + 1
        self.loose = np.flatnonzero(alone)
        if len(self.loose):
            self._look_closer()

    def _look_closer(self) -> None:
        """Pair all segments whose identifier is that of one which stands alone."""
        wanted = np.unique(self._key[self.loose])
        near = np.minimum(np.searchsorted(wanted, self._key), len(wanted) - 1)
        mine = np.flatnonzero(wanted[near] == self._key)
        mine = mine[np.argsort(self._key[mine], kind="stable")]
        key, request = self._key[mine], self._request[mine]
        same = key[1:] == key[:-1]
        wrong = same & (request[1:] == request[:-1])
        self.bad[self._run[mine[1:][wrong]]] = True
        pair = np.flatnonzero(same & request[:-1] & ~request[1:])
        alone = np.ones(len(mine), bool)
        alone[pair] = alone[pair + 1] = False
        self.loose = np.sort(mine[alone])
        others = np.ones(len(self._key), bool)
        others[mine] = False
        rest = others[self.asked]
        asked = np.concatenate((self.asked[rest], mine[pair]))
        told = np.concatenate((self.told[rest], mine[pair + 1]))
        order = np.argsort(asked, kind="stable")
        self.asked, self.told = asked[order], told[order]
