"""What is remembered of identities that two queue managers have (G492), and its bounds."""

from uuid import UUID

import pytest
from structlog.testing import capture_logs

from rpcqm.base.metrics import Metrics
from rpcqm.qm.identity_conflicts import (
    BOTH_ALIVE,
    COUNTED,
    HOUR,
    MOST_CONFLICTS,
    MOST_LINES,
    OTHER_CONTENT,
    RECENT,
    IdentityConflicts,
)
from tests.support.clock import SimulatedClock

PEER = UUID(int=0x7357)


class Met:
    """Conflicts of a queue manager, its clock and its metrics."""

    def __init__(self) -> None:
        self.clock, self.metrics = SimulatedClock(), Metrics()
        self.conflicts = IdentityConflicts(self.clock, self.metrics)

    def note(self, number: int, reason: str = BOTH_ALIVE) -> None:
        self.conflicts.note(UUID(int=number), "192.0.2.1", "192.0.2.2", reason)

    def known(self) -> list[int]:
        return [each.identity.int for each in self.conflicts.recent()]


@pytest.fixture
def met() -> Met:
    return Met()


def test_a_pair_has_one_line_whatever_comes_of_it_and_is_counted_each_time(met: Met) -> None:
    with capture_logs() as lines:
        met.conflicts.note(PEER, "192.0.2.1", "192.0.2.2", BOTH_ALIVE)
        met.conflicts.note(PEER, "192.0.2.2", "192.0.2.1", OTHER_CONTENT)
        met.conflicts.note(PEER, "192.0.2.1", "192.0.2.3", OTHER_CONTENT)
    assert [(line["addresses"], line["reason"]) for line in lines] == [
        (["192.0.2.1", "192.0.2.2"], BOTH_ALIVE),
        (["192.0.2.1", "192.0.2.3"], OTHER_CONTENT),
    ]
    assert met.metrics.counts[COUNTED] == 3
    assert [each.count for each in met.conflicts.recent()] == [1, 2]


def test_a_conflict_needs_attention_for_a_day(met: Met) -> None:
    met.note(1)
    met.clock.advance(RECENT)
    assert met.known() == [1]
    met.clock.advance(1)
    assert met.known() == []
    met.note(1)
    assert met.known() == [1]


@pytest.mark.bound("identity.conflicts")
def test_the_pairs_that_were_seen_last_are_remembered(met: Met) -> None:
    for number in range(MOST_CONFLICTS):
        met.note(number)
    met.note(0)
    assert len(met.known()) == MOST_CONFLICTS
    met.note(MOST_CONFLICTS)
    known = met.known()
    assert len(known) == MOST_CONFLICTS
    assert known[:2] == [MOST_CONFLICTS, 0]
    assert 1 not in known


@pytest.mark.bound("identity.lines")
def test_strangers_fill_no_log_with_identities(met: Met) -> None:
    with capture_logs() as lines:
        for number in range(MOST_LINES + 1):
            met.note(number)
        assert len(lines) == MOST_LINES
        met.clock.advance(HOUR)
        met.note(MOST_LINES + 1)
    assert len(lines) == MOST_LINES + 1
    assert met.metrics.counts[COUNTED] == MOST_LINES + 2
