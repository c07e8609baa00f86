"""Who sends nothing that templates take pays nothing for them (docs/request-templates.md)."""

import pytest

from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.fast.doors.rpc_send import SendRecogniser
from rpcqm.rpc.call import Call
from rpcqm.rpc.dispatch import LOOKED_AT, PATIENCE
from rpcqm.rpc.interface_registry import NCALRPC, CarefulPath
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE
from tests.support.rpc.dependent_client import Client, served_clients

LATER = 5 * LOOKED_AT
TITLE = "l" * 251 + "\0"
UNUSUAL = {"ppTitle": TITLE, "ulTitleBufferSizeInWCHARs": len(TITLE)}
"""A message whose label is cut goes the careful way."""


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which calls are looked at."""
    calls: list[int] = []
    take = SendRecogniser.take

    def looking(self: SendRecogniser, call: Call, path: CarefulPath) -> bool:
        calls.append(call.call_id)
        return take(self, call, path)

    monkeypatch.setattr(SendRecogniser, "take", looking)
    return calls


def test_calls_that_no_template_takes_are_seldom_looked_at(
    qm: RunningQueueManager, looked_at: list[int]
) -> None:
    qm.speed.turn.is_on = True
    client = Client(served_clients(qm).connect(ALICE, transport=NCALRPC))
    handle = client.open(qm.create(), QueueAccessType.SEND_ACCESS)[0]
    before = client.caller.association.untaken
    for _ in range(PATIENCE - before):
        client.sent(handle, b"unusual", **UNUSUAL)
    assert len(looked_at) == PATIENCE - before
    for _ in range(LATER):
        client.sent(handle, b"unusual", **UNUSUAL)
    assert len(looked_at) == PATIENCE - before + LATER // LOOKED_AT
    for _ in range(LATER):  # two are learned from, and the third is recognised
        client.sent(handle, b"usual")
    assert qm.store.metrics.of("templates")["sent"] >= LATER - 3 * LOOKED_AT
