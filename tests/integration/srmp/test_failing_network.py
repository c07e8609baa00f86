"""Two processes that are killed, and a network between them that cuts off what goes by HTTP."""

import pytest

from tests.support.network.network_processes import HTTP, run_seed

KILLS, MESSAGES = 2, 150
"""Each of the two dies once; `scripts/soak network --http` goes on for longer."""


@pytest.mark.conformance(
    "MQSRM-element-Stream",
    "MQSRM-rule-3.1.5.1.6.3",
    "MQSRM-rule-3.1.5.1.8",
    "MQSRM-rule-3.1.5.1.11",
)
def test_whatever_happens_what_was_posted_arrives_once_and_in_order() -> None:
    outcome = run_seed(seed=1, kills=KILLS, wire=HTTP, messages=MESSAGES)
    assert outcome.problems == []
    assert outcome.messages >= MESSAGES
    assert sum(outcome.happened.values()) >= 5
