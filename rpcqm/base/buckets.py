"""Rates by key: a burst of a given size, then a given number of tokens a second."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled: int
    """When the tokens were counted last, in monotonic milliseconds."""
    left_out: int = 0


class TokenBuckets:
    """A bucket of tokens for each key, full at first and refilled with time.

    At most `most` keys have a bucket of their own. A key whose bucket has become full again makes
    room for a new key; while no bucket is full, all further keys share one.
    """

    def __init__(self, burst: int, per_second: float, most: int) -> None:
        self._burst = burst
        self._per_millisecond = per_second / 1000
        self._most = most
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()
        self._shared = _Bucket(burst, 0)

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: Hashable, now: int) -> int | None:
        """Take a token of a key, or return None if its bucket is empty.

        Else it returns how many attempts have failed since the last token was taken. `now` is in
        monotonic milliseconds.
        """
        bucket = self._bucket(key, now)
        self._fill(bucket, now)
        if bucket.tokens < 1:
            bucket.left_out += 1
            return None
        bucket.tokens -= 1
        left_out, bucket.left_out = bucket.left_out, 0
        return left_out

    def _bucket(self, key: Hashable, now: int) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is not None:
            self._buckets.move_to_end(key)
            return bucket
        if len(self._buckets) >= self._most and not self._make_room(now):
            return self._shared
        bucket = self._buckets[key] = _Bucket(self._burst, now)
        return bucket

    def _make_room(self, now: int) -> bool:
        oldest = next(iter(self._buckets.values()))
        self._fill(oldest, now)
        if oldest.tokens < self._burst:
            return False
        self._buckets.popitem(last=False)
        return True

    def _fill(self, bucket: _Bucket, now: int) -> None:
        gained = (now - bucket.filled) * self._per_millisecond
        bucket.tokens = min(self._burst, bucket.tokens + gained)
        bucket.filled = now
