"""A shadow says where a turn does what the careful path would not, and it looks at each request."""

from pathlib import Path
from typing import Any

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.qmcomm import CACTransferBufferV1_Send
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE
from tests.support.rpc.dependent_client import Client, served_clients
from tests.support.shadow import requests
from tests.support.shadow.comparing import Difference, Shadow
from tests.support.shadow.switch import OFF, ON, VARIABLE

MANY, LEARNED = 8, 2
ELSEWHERE = FormatName.parse(r"DIRECT=TCP:192.0.2.9\private$\administration")


@pytest.fixture
def differences(qm: RunningQueueManager) -> list[Difference]:
    """What a shadow finds, which otherwise ends the process."""
    found: list[Difference] = []
    qm.speed.turn.shadow = Shadow(qm.store, qm.clock, found.append)
    qm.speed.turn.is_on = True
    return found


def send(qm: RunningQueueManager, count: int, **fields: Any) -> list[str]:
    client = Client(served_clients(qm).connect(ALICE, transport=NCALRPC))
    handle = client.open(qm.find(), QueueAccessType.SEND_ACCESS)[0]
    return [client.sent(handle, b"%d" % number, **fields) for number in range(count)]


def test_each_request_that_a_template_has_recognised_is_compared(
    qm: RunningQueueManager, differences: list[Difference]
) -> None:
    qm.create()
    assert send(qm, MANY) == ["MQ_OK"] * MANY
    assert qm.speed.turn.shadow is not None
    assert qm.speed.turn.shadow.compared == MANY - LEARNED
    assert qm.store.metrics.of("templates") == {"sent": MANY - LEARNED}
    assert differences == []


def test_what_the_careful_path_would_refuse_is_a_difference(
    qm: RunningQueueManager,
    differences: list[Difference],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal = MQError(HResult.MQ_ERROR_ACCESS_DENIED, "by the careful path")

    def refuse(*_: object) -> bytes:
        raise refusal

    qm.create()
    monkeypatch.setattr(requests, "answer_of", refuse)
    send(qm, LEARNED + 1)
    assert [(each.what, each.careful) for each in differences] == [("refusal", refusal)]


def test_a_rehearsal_leaves_what_waits_for_strangers_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = CACTransferBufferV1_Send(pAdminQueueFormat=queue_format_of(ELSEWHERE))
    counted = []
    for number, shadow in enumerate((OFF, ON)):
        monkeypatch.setenv(VARIABLE, shadow[VARIABLE])
        qm = RunningQueueManager(tmp_path / str(number))
        qm.speed.turn.is_on = True
        qm.create()
        assert send(qm, MANY, send=asked, pAcknowledge=1) == ["MQ_OK"] * MANY
        assert qm.store.metrics.of("templates") == {"sent": MANY - LEARNED}
        counted.append(qm.engine.acknowledgement_queues._bytes)
        qm.stop()
    assert counted[0] == counted[1]
