"""What is remembered of requests that repeat, and how little those cost that never do."""

from rpcqm.fast.learned import Budget, Learned, Patience
from tests.support.clock import SimulatedClock


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    learned: Learned[str, int] = Learned(2)
    for key in "ab":
        learned.keep(key, ord(key))
    assert learned.find("a") == ord("a")
    learned.keep("c", ord("c"))
    assert [key in learned for key in "abc"] == [True, False, True]
    assert len(learned) == 2


def test_a_lesson_without_a_template_is_not_given_again() -> None:
    lessons: list[str] = []
    learned: Learned[str, int] = Learned(2)
    budget = Budget(SimulatedClock(), 8, 8)
    for _ in range(3):
        assert learned.find_or_learn("a", budget, lambda: lessons.append("a")) is None
    assert lessons == ["a"]


def test_lessons_are_bounded_by_time() -> None:
    clock = SimulatedClock()
    learned: Learned[int, int] = Learned(100)
    budget = Budget(clock, 4, 2)
    found = [learned.find_or_learn(number, budget, lambda: 1) for number in range(10)]
    assert found == [1] * 4 + [None] * 6
    clock.advance(1000)
    found = [learned.find_or_learn(number, budget, lambda: 1) for number in range(4, 10)]
    assert found == [1] * 2 + [None] * 4


def test_after_many_misses_few_requests_are_looked_at() -> None:
    patience = Patience(64, 16)
    looked_at = sum(patience.looks() for _ in range(64 + 160))
    assert looked_at == 64 + 10
    patience.found()
    assert all(patience.looks() for _ in range(64))
