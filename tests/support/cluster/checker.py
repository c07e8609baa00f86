"""Judges a history: what must be true whatever has happened to machines, disks and networks.

Each rule is a function of the history alone that gives a sentence for each broken promise.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from tests.support.cluster.history import History, Missed, Name, Outcome, Sent, Taken

PROMPT = 15.0
"""Seconds after the end of a fault in which something is answered again."""
SHOWN = 3


def problems(history: History, prompt: float = PROMPT) -> list[str]:
    """What is wrong, by all rules."""
    found = [sentence for rule in RULES for sentence in rule(history)]
    return found + list(late_service(history, prompt))


def lost_names(history: History) -> set[Name]:
    """What was acknowledged and is not there, though nobody has removed it, nor may have."""
    there = _held(history) | {each.name for each in history.taken if _may_be_gone(each)}
    return history.acknowledged - there


def lost(history: History) -> Iterator[str]:
    """What was acknowledged is there, unless somebody has removed it, or may have."""
    if missing := lost_names(history):
        yield f"{len(missing)} are lost: {_some(missing)}"


def strange(history: History) -> Iterator[str]:
    """What was refused, or never sent, is not there."""
    tried: dict[Name, set[Outcome]] = defaultdict(set)
    for each in history.sent:
        tried[each.name].add(each.outcome)
    came = _held(history) | {each.name for each in history.taken}
    if unknown := came - tried.keys():
        yield f"{len(unknown)} were never sent: {_some(unknown)}"
    if refused := {name for name in came & tried.keys() if tried[name] == {Outcome.REFUSED}}:
        yield f"{len(refused)} were refused, and are there: {_some(refused)}"


def doubled_names(history: History) -> set[Name]:
    """What is there more than once, or came again after its removal."""
    came = Counter(name for names in history.held.values() for name in names)
    came.update(each.name for each in history.taken if each.outcome is Outcome.DONE)
    return {name for name, times in came.items() if times > 1} | set(_given_again(history))


def twice(history: History) -> Iterator[str]:
    """Each message comes once, one with a key too; what was removed does not come again."""
    keyed = {each.name for each in history.sent if each.key}
    again = doubled_names(history)
    if doubled := again - keyed:
        yield f"{len(doubled)} have come twice: {_some(doubled)}"
    if doubled := again & keyed:
        yield f"{len(doubled)} keys have sent twice: {_some(doubled)}"


def _given_again(history: History) -> Iterator[Name]:
    """What was given to somebody, or shown, after its removal had been answered."""
    gone = _removed(history)
    for each in history.taken:
        if each.began > gone.get(each.name, each.began):
            yield each.name
    for look in history.seen:
        yield from (name for name in look.names if look.began > gone.get(name, look.began))


def out_of_order(history: History) -> Iterator[str]:
    """Messages of one sender stay in their order, in each queue and for whoever reads it.

    One that was never answered may come late: a network or a process that stood still may still
    have had its request when the sender had gone on.
    """
    certain = history.acknowledged
    lists = [*history.held.values(), *(each.names for each in history.seen)]
    wrong = {
        pair for names in lists for pair in _falling(name for name in names if name in certain)
    }
    wrong |= set(_taken_out_of_order(history, certain))
    if wrong:
        told = ", ".join(f"{one} before {other}" for one, other in sorted(wrong)[:SHOWN])
        yield f"{len(wrong)} are not in order: {told}"


def _falling(names: Iterable[Name]) -> Iterator[tuple[Name, Name]]:
    """Neighbours of one sender of which the first one is the later one."""
    by_sender: dict[str, list[Name]] = defaultdict(list)
    for name in names:
        by_sender[name.sender].append(name)
    for each in by_sender.values():
        yield from ((one, other) for one, other in pairwise(each) if one > other)


def _taken_out_of_order(history: History, certain: set[Name]) -> Iterator[tuple[Name, Name]]:
    """First gifts of a queue, unless a read was missed: what it held comes after its neighbours."""
    first: dict[tuple[str, Name], Taken] = {}
    taken = (each for each in history.taken if each.name in certain)
    for each in sorted(taken, key=lambda taken: taken.given):
        first.setdefault((each.queue, each.name), each)
    by_queue: dict[tuple[str, str], list[Taken]] = defaultdict(list)
    for (queue, name), each in first.items():
        by_queue[queue, name.sender].append(each)
    for (queue, _), gifts in by_queue.items():
        missed = [each for each in history.missed if each.queue == queue]
        for one, other in pairwise(gifts):
            if one.name > other.name and not _may_be_late(other, missed):
                yield one.name, other.name


def _may_be_late(taken: Taken, missed: Iterable[Missed]) -> bool:
    return any(each.began < taken.began for each in missed)


def in_part(history: History) -> Iterator[str]:
    """Of a transaction everything is there, or nothing."""
    units: dict[str, set[Name]] = defaultdict(set)
    for each in history.sent:
        if each.unit:
            units[each.unit].add(each.name)
    came = _held(history) | {each.name for each in history.taken}
    if broken := [unit for unit, names in units.items() if 0 < len(names & came) < len(names)]:
        yield f"{len(broken)} transactions are there in part: {_some(broken)}"


def wrong_log(history: History) -> Iterator[str]:
    """Records have all numbers, epochs never fall, and each has one writer, who alone answers."""
    writers: dict[int, set[str]] = defaultdict(set)
    for each in history.records:
        writers[each.epoch].add(each.writer)
    for epoch, names in writers.items():
        if len(names) > 1:
            yield f"epoch {epoch} has several writers: {_some(names)}"
    for one, other in pairwise(history.records):
        if other.number != one.number + 1:
            yield f"record {other.number} comes after {one.number}"
        if other.epoch < one.epoch:
            yield f"record {other.number} is of epoch {other.epoch}, after {one.epoch}"
    yield from _answered_by_others(history)


def _answered_by_others(history: History) -> Iterator[str]:
    """An answer is the writer's whose record has the message; of a key it may be a later one's."""
    writers: dict[Name, str] = {}
    for each in history.records:
        for name in each.names:
            writers.setdefault(name, each.writer)
    attempts: dict[Name, list[Sent]] = defaultdict(list)
    for attempt in history.sent:
        attempts[attempt.name].append(attempt)
    wrong, bare = [], []
    for name, tried in attempts.items():
        answered = [each for each in tried if each.outcome is Outcome.DONE and each.node]
        if not answered:
            continue
        if name not in writers:
            bare.append(name)
        elif writers[name] not in {each.node for each in tried}:
            wrong.append(name)
    if wrong:
        yield f"{len(wrong)} were answered by a node that has not written them: {_some(wrong)}"
    if bare and history.records:
        yield f"{len(bare)} were answered, and are in no record: {_some(bare)}"


def different_copies(history: History) -> Iterator[str]:
    """The log from its beginning gives what the nodes have."""
    for (one, rows), (other, others) in pairwise(history.copies.items()):
        if differing := {
            key for key in rows.keys() | others.keys() if rows.get(key) != others.get(key)
        }:
            yield f"{one} and {other} differ in {len(differing)} rows: {_some(differing)}"


def stale(history: History) -> Iterator[str]:
    """Whoever looks sees all that was answered before, by whichever node."""
    first: dict[Name, float] = {}
    for sent in history.sent:
        if sent.outcome is Outcome.DONE and sent.node:
            first[sent.name] = min(sent.ended, first.get(sent.name, sent.ended))
    queues = {each.name: each.queue for each in history.sent}
    given: dict[Name, float] = {}
    for taken in history.taken:
        given[taken.name] = min(taken.began, given.get(taken.name, taken.began))
    for look in history.seen:
        due = {name for name, ended in first.items() if ended < look.began}
        due = {name for name in due if queues[name] == look.queue}
        due = {name for name in due if given.get(name, look.ended) >= look.ended}
        if missing := due - set(look.names):
            yield f"{look.node} did not show {len(missing)} of {look.queue}: {_some(missing)}"


def broken_streams(history: History) -> Iterator[str]:
    """What another queue manager sends comes without a gap, whenever somebody looks."""
    sent = {each.name for each in history.sent if not each.node}
    certain = {each.name for each in history.sent if each.outcome is Outcome.DONE} & sent
    gone = {each.name for each in history.taken}
    for names in (*history.held.values(), *(each.names for each in history.seen)):
        for sender in {name.sender for name in names if name in sent}:
            last = max(name for name in names if name.sender == sender)
            due = {name for name in certain if name.sender == sender and name < last}
            if missing := due - set(names) - gone:
                yield f"{len(missing)} are missing before {last}: {_some(missing)}"


def late_service(history: History, prompt: float = PROMPT) -> Iterator[str]:
    """After each fault something is answered in time."""
    answers = history.answers()
    for fault in history.faults:
        after = [ended for began, ended in answers if began >= fault.ended]
        if not after:
            yield f"nothing was answered after {fault.what}"
        elif (waited := after[0] - fault.ended) > prompt:
            yield f"{waited:.1f} s without an answer after {fault.what}"


RULES: tuple[Callable[[History], Iterator[str]], ...] = (
    lost,
    strange,
    twice,
    out_of_order,
    in_part,
    wrong_log,
    different_copies,
    stale,
    broken_streams,
)


def _held(history: History) -> set[Name]:
    return {name for names in history.held.values() for name in names}


def _may_be_gone(taken: Taken) -> bool:
    return taken.outcome is not Outcome.REFUSED


def _removed(history: History) -> dict[Name, float]:
    """When each removal was answered."""
    return {each.name: each.ended for each in history.taken if each.outcome is Outcome.DONE}


def _some(things: Iterable[object]) -> str:
    return ", ".join(str(each) for each in sorted(things, key=str)[:SHOWN])
