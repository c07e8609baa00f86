"""An order acknowledgement whose removals take several writes, and a crash between two of them.

The sequence is kept with each of the removals ([MS-MQQB] 3.1.1.5, 3.1.5.6).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.binary.binary_network import Faults, Node, Simulation
from tests.support.fast import templates

STREAM = "DIRECT=OS:bob\\private$\\stream"
BODIES = [b"%d" % number for number in range(12)]
FEW = 9
"""Records in one write: those of two messages, or three."""


def sent(directory: Path, together: bool, how: dict[str, Any]) -> tuple[Simulation, Node, Node]:
    """Two queue managers, of which one is going to hear that its messages are in order."""
    simulation = Simulation(directory, faults=Faults(delay=0))
    alice, bob = simulation.node("alice"), simulation.node("bob")
    bob.create("stream", transactional=True)
    alice.switch(together)
    for body in BODIES:
        alice.send_later(STREAM, body, True, **how)
    simulation.until(lambda: len(bob.bodies("stream")) == len(BODIES))
    assert alice.unsent == len(BODIES)
    writer = alice.store._writer
    writer._settings = replace(writer._settings, group_records=FEW)
    return simulation, alice, bob


@pytest.mark.parametrize("fuse", [2, 3])
@pytest.mark.parametrize("how", [{}, {"negative_journaling_requested": True}])
@pytest.mark.parametrize("together", templates.WAYS)
def test_what_has_arrived_in_order_is_not_sent_as_another_message_after_a_crash(
    tmp_path: Path, together: bool, how: dict[str, Any], fuse: int
) -> None:
    simulation, alice, bob = sent(tmp_path, together, how)
    alice.fuse = fuse
    simulation.advance(2_000)
    if alice.alive:
        alice.kill()
    alice.start()
    queues = alice.engine.outgoing.list()
    left = sum(queue.message_position_list.available for queue in queues)
    assert left in (0, len(BODIES))
    simulation.advance(60_000)
    assert bob.bodies("stream") == BODIES
    assert alice.unsent == (len(BODIES) if how else 0)
    alice.send(STREAM, b"next", True, **how)
    simulation.advance(60_000)
    assert bob.bodies("stream") == [*BODIES, b"next"]
    simulation.stop()
