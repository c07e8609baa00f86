"""A few short seeds of `scripts/soak network`, and what its judge must notice."""

import pytest

from tests.support.network_soak import run_seed


@pytest.mark.conformance(
    "MQQB-rule-3.1.1.5", "MQQB-rule-3.1.5.6", "MQQB-rule-3.1.5.7", "MQQB-rule-3.1.5.8.1"
)
@pytest.mark.parametrize("seed", [3, 8, 10])
def test_every_message_has_a_fate_that_is_explained(seed: int) -> None:
    outcome = run_seed(seed, messages=100)
    assert outcome.problems == []
    assert outcome.fates["read"] + outcome.fates["waiting"] >= 50
    assert {"kills", "full quotas", "lost addresses"} <= set(outcome.happened)
