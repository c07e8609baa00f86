"""Rates by key: so many at once, then so many a second."""

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
    """A bucket of tokens for each key: full at first, filled again with time.

    No more than `most` keys are known. A key that has not been used for so long that its bucket is
    full makes room for another one; while there is no such key, all further ones share a bucket.
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
        """Take a token of a key; returns None if it has no token left.

        Else it returns how many were asked for in vain since the last token was taken. `now` is in
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
