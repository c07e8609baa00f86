"""kill -9 of a real queue manager under load from several clients, seen through its RPC.

With request templates and without; it is stopped under load, too, and says what they have done.
"""

import json

import pytest

from tests.crash.server_load import FEWEST, ServerLoad, loaded_queue_manager
from tests.support.fast import templates

KILLS = {"true": 2, "false": 1}
SEED = 1


def templated(load: ServerLoad) -> dict[str, int]:
    """What templates have done in the life that was stopped last."""
    stopped = [line for line in load.queue_manager.log.splitlines() if '"stopped"' in line]
    counts: dict[str, int] = json.loads(stopped[-1])["templated"]
    return counts


@pytest.mark.parametrize("switch", KILLS)
def test_what_clients_were_told_holds_over_kills(switch: str) -> None:
    with loaded_queue_manager(SEED, {templates.VARIABLE: switch}) as load:
        load.run(KILLS[switch])
        before = load.ledger.operations
        load.live_until(load.queue_manager.stop)
        counts, told = templated(load), load.ledger.operations - before
        load.restart()
    assert told >= FEWEST
    assert load.ledger.gone
    assert load.ledger.pairs
    if switch == "true":
        # The first two of each client and kind are learned from; half of the rest may be unusual.
        assert min(counts["sent"], counts["read"], counts["ended"]) > 0
        assert sum(counts.values()) > told / 4
    else:
        assert counts == {}
    print(f"{load.ledger.operations} acknowledged operations, {KILLS[switch]} kills, {counts}")
