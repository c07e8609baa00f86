"""The checker of the faults finds each broken promise, and nothing in a story that went well."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.cluster import checker
from tests.support.cluster.history import (
    Fault,
    History,
    Missed,
    Name,
    Outcome,
    Seen,
    Sent,
    Taken,
    Written,
)

A1, A2, A3 = (Name("a", number) for number in (1, 2, 3))
T1, T2 = Name("t", 1), Name("t", 2)
K1 = Name("k", 1)
P1, P2 = Name("p", 1), Name("p", 2)
ROWS = {("body", b"1"): b"one"}


def _sent(name: Name, at: float, outcome: Outcome = Outcome.DONE, **more: str) -> Sent:
    given = {"queue": "orders", "node": "alice", **more}
    return Sent(name, given.pop("queue"), given.pop("node"), at, at + 0.5, outcome, **given)


def _taken(name: Name, at: float, outcome: Outcome = Outcome.DONE) -> Taken:
    return Taken(name, "orders", "alice", at, at + 0.2, at + 0.5, outcome)


def _story() -> History:
    """A takeover by bob at 10; a key that was tried at both, and a peer's stream."""
    return History(
        sent=[
            _sent(A1, 1),
            _sent(A2, 2),
            _sent(A3, 3),
            _sent(T1, 4, unit="t1", queue="pairs"),
            _sent(T2, 4, unit="t1", queue="pairs"),
            _sent(K1, 9, Outcome.DOUBT, key="k1"),
            _sent(K1, 11, key="k1", node="bob"),
            _sent(P1, 5, node="", queue="stream"),
            _sent(P2, 6, node="", queue="stream"),
        ],
        taken=[_taken(A1, 5)],
        seen=[
            Seen("orders", "bob", 20, 21, (A2, A3, K1)),
            Seen("stream", "bob", 20, 21, (P1, P2)),
        ],
        faults=[Fault("kill alice", 9.4, 9.6)],
        held={"orders": (A2, A3, K1), "pairs": (T1, T2), "stream": (P1, P2)},
        records=[
            Written(1, 1, "alice"),
            Written(2, 1, "alice", (A1, A2, A3, T1, T2)),
            Written(3, 1, "alice", (K1, P1)),
            Written(4, 2, "bob"),
            Written(5, 2, "bob", (P2,)),
        ],
        copies={"log": ROWS, "alice": ROWS, "bob": ROWS},
    )


def test_nothing_is_wrong_with_a_story_that_went_well() -> None:
    assert checker.problems(_story()) == []


def _without(history: History, queue: str, *names: Name) -> None:
    history.held[queue] = tuple(each for each in history.held[queue] if each not in names)


def _lose(history: History) -> None:
    history.seen.clear()
    _without(history, "orders", A3)


def _keep_refused(history: History) -> None:
    history.sent.append(_sent(Name("a", 4), 4, Outcome.REFUSED))
    history.held["orders"] += (Name("a", 4),)


def _invent(history: History) -> None:
    history.held["orders"] += (Name("x", 1),)


def _double(history: History) -> None:
    history.held["orders"] += (A3,)


def _give_again(history: History) -> None:
    history.taken.append(_taken(A1, 12, Outcome.REFUSED))


def _show_again(history: History) -> None:
    history.seen.append(Seen("orders", "bob", 20, 21, (A1, A2, A3, K1)))


def _double_key(history: History) -> None:
    history.held["orders"] += (K1,)


def _swap(history: History) -> None:
    history.held["orders"] = (A3, A2, K1)


def _give_in_wrong_order(history: History) -> None:
    history.seen.clear()
    history.held["orders"] = (K1,)
    history.taken += [_taken(A3, 6), _taken(A2, 7)]


def _halve(history: History) -> None:
    _without(history, "pairs", T2)


def _write_by_two(history: History) -> None:
    history.records[2] = replace(history.records[2], writer="bob")


def _skip_a_record(history: History) -> None:
    history.records[4] = replace(history.records[4], number=6)


def _fall(history: History) -> None:
    history.records[3:] = [Written(4, 2, "bob"), Written(5, 1, "alice", (P2,))]


def _answer_for_another(history: History) -> None:
    history.sent[1] = replace(history.sent[1], node="bob")


