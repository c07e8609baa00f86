"""A few short seeds of `scripts/soak network`, and what its judge must notice."""

from collections.abc import Callable

import pytest

from tests.support.network.network_holdings import Copy, Holdings
from tests.support.network.network_judge import Judge
from tests.support.network.network_ledger import Ledger, Letter, Reading
from tests.support.network.network_world import Destination
from tests.support.soak.network_soak import run_seed

PATH = "bob\\stream"


@pytest.mark.conformance(
    "MQQB-rule-3.1.1.5", "MQQB-rule-3.1.5.6", "MQQB-rule-3.1.5.7", "MQQB-rule-3.1.5.8.1"
)
@pytest.mark.parametrize("seed", [5, 8, 11])
def test_every_message_has_a_fate_that_is_explained(seed: int) -> None:
    outcome = run_seed(seed, messages=100)
    assert outcome.problems == []
    assert outcome.fates["read"] + outcome.fates["waiting"] >= 50
    assert {"kills", "full quotas", "lost addresses"} <= set(outcome.happened)


def judged(change: Callable[[Ledger, Holdings], object]) -> list[str]:
    """Two messages that were read in order, but for a change."""
    ledger = Ledger({n: Letter(n, "alice", (PATH,), n, transactional=True) for n in (1, 2)})
    ledger.readings = [Reading(PATH, number, number) for number in (1, 2)]
    held = Holdings(waiting={PATH: []}, journals={PATH: [1, 2]})
    change(ledger, held)
    place = Destination("bob", "stream", "DIRECT=OS:bob\\private$\\stream", True)
    judge = Judge(ledger, held, {PATH: place}, 1_000)
    judge.judge()
    return judge.problems


def test_the_judge_finds_nothing_wrong_with_what_is_right() -> None:
    assert judged(lambda ledger, held: None) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda ledger, held: ledger.readings.pop(), "is lost"),
        (lambda ledger, held: held.waiting[PATH].append(2), "has come 2 times"),
        (lambda ledger, held: ledger.readings.reverse(), "1 after 2"),
        (lambda ledger, held: held.journals[PATH].pop(), "the journal has it 0 times"),
        (lambda ledger, held: held.dead[Copy(1, PATH)].append("bob"), "wrong dead-letter"),
        (
            lambda ledger, held: held.dead_transactional[Copy(1, PATH)].append("alice"),
            "is a dead letter, for which nobody has asked",
        ),
        (lambda ledger, held: held.unsent.update(alice=1), "1 are stuck"),
        (lambda ledger, held: held.waiting[PATH].append(1), "1 after 2"),
        (lambda ledger, held: held.told[Copy(1, PATH)].append(("ACK_RECEIVE", "bob")), "nobody"),
        (lambda ledger, held: held.reports.append(5), "which are not traced"),
    ],
)
def test_the_judge_notices(change: Callable[[Ledger, Holdings], object], said: str) -> None:
    assert said in "; ".join(judged(change))
