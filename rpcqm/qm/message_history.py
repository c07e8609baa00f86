"""MessageIDHistoryTable: the identities of recent messages.

[MS-MQQB] 3.1.5.8.1, G22, [MC-MQSRM] 3.1.1.1.5; each protocol has one of its own.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import islice

from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.each import run_all
from rpcqm.base.shares import Shares
from rpcqm.qm.history_records import HistoryRecords, Remembered

Records = Iterable[tuple[bytes, bytes]]


class MessageIDHistory:
    """Identities of messages (source, ordinal, destination) and when they were seen last.

    At most `size` of them, none older than `cleanup` milliseconds; beyond, those of the owner with
    most give way first, where protocols name owners (G184). Its records have keys that begin with
    `prefix`, or with `prefix_of_many`: `add` and `refresh` fill in changes for the commit of the
    message.
    """

    def __init__(
        self, clock: Clock, timers: Timers, prefix: bytes, size: int, cleanup: int
    ) -> None:
        self._clock = clock
        self._timers = timers
        self.prefix = prefix
        self._records = HistoryRecords(prefix)
        self._size = size
        self._cleanup_time = cleanup
        self._entries: OrderedDict[bytes, int] = OrderedDict()
        self._contents: dict[bytes, bytes] = {}
        self._shares: Shares[bytes] | None = None
        """The identities of each owner; None as long as all are of the owner ""."""
        self._stale: dict[bytes, bytes | None] = {}
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, identifier: bytes) -> bool:
        return identifier in self._entries

    def knows_none(self, identifiers: Iterable[bytes]) -> bool:
        """Whether none of these messages was seen before."""
        return self._entries.keys().isdisjoint(identifiers)

    def knows(self, identifier: bytes, content: bytes) -> bool:
        """Whether a message was seen before with that content."""
        return identifier in self._entries and self._contents.get(identifier) == content

    @property
    def prefix_of_many(self) -> bytes:
        """The prefix of keys of records of many messages."""
        return self._records.many

    def restore(self, records: Records, records_of_many: Records = ()) -> None:
        """Load the stored records; those of many in the order of their keys."""
        start = len(self.prefix)
        alone = [Remembered.decode(key[start:], value) for key, value in records]
        remembered, stale = self._records.restore(alone, records_of_many, self._size)
        self._stale.update(dict.fromkeys(stale))
        for time, owner, content, identifier in remembered:
            self._entries[identifier] = time
            self._note(identifier, content)
            self._use(identifier, owner)
        self._trim()
        self._start()

    def _use(self, identifier: bytes, owner: str) -> None:
        if self._shares is None and owner:
            self._shares = Shares()
            for each in self._entries:
                self._shares.use(each, "")
        if self._shares is not None:
            self._shares.use(identifier, owner)

    def refresh(self, identifier: bytes) -> None:
        """Remember a message longer, because it has come again.

        One that came with others has a record of its own from now on.
        """
        now = self._entries[identifier] = self._clock.now()
        self._entries.move_to_end(identifier)
        if self._shares is not None:
            self._shares.touch(identifier)
        if self._records.is_with_others(identifier):
            self._stale.update(dict.fromkeys(self._records.forget([identifier])))
            record = Remembered(now, "", b"", identifier).encode()
            self._stale[self.prefix + identifier] = record

    def add(
        self,
        identifier: bytes,
        changes: dict[bytes, bytes | None] | None,
        owner: str = "",
        content: bytes = b"",
    ) -> None:
        """Remember a message; `changes` (None for express ones) makes that durable with it.

        The message counts for `owner`; `knows` compares `content`, b"" if it need not.
        """
        self._entries[identifier] = now = self._clock.now()
        self._entries.move_to_end(identifier)
        self._note(identifier, content)
        self._use(identifier, owner)
        self._trim()
        if changes is not None:
            changes.update(self.take_stale())
            record = Remembered(now, owner, content, identifier)
            changes[self.prefix + identifier] = record.encode()
        self._start()

    def add_many(
        self, identifiers: Mapping[bytes, bool], changes: dict[bytes, bytes | None]
    ) -> None:
        """Remember new messages, as `add` does with each, of the owner "".

        The values say whether a message is to be remembered durably. Durable ones have one record.
        """
        if (
            self._contents
            or not all(identifiers.values())
            or self._shares is not None
            or len(identifiers) > self._size
        ):
            for identifier, durable in identifiers.items():
                self.add(identifier, changes if durable else None)
        elif identifiers:
            now = self._clock.now()
            changes.update(self.take_stale())
            self._entries.update(dict.fromkeys(identifiers, now))
            key, record = self._records.keep(now, list(identifiers))
            changes[key] = record
            oldest = list(islice(self._entries, max(len(self._entries) - self._size, 0)))
            run_all(map(self._entries.__delitem__, oldest))
            changes.update(dict.fromkeys(self._records.forget(oldest)))
            self._start()

    def remove_many(self, identifiers: Iterable[bytes]) -> None:
        """Forget messages that could not be taken; nothing of them is durable."""
        for identifier in identifiers:
            self.remove(identifier, {})
            self._records.forget([identifier])

    def _note(self, identifier: bytes, content: bytes) -> None:
        if content:
            self._contents[identifier] = content
        else:
            self._contents.pop(identifier, None)

    def remove(self, identifier: bytes, changes: dict[bytes, bytes | None]) -> None:
        """Forget a message that could not be taken; `changes` are those given to `add`."""
        self._entries.pop(identifier, None)
        self._contents.pop(identifier, None)
        if self._shares is not None:
            self._shares.remove(identifier)
        changes.pop(self.prefix + identifier, None)

    def _trim(self) -> None:
        while len(self._entries) > self._size:
            shares = self._shares
            identifier = next(iter(self._entries)) if shares is None else shares.take_surplus()
            del self._entries[identifier]
            self._contents.pop(identifier, None)
            self._stale.update(dict.fromkeys(self._records.forget([identifier])))

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
            if self._shares is not None:
                self._shares.remove(identifier)
            self._stale.update(dict.fromkeys(self._records.forget([identifier])))
        self._start()

    def take_stale(self) -> dict[bytes, bytes | None]:
        """Take the changes that delete old records, if no commit has taken them yet."""
        stale, self._stale = self._stale, {}
        return stale

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