def _answer_without_a_record(history: History) -> None:
    history.records[1] = replace(history.records[1], names=(A1, A3, T1, T2))


def _differ(history: History) -> None:
    history.copies["bob"] = {("body", b"1"): b"two"}


def _show_what_is_old(history: History) -> None:
    history.seen.append(Seen("orders", "alice", 20, 21, (A2, K1)))


def _leave_a_gap(history: History) -> None:
    history.seen.append(Seen("stream", "bob", 20, 21, (P2,)))


def _serve_late(history: History) -> None:
    history.sent[6] = _sent(K1, 31, key="k1", node="bob")


def _never_serve(history: History) -> None:
    history.faults.append(Fault("pause bob", 90, 91))


@pytest.mark.parametrize(
    ("rule", "spoil", "said"),
    [
        (checker.lost, _lose, "1 are lost: a:3"),
        (checker.strange, _keep_refused, "1 were refused, and are there: a:4"),
        (checker.strange, _invent, "1 were never sent: x:1"),
        (checker.twice, _double, "1 have come twice: a:3"),
        (checker.twice, _give_again, "1 have come twice: a:1"),
        (checker.twice, _show_again, "1 have come twice: a:1"),
        (checker.twice, _double_key, "1 keys have sent twice: k:1"),
        (checker.out_of_order, _swap, "1 are not in order: a:3 before a:2"),
        (checker.out_of_order, _give_in_wrong_order, "1 are not in order: a:3 before a:2"),
        (checker.in_part, _halve, "1 transactions are there in part: t1"),
        (checker.wrong_log, _write_by_two, "epoch 1 has several writers: alice, bob"),
        (checker.wrong_log, _skip_a_record, "record 6 comes after 4"),
        (checker.wrong_log, _fall, "record 5 is of epoch 1, after 2"),
        (
            checker.wrong_log,
            _answer_for_another,
            "1 were answered by a node that has not written them: a:2",
        ),
        (
            checker.wrong_log,
            _answer_without_a_record,
            "1 were answered, and are in no record: a:2",
        ),
        (checker.different_copies, _differ, "alice and bob differ in 1 rows: ('body', b'1')"),
        (checker.stale, _show_what_is_old, "alice did not show 1 of orders: a:3"),
        (checker.broken_streams, _leave_a_gap, "1 are missing before p:2: p:1"),
        (checker.late_service, _serve_late, "21.9 s without an answer after kill alice"),
        (checker.late_service, _never_serve, "nothing was answered after pause bob"),
    ],
)
def test_each_rule_finds_what_breaks_it(
    rule: Callable[[History], object], spoil: Callable[[History], None], said: str
) -> None:
    history = _story()
    spoil(history)
    assert said in checker.problems(history)
    assert said in list(rule(history))  # type: ignore[call-overload]


def test_a_removal_in_doubt_excuses_a_message_that_is_not_there() -> None:
    history = _story()
    _lose(history)
    history.taken.append(_taken(A3, 6, Outcome.DOUBT))
    assert checker.problems(history) == []


def test_a_read_without_an_answer_excuses_a_message_that_is_given_late() -> None:
    history = _story()
    _give_in_wrong_order(history)
    history.missed.append(Missed("orders", 5.5, 6))
    assert checker.problems(history) == []


def test_a_message_that_was_given_back_may_come_again() -> None:
    history = _story()
    history.taken.append(_taken(A2, 6, Outcome.REFUSED))
    history.taken.append(_taken(A2, 7, Outcome.REFUSED))
    assert checker.problems(history) == []


def test_a_message_in_doubt_may_come_late_and_hides_nothing() -> None:
    history = _story()
    late = Name("a", 4)
    history.sent += [_sent(late, 3.5, Outcome.DOUBT), _sent(Name("a", 5), 4.5)]
    history.records[2] = replace(history.records[2], names=(K1, P1, Name("a", 5)))
    history.seen.clear()
    history.held["orders"] = (A2, A3, Name("a", 5), late, K1)
    assert checker.problems(history) == []
    history.held["orders"] = (A3, late, A2, Name("a", 5), K1)
    assert list(checker.out_of_order(history)) == ["1 are not in order: a:3 before a:2"]
