"""Requests under a key are carried out once: the key is kept with what was sent (G353).

A program that does not know whether its request was carried out makes it again under the same key,
and is told what the first one was told. The record of a key belongs to the commit of its messages.
"""

import hashlib
from collections import OrderedDict
from functools import partial

from rpcqm.adm.sent_keys import SENT_KEY_PREFIX, SENT_KEY_SIZE, SentKey
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.base.shares import Shares
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.store.records import Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

KEPT = 24 * 3_600_000
"""Milliseconds: who has got no answer asks again within a day, or looks."""

KEYS_OF_ACCOUNT = 32_768
"""Keys of requests of one account that are kept for a day.

Each takes about 400 octets.

Bound `program.keys_of_account` [keys]: the account's oldest key is forgotten.
"""
KEYS_IN_ALL = 131_072
"""Keys of requests of all accounts that are kept for a day.

Bound `program.keys_in_all` [keys]: the account that has most loses its oldest key.
"""
LONGEST_KEY = 255
"""Characters of the key of a request.

A UUID has 36.

Bound `program.longest_key` [characters]: the call is refused.
"""

_LOOK = 600_000
"""Milliseconds between looks for old keys: they take little room, and are not believed anyway."""
_REMOVED_AT_ONCE = 10_000
"""Records that one commit removes, which keeps it short."""

Identifiers = tuple[MessageIdentifier, ...]

_log = get_logger("qm")


class KeyReusedError(MQError):
    """Another request was made under the same key."""

    def __init__(self) -> None:
        super().__init__(
            HResult.MQ_ERROR_PROPERTIES_CONFLICT, "another request was made under this key"
        )


class _Kept:
    """What is known of a key; `outcome` is there until the request is durable."""

    __slots__ = ("outcome", "sent")

    def __init__(self, sent: SentKey, outcome: Completion[Identifiers] | None) -> None:
        self.sent = sent
        self.outcome = outcome


class SentKeys:
    """The keys of all accounts."""

    def __init__(self, store: Store, clock: Clock, timers: Timers) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._shares: Shares[bytes] = Shares()
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def restore(self) -> None:
        """Take over what is stored; a damaged record is left out, and told."""
        found = []
        for record, value in self._store.records(Family.STREAM, SENT_KEY_PREFIX):
            try:
                found.append((SentKey.decode(value), record))
            except DecodeError as error:
                _log.error(
                    "a key of a request cannot be read", key=record.hex(), problem=str(error)
                )
        for sent, record in sorted(found, key=lambda each: each[0].time):
            self._kept[record] = _Kept(sent, None)
            self._shares.use(record, sent.owner)
        self._start()

    def find(
        self, owner: str, subject: bytes, key: str, digest: bytes
    ) -> Completion[Identifiers] | None:
        """What was sent under a key, once that is durable; None if the key is new.

        `owner` is the account's SID, `subject` says what the request is about (its queues), and
        `digest` (32 octets) is of the request. Raises KeyReusedError, or MQ_ERROR_INVALID_PARAMETER
        for a key that is empty or too long.
        """
        if not 1 <= len(key) <= LONGEST_KEY:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"a key of {len(key)} characters")
        kept = self._kept.get(_record(owner, subject, key))
        if kept is None or kept.sent.time + KEPT <= self._clock.now():
            return None
        if kept.sent.digest != digest:
            raise KeyReusedError
        return completed(kept.sent.identifiers) if kept.outcome is None else kept.outcome

    def keep_in(
        self,
        change: StoreTransaction,
        owner: str,
        subject: bytes,
        key: str,
        digest: bytes,
        identifiers: Identifiers,
    ) -> None:
        """Let a commit keep what it sends under a key that `find` does not know."""
        record = _record(owner, subject, key)
        sent = SentKey(self._clock.now(), owner, digest, identifiers)
        self._remove(record)
        kept = self._kept[record] = _Kept(sent, Completion())
        self._shares.use(record, owner)
        change.call_when_undone(partial(self._remove, record))
        change.put(Family.STREAM, record, sent.encode())
        change.call_after(partial(self._is_durable, kept))
        for surplus in self._surplus(owner):
            change.delete(Family.STREAM, surplus)
        self._start()

    def _is_durable(self, kept: _Kept) -> None:
        outcome, kept.outcome = kept.outcome, None
        if outcome is not None:
            outcome.succeed(kept.sent.identifiers)

    def _surplus(self, owner: str) -> list[bytes]:
        """Forget what is too much, and return its records."""
        surplus = self._shares.take_oldest(self._shares.count(owner) - KEYS_OF_ACCOUNT, owner)
        while len(self._shares) > KEYS_IN_ALL:
            surplus.append(self._shares.take_surplus())
        for record in surplus:
            self._kept.pop(record, None)
        return surplus

    def _remove(self, record: bytes) -> None:
        self._kept.pop(record, None)
        self._shares.remove(record)

    # Forgetting

    def _start(self) -> None:
        if self._timer is None and self._kept:
            self._timer = self._timers.call_later(_LOOK, self._look)

    def _look(self) -> None:
        """Remove what is too old; it is not worth a sync."""
        self._timer = None
        old = self._take_old()
        try:
            if old:
                with self._store.transaction("forget keys") as change:
                    for record in old:
                        change.delete(Family.STREAM, record)
                    change.sync = False
        finally:
            self._start()

    def _take_old(self) -> list[bytes]:
        oldest, old = self._clock.now() - KEPT, list[bytes]()
        for record, kept in self._kept.items():
            if kept.sent.time > oldest or len(old) >= _REMOVED_AT_ONCE:
                break
            old.append(record)
        for record in old:
            self._remove(record)
        return old

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _record(owner: str, subject: bytes, key: str) -> bytes:
    """The key of a record: nothing in it can be read, and no two requests have the same."""
    digest = hashlib.sha256()
    for part in (owner.encode(), subject, key.encode("utf-8", "surrogatepass")):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    record = SENT_KEY_PREFIX + digest.digest()
    assert len(record) == SENT_KEY_SIZE
    return record
