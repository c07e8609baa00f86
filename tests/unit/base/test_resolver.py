"""Names are resolved in few threads that nobody waits for, each sender's in its turns (G425)."""

import socket
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from rpcqm.base import resolver
from rpcqm.base.completion import Completion
from rpcqm.base.resolver import (
    DEADLINE,
    OWN_THREADS,
    OWN_THREADS_OF_ONE,
    REMEMBERED,
    THREADS,
    THREADS_OF_ONE,
    WAITING_OF_ONE,
    Addresses,
    Resolver,
)
from tests.support.clock import SimulatedClock

PATIENCE = 10.0
HERE = ("127.0.0.1",)


class Names:
    """A system's resolver that answers when a test says so, and one that asks it."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.asked: SimpleQueue[str] = SimpleQueue()
        self.seen: list[str] = []
        self._answers: dict[str, Addresses | OSError] = {}
        self._changed = threading.Condition()
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.resolver = Resolver(self.clock.timers, self._calls.put, self._look_up)

    def _look_up(self, host: str) -> Addresses:
        self.asked.put(host)
        with self._changed:
            self._changed.wait_for(lambda: host in self._answers or "*" in self._answers)
        found = self._answers.get(host, HERE)
        if isinstance(found, OSError):
            raise found
        return found

    def answer(self, host: str, found: Addresses | OSError = HERE) -> None:
        """Let the system answer a look-up that goes on, and the loop hear of it."""
        with self._changed:
            self._answers[host] = found
            self._changed.notify_all()
        self._calls.get(timeout=PATIENCE)()

    def end(self) -> None:
        """Let all threads go."""
        with self._changed:
            self._answers["*"] = HERE
            self._changed.notify_all()

    def started(self, count: int) -> list[str]:
        """So many names that the system is asked for; there are no others."""
        found = [self.asked.get(timeout=PATIENCE) for _ in range(count)]
        assert self.asked.empty()
        return found

    def ask(self, host: str, *senders: str) -> Completion[Addresses]:
        return self.resolver.resolve(host, senders)


@pytest.fixture
def names() -> Iterator[Names]:
    made = Names()
    yield made
    made.resolver.stop()
    made.end()


@pytest.mark.bound("names.threads", "names.threads_of_one")
def test_each_sender_has_few_threads_and_all_of_them_not_many_more(names: Names) -> None:
    for sender in range(THREADS // THREADS_OF_ONE + 1):
        for number in range(THREADS_OF_ONE + 1):
            names.ask(f"host{number}.of{sender}", f"sender{sender}")
    first = names.started(THREADS)
    assert {name.partition(".of")[2] for name in first} == {"0", "1", "2", "3"}
    names.answer(first[0])
    (next_one,) = names.started(1)
    assert next_one in ("host0.of4", f"host{THREADS_OF_ONE}.of0")


@pytest.mark.bound("names.own_threads")
def test_what_the_operator_has_named_has_threads_of_its_own_and_this_machine_one_more(
    names: Names,
) -> None:
    for number in range(THREADS_OF_ONE + 1):
        names.ask(f"host{number}", "mallory")
    names.started(THREADS_OF_ONE)
    for number in range(OWN_THREADS):
        names.ask(f"peer{number}")
    names.started(OWN_THREADS_OF_ONE)
    found = names.ask("localhost", "mallory")
    assert names.started(1) == ["localhost"]
    names.answer("localhost")
    assert found.result() == HERE


def test_an_address_needs_no_turn(names: Names) -> None:
    assert [names.ask(host, "mallory").result() for host in ("::1", "fe80::1%lo", "1.2.3.4")] == [
        ("::1",),
        ("fe80::1%lo",),
        ("1.2.3.4",),
    ]
    assert names.asked.empty()


@pytest.mark.bound("names.deadline")
def test_who_asks_hears_by_the_deadline_and_a_late_answer_counts_for_the_next(
    names: Names,
) -> None:
    asked = [names.ask(f"host{number}", "mallory") for number in range(THREADS_OF_ONE + 1)]
    first, *_ = names.started(THREADS_OF_ONE)
    names.clock.advance(DEADLINE - 1)
    assert not any(each.done for each in asked)
    names.clock.advance(1)
    assert all(isinstance(each.error, TimeoutError) for each in asked)
    assert isinstance(names.ask(first, "mallory").error, TimeoutError)
    names.answer(first)
    assert names.ask(first, "mallory").result() == HERE
    assert names.asked.empty()


@pytest.mark.bound("names.waiting_of_one")
def test_one_sender_lets_only_so_many_names_wait(names: Names) -> None:
    asked = [
        names.ask(f"host{number}", "mallory") for number in range(THREADS_OF_ONE + WAITING_OF_ONE)
    ]
    assert not any(each.done for each in asked)
    assert isinstance(names.ask("another", "mallory").error, OSError)
    assert not names.ask("another", "carol").done
    assert not names.ask("another", "mallory", "carol").done


@pytest.mark.bound("names.waiting")
def test_all_senders_let_only_so_many_names_wait(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "WAITING", 5)
    for number in range(THREADS + 5):
        assert not names.ask("host", f"sender{number}").done
    assert isinstance(names.ask("host", "another").error, OSError)


@pytest.mark.bound("names.remembered")
def test_what_could_not_be_resolved_is_not_asked_for_again_for_a_while(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "NAMES", 2)
    unknown = socket.gaierror(socket.EAI_NONAME, "unknown")
    for host in ("one", "two"):
        asked = names.ask(host, "mallory")
        names.started(1)
        names.answer(host, unknown)
        assert asked.error is unknown
    assert names.ask("ONE.", "carol").error is unknown
    assert names.ask("two", "carol").error is unknown
    names.ask("three", "mallory")
    names.started(1)
    names.answer("three", unknown)
    names.ask("one", "carol")
    assert names.started(1) == ["one"]
    names.clock.advance(REMEMBERED)
    names.ask("two", "carol")
    assert names.started(1) == ["two"]


def test_what_the_operator_has_named_is_asked_for_each_time(names: Names) -> None:
    for _ in range(2):
        asked = names.ask("peer")
        names.started(1)
        names.answer("peer", OSError("not yet"))
        assert isinstance(asked.error, OSError)


def test_the_end_answers_who_waits_and_takes_no_more(names: Names) -> None:
    asked = [names.ask(f"host{number}", "mallory") for number in range(THREADS_OF_ONE + 1)]
    names.resolver.stop()
    assert all(isinstance(each.error, OSError) for each in asked)
    assert isinstance(names.ask("another", "carol").error, OSError)
    assert all(each.daemon for each in threading.enumerate() if each.name == "resolver")
