"""Says what became of every message at every destination, or that nothing explains it.

It knows what was sent, what went wrong when, and what each queue holds at the end; nothing of how
messages travel. Nothing may be lost, doubled, dead without a reason, out of order, or stuck.
"""

from collections import Counter
from itertools import pairwise, product

from tests.support.network.network_holdings import Copy, Holdings
from tests.support.network.network_ledger import DEATH, MACHINE, Ledger, Letter
from tests.support.network.network_world import MACHINES, Destination

_EXPIRED = frozenset({"NACK_REACH_QUEUE_TIMEOUT", "NACK_RECEIVE_TIMEOUT_AT_SENDER"})
"""What whoever has a copy says of it when its time is over."""
_SLACK = 1_000
"""Expiry counts whole seconds."""


class Judge:
    """Judges one run; `problems` is empty when all is well, `fates` counts what was found."""

    def __init__(
        self, ledger: Ledger, held: Holdings, destinations: dict[str, Destination], now: int
    ) -> None:
        self._ledger = ledger
        self._held = held
        self._destinations = destinations
        self._now = now
        self.problems: list[str] = []
        self.fates: Counter[str] = Counter()
        self._read = self._who_was_read()

    def judge(self) -> None:
        """Look at everything once."""
        for place, count in self._held.unsent.items():
            self._wrong(f"{count} are stuck from {place}")
        for letter in self._ledger.letters.values():
            for path in letter.targets:
                self._judge_copy(letter, Copy(letter.number, path))
        for path, destination in self._destinations.items():
            if destination.transactional:
                self._judge_order(path)
            self._judge_journal(path)
        self._judge_strangers()
        self._judge_reports()

    def _wrong(self, text: str) -> None:
        self.problems.append(text)

    # Reading

    def _who_was_read(self) -> dict[Copy, list[int]]:
        """When each copy was read. What is doubtful was read if it is not there any more, and its
        journal has it or could not take it.
        """
        found: dict[Copy, list[int]] = {}
        sure = Counter(Copy(r.number, r.path) for r in self._ledger.readings if r.certain)
        for reading in self._ledger.readings:
            copy = Copy(reading.number, reading.path)
            if reading.certain or (not sure[copy] and self._is_journalled(copy)):
                found.setdefault(copy, []).append(reading.time)
                sure[copy] += not reading.certain
        return found

    def _is_journalled(self, copy: Copy) -> bool:
        return copy.number in self._held.journals[copy.path]

    def _arrivals(self, copy: Copy) -> int:
        return len(self._read.get(copy, ())) + self._held.waiting[copy.path].count(copy.number)

    def _judge_order(self, path: str) -> None:
        """What one source sends to a transactional queue is read in the order of sending."""
        certain = [r.number for r in self._ledger.readings if r.path == path and r.certain]
        numbers = certain + self._held.waiting[path]
        for source in {self._ledger.letters[number].source for number in numbers}:
            mine = [n for n in numbers if self._ledger.letters[n].source == source]
            for one, other in pairwise(mine):
                if one >= other:
                    self._wrong(f"{path}: {other} after {one}")

    def _judge_journal(self, path: str) -> None:
        """The target journal has what was read, unless it was full at that moment."""
        machine, queue = path.split("\\")
        journal = Counter(self._held.journals[path])
        for copy, times in self._read.items():
            if copy.path != path:
                continue
            full = self._ledger.was(machine, f"{queue};journal", times[0], times[0])
            copies, letter = journal.pop(copy.number, 0), self._ledger.letters[copy.number]
            gone = letter.express and self._ledger.was(machine, DEATH, times[0])
            if copies != 1 and not full and not gone:
                self._wrong(f"{path}: {copy.number} was read, the journal has it {copies} times")
        if journal:
            self._wrong(f"{path}: the journal has {sorted(journal)[:3]}, which nobody has read")

    # Each copy

    def _judge_copy(self, letter: Letter, copy: Copy) -> None:
        arrivals = self._arrivals(copy)
        if arrivals > 1 and self._may_be_double(letter, copy):
            self.fates["express, and doubled by a death of its destination"] += 1
        elif arrivals > 1:
            self._wrong(f"{copy} of {letter.source} has come {arrivals} times: {letter}")
        fate = self._delivered(letter, copy) if arrivals else self._missing(letter, copy)
        if fate is None:
            self._wrong(f"{copy} is lost: {letter}, told {self._held.told.get(copy)}")
        self.fates[fate or "lost"] += 1
        self._judge_dead_letters(letter, copy)
        self._judge_told(letter, copy)
        self._judge_source_journal(letter, copy)

    def _delivered(self, letter: Letter, copy: Copy) -> str:
        kind = "read" if copy in self._read else "waiting"
        if letter.number in self._held.waiting[copy.path] and self._must_be_gone(letter, copy):
            self._wrong(f"{copy} waits although it has expired")
        return kind

    def _must_be_gone(self, letter: Letter, copy: Copy) -> bool:
        return letter.last_read is not None and self._now > letter.last_read + _SLACK

    def _missing(self, letter: Letter, copy: Copy) -> str | None:
        """Why a copy is nowhere; None when nothing explains it."""
        if letter.doubtful and self._is_unheard_of(letter):
            return "never sent"
        reason = self._reason(letter, copy)
        if reason is None:
            return "never sent, in part" if letter.refused and not letter.transactional else None
        if not self._is_known_of(letter, copy, reason):
            self._wrong(f"{copy}: nobody was told that it is {reason}: {letter}")
        return reason

    def _is_unheard_of(self, letter: Letter) -> bool:
        """Whether nothing of a doubtful message is anywhere; of a transaction it is all or none."""
        copies = [Copy(letter.number, path) for path in letter.targets]
        return not any(self._traces(copy) for copy in copies)

    def _traces(self, copy: Copy) -> int:
        held = self._held
        kept = (held.dead, held.dead_transactional, held.sources, held.told)
        return self._arrivals(copy) + sum(len(each.get(copy, ())) for each in kept)

    def _reason(self, letter: Letter, copy: Copy) -> str | None:
        """Why it may have been given up: what the text says in that case, and what was wrong."""
        machine, queue = copy.path.split("\\")
        told = self._classes(copy)
        full = self._ledger.was(machine, queue, letter.sent)
        late = self._is_late(letter)
        if full and ("NACK_Q_EXCEED_QUOTA" in told or not late):
            return "refused by a full queue"
        if late:
            expired = "NACK_RECEIVE_TIMEOUT" in told or "ACK_REACH_QUEUE" in told
            return "expired in its queue" if expired else "expired on its way"
        if letter.express and self._somebody_died(letter):
            return "express, and somebody has died"
        return None

    def _classes(self, copy: Copy) -> set[str]:
        return {name for name, _ in self._held.told.get(copy, ())}

    def _is_late(self, letter: Letter) -> bool:
        return letter.deadline is not None and self._now > letter.deadline

    def _somebody_died(self, letter: Letter) -> bool:
        return any(self._ledger.was(each, DEATH, letter.sent) for each in MACHINES)

    def _is_known_of(self, letter: Letter, copy: Copy, reason: str) -> bool:
        """Whether whoever asked is told of a message that was given up, as far as there is room."""
        held = self._held
        if letter.express or self._a_witness_was_full(letter, copy):
            return True
        dead = held.dead_transactional if letter.transactional else held.dead
        if letter.acknowledged and not any(each.startswith("NACK") for each in self._classes(copy)):
            return False
        if not letter.dead_letter or not letter.transactional:
            return True
        return bool(dead.get(copy))

    def _a_witness_was_full(self, letter: Letter, copy: Copy) -> bool:
        """Whether there was no room for an acknowledgement or a dead letter."""
        if any(self._ledger.was(each, MACHINE, letter.sent) for each in MACHINES):
            return True
        kept = product(MACHINES, ("admin", "system$;deadxact", "system$;deadletter"))
        return any(self._ledger.was(machine, scope, letter.sent) for machine, scope in kept)

    # Dead letters

    def _judge_dead_letters(self, letter: Letter, copy: Copy) -> None:
        own = self._held.dead_transactional if letter.transactional else self._held.dead
        other = self._held.dead if letter.transactional else self._held.dead_transactional
        places = own.get(copy, [])
        if other.get(copy):
            self._wrong(f"{copy} is in the wrong dead-letter queue")
        if len(places) > 1:
            self._judge_dead_letters_of_several(letter, copy, places)
        if not places:
            return
        if not letter.dead_letter:
            self._wrong(f"{copy} is a dead letter, for which nobody has asked")
        if letter.transactional and places != [letter.source]:
            self._wrong(f"{copy} is a dead letter of {places}, not of its source")
        if self._arrivals(copy):
            self._judge_doubtful_death(letter, copy)
        elif self._reason(letter, copy) is None:
            self._wrong(f"{copy} is a dead letter without a reason: {letter}")

    def _judge_dead_letters_of_several(self, letter: Letter, copy: Copy, places: list[str]) -> None:
        """A hop that has passed a message on, and has not been told so, has it as well."""
        excused = letter.express and self._somebody_died(letter)
        if letter.transactional or not (self._is_late(letter) or excused):
            self._wrong(f"{copy} is a dead letter {len(places)} times: {places}")
        self.fates["a dead letter of several hops, in doubt"] += 1

    def _judge_doubtful_death(self, letter: Letter, copy: Copy) -> None:
        """Nobody can know that a message has arrived whose acknowledgement comes too late."""
        if not self._is_late(letter) and not self._may_be_double(letter, copy):
            self._wrong(f"{copy} has arrived and is a dead letter: {letter}")
        self.fates["arrived, and a dead letter in doubt"] += 1

    # Acknowledgements and journals

    def _judge_told(self, letter: Letter, copy: Copy) -> None:
        told = self._classes(copy)
        if told and not letter.acknowledged:
            self._wrong(f"{copy} is acknowledged, for which nobody has asked")
        for (name, author), count in Counter(self._held.told.get(copy, ())).items():
            if count > 1 and not self._may_be_said_again(letter, copy, name):
                self._wrong(f"{copy}: {count} times {name} of {author}: {letter}")
        if "ACK_RECEIVE" in told and copy not in self._read:
            self._wrong(f"{copy}: ACK_RECEIVE, but nobody has read it")
        if "ACK_REACH_QUEUE" in told and not self._may_have_arrived(letter, copy):
            self._wrong(f"{copy}: ACK_REACH_QUEUE, but it has not arrived")
        refused = {name for name in told if name.startswith("NACK")}
        if refused and self._arrivals(copy):
            self._judge_doubtful_refusal(letter, copy, refused)
        if copy in self._read and "ACK_RECEIVE" not in told and self._must_be_told(letter, copy):
            self._wrong(f"{copy} was read, and nobody was told: {letter}")

    def _may_be_said_again(self, letter: Letter, copy: Copy, name: str) -> bool:
        """A message that is sent again may wait, and expire, at a router twice; an express one may
        arrive twice when its destination dies.
        """
        if name in _EXPIRED:
            return self._is_late(letter)
        return self._may_be_double(letter, copy)

    def _may_be_double(self, letter: Letter, copy: Copy) -> bool:
        """A destination that dies forgets which express messages it has had."""
        machine = copy.path.split("\\")[0]
        return letter.express and self._ledger.was(machine, DEATH, letter.sent)

    def _may_have_arrived(self, letter: Letter, copy: Copy) -> bool:
        if self._arrivals(copy):
            return True
        if letter.express and self._somebody_died(letter):
            return True
        return letter.last_read is not None and self._now > letter.last_read

    def _judge_doubtful_refusal(self, letter: Letter, copy: Copy, refused: set[str]) -> None:
        in_doubt = refused <= _EXPIRED and self._is_late(letter)
        if not in_doubt and not self._may_be_double(letter, copy):
            self._wrong(f"{copy} has arrived, and {refused}: {letter}")
        self.fates["arrived, and said in doubt not to have"] += 1

    def _must_be_told(self, letter: Letter, copy: Copy) -> bool:
        """Nothing has stood in the way of the acknowledgement of a reading."""
        machine = copy.path.split("\\")[0]
        read = self._read[copy][0]
        if letter.express or not letter.acknowledged:
            return False
        if self._ledger.was(machine, MACHINE, read, read):
            return False
        return not self._ledger.was("alice", "admin", read)

    def _judge_source_journal(self, letter: Letter, copy: Copy) -> None:
        kept = self._held.sources.get(copy, [])
        if kept and (not letter.journal or kept != [letter.source]):
            self._wrong(f"{copy} is in the journals of {kept}: {letter}")
        if kept and letter.transactional and copy not in self._read:
            self._wrong(f"{copy} is in the source's journal, and nobody has read it")
        full = self._ledger.was(letter.source, "system$;journal", letter.sent)
        excused = full or self._is_late(letter) or (letter.express and self._somebody_died(letter))
        if copy in self._read and letter.journal and not kept and not excused:
            self._wrong(f"{copy} was read, and is not in the source's journal: {letter}")

    # What nobody has sent

    def _judge_strangers(self) -> None:
        known = {Copy(n, path) for n, each in self._ledger.letters.items() for path in each.targets}
        held = self._held
        found = {Copy(n, path) for path, numbers in held.waiting.items() for n in numbers}
        for each in (held.dead, held.dead_transactional, held.sources, held.told, self._read):
            found |= set(each)
        if strange := found - known:
            self._wrong(f"nobody has sent {sorted(strange)[:3]}")

    def _judge_reports(self) -> None:
        """Reports are about traced messages only."""
        traced = {
            letter.identifier.ordinal
            for letter in self._ledger.letters.values()
            if letter.traced and letter.identifier is not None
        }
        if strange := set(self._held.reports) - traced:
            self._wrong(f"reports of {sorted(strange)[:3]}, which are not traced")
        self.fates["reports"] += len(self._held.reports)
