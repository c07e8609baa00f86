"""Two processes that are killed, and a network between them that fails."""

import pytest

from tests.support.network.network_processes import run_seed

KILLS = 2
"""Each of the two dies once; `scripts/soak network --processes` goes on for longer."""


@pytest.mark.conformance("MQQB-rule-3.1.1.5", "MQQB-rule-3.1.5.8.1")
def test_whatever_happens_what_was_sent_arrives_once_and_in_order() -> None:
    outcome = run_seed(seed=1, kills=KILLS)
    assert outcome.problems == []
    assert outcome.messages >= 200
    assert sum(outcome.happened.values()) >= 5
