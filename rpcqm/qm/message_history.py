"""MessageIDHistoryTable: which messages have been taken lately.

[MS-MQQB] 3.1.5.8.1, G22, [MC-MQSRM] 3.1.1.1.5; each protocol has one of its own.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.shares import Shares

_TIME = struct.Struct("<Q")
_BETWEEN = b"\0"
"""No owner has it."""


class MessageIDHistory:
    """Identities of messages (source, ordinal, destination) and when they were seen last.

    At most `size` of them, none older than `cleanup` milliseconds; beyond, whoever has caused most
    of them gives way first, where protocols tell who that is (G184). The table says what to keep,
    under keys that begin with `prefix`: `add` and `refresh` fill in changes for the commit of the
    message.
    """

    def __init__(
        self, clock: Clock, timers: Timers, prefix: bytes, size: int, cleanup: int
    ) -> None:
        self._clock = clock
        self._timers = timers
        self.prefix = prefix
        self._size = size
        self._cleanup_time = cleanup
        self._entries: OrderedDict[bytes, int] = OrderedDict()
        self._contents: dict[bytes, bytes] = {}
        self._shares: Shares[bytes] = Shares()
        self._stale: list[bytes] = []
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, identifier: bytes) -> bool:
        return identifier in self._entries

    def knows_none(self, identifiers: Iterable[bytes]) -> bool:
        """Whether none of these messages has been seen."""
        return self._entries.keys().isdisjoint(identifiers)

    def knows(self, identifier: bytes, content: bytes) -> bool:
        """Whether a message has been seen, and with that content."""
        return identifier in self._entries and self._contents.get(identifier) == content

    def restore(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Take over the stored records, in any order."""
        entries = [(*_decoded(value), key[len(self.prefix) :]) for key, value in records]
        for time, owner, content, identifier in sorted(entries):
            self._entries[identifier] = time
            self._note(identifier, content)
            self._shares.use(identifier, owner)
        self._trim()
        self._start()

    def refresh(self, identifier: bytes) -> None:
        """Remember a message longer, because it has come again."""
        self._entries[identifier] = self._clock.now()
        self._entries.move_to_end(identifier)
        self._shares.touch(identifier)

    def add(
        self,
        identifier: bytes,
        changes: dict[bytes, bytes | None] | None,
        owner: str = "",
        content: bytes = b"",
    ) -> None:
        """Remember a message; `changes` (None for express ones) makes that durable with it.

        `owner` is who counts as having caused it; `content` is what `knows` asks for, b"" if
        nobody will.
        """
        self._entries[identifier] = now = self._clock.now()
        self._note(identifier, content)
        self._shares.use(identifier, owner)
        self._trim()
        if changes is not None:
            changes.update(self.take_stale())
            changes[self.prefix + identifier] = _encoded(now, owner, content)
        self._start()

    def add_many(
        self, identifiers: Mapping[bytes, bool], changes: dict[bytes, bytes | None]
    ) -> None:
        """Remember messages that are not known yet, as `add` does with each, of the owner "".

        The values say whether a message is to be remembered durably.
        """
        if self._contents or not all(identifiers.values()) or not self._shares.has_only(""):
            for identifier, durable in identifiers.items():
                self.add(identifier, changes if durable else None)
        elif identifiers:
            now = self._clock.now()
            changes.update(self.take_stale())
            self._entries.update(dict.fromkeys(identifiers, now))
            self._shares.use_many(identifiers, "")
            value, prefix = _encoded(now, "", b""), self.prefix
            changes.update({prefix + identifier: value for identifier in identifiers})
            for identifier in self._shares.take_oldest(len(self._entries) - self._size, ""):
                del self._entries[identifier]
                changes[prefix + identifier] = None
            self._start()

    def remove_many(self, identifiers: Iterable[bytes]) -> None:
        """Forget messages that could not be taken."""
        for identifier in identifiers:
            self.remove(identifier, {})

    def _note(self, identifier: bytes, content: bytes) -> None:
        if content:
            self._contents[identifier] = content
        else:
            self._contents.pop(identifier, None)

    def remove(self, identifier: bytes, changes: dict[bytes, bytes | None]) -> None:
        """Forget a message that could not be taken; `changes` are those that `add` was given."""
        self._entries.pop(identifier, None)
        self._contents.pop(identifier, None)
        self._shares.remove(identifier)
        changes.pop(self.prefix + identifier, None)

    def _trim(self) -> None:
        while len(self._entries) > self._size:
            identifier = self._shares.take_surplus()
            del self._entries[identifier]
            self._contents.pop(identifier, None)
            self._stale.append(identifier)

    def _start(self) -> None:
        if self._timer is None and self._entries:
            self._timer = self._timers.call_later(self._cleanup_time, self._cleanup)

    def _cleanup(self) -> None:
        """[MS-MQQB] 3.1.6.7."""
        self._timer = None
        oldest = self._clock.now() - self._cleanup_time
        while self._entries:
            identifier, time = next(iter(self._entries.items()))
            if time >= oldest:
                break
            del self._entries[identifier]
            self._contents.pop(identifier, None)
            self._shares.remove(identifier)
            self._stale.append(identifier)
        self._start()

    def take_stale(self) -> dict[bytes, bytes | None]:
        """Take the changes that delete old records, if no message has taken them along yet."""
        stale, self._stale = self._stale, []
        return {self.prefix + identifier: None for identifier in stale}

    @contextmanager
    def rehearsing(self) -> Iterator[None]:
        """Let be as before what is remembered within the block."""
        before = dict(vars(self))
        self._entries, self._contents = self._entries.copy(), self._contents.copy()
        self._shares, self._stale = self._shares.copied(), list(self._stale)
        try:
            yield
        finally:
            if before["_timer"] is None:
                self.stop()
            vars(self).update(before)

    def told(self) -> list[object]:
        """What is remembered, in order, and what is to be forgotten."""
        return [*self._entries.items(), *self._contents.items(), *self._stale]

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _encoded(time: int, owner: str, content: bytes) -> bytes:
    return _TIME.pack(time) + owner.encode() + (_BETWEEN + content if content else b"")


def _decoded(value: bytes) -> tuple[int, str, bytes]:
    """When a message was seen, whose it was, and its content."""
    owner, _, content = value[_TIME.size :].partition(_BETWEEN)
    return _TIME.unpack_from(value)[0], owner.decode("utf-8", "replace"), content
