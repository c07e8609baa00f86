"""What metrics tell, to whom, and in which pieces."""

import pytest

from rpcqm.base.errors import MQError
from rpcqm.base.identity import Identity, TokenRight, TokenScope
from rpcqm.operations.exposition import Writer
from rpcqm.operations.metrics import MetricsSettings
from rpcqm.operations.operations import Operations
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE, NOBODY

PEEK = frozenset({TokenRight.PEEK})


def told(
    qm: RunningQueueManager,
    operations: Operations,
    identity: Identity = ADMINISTRATOR,
    settings: MetricsSettings | None = None,
) -> list[str]:
    settings = settings or MetricsSettings()
    pieces = qm.done(operations.metrics.told(identity, Writer(), settings))
    return "".join(pieces).splitlines()


@pytest.mark.parametrize(
    "identity",
    [
        NOBODY,
        ALICE,
        ALICE.narrowed(TokenScope("t", PEEK)),
        ADMINISTRATOR.narrowed(TokenScope("t", frozenset({TokenRight.MANAGE}))),
        ADMINISTRATOR.narrowed(TokenScope("t", PEEK, frozenset({"private$\\orders"}))),
    ],
)
def test_who_may_not_know_all_queues_is_told_nothing(
    qm: RunningQueueManager, operations: Operations, identity: Identity
) -> None:
    with pytest.raises(MQError, match="ACCESS_DENIED"):
        told(qm, operations, identity)


def test_a_token_of_an_administrator_that_may_peek_is_enough(
    qm: RunningQueueManager, operations: Operations
) -> None:
    assert told(qm, operations, ADMINISTRATOR.narrowed(TokenScope("t", PEEK)))


def test_queues_beyond_the_bound_are_one_series(
    qm: RunningQueueManager, operations: Operations
) -> None:
    for number in range(4):
        qm.send(qm.create(rf"private$\q{number}"), b"a")
        qm.advance(1_000)
    lines = told(qm, operations, settings=MetricsSettings(queues=1))
    assert [each for each in lines if each.startswith("rpcqm_queue_messages{")] == [
        'rpcqm_queue_messages{queue="q0"} 1',
        'rpcqm_queue_messages{queue=";others"} 3',
    ]
    age = "rpcqm_queue_oldest_message_age_seconds"
    assert f'{age}{{queue=";others"}} 3.0' in lines
    windows = [each for each in lines if each.startswith("windows_msmq_messages_in_queue{")]
    names = [each.partition('"')[2].rpartition('"')[0].rpartition("\\")[2] for each in windows]
    assert names == ["Computer Queues", "order_queue$", "notify_queue$", "q0"]


def test_messages_that_others_see_while_it_is_written_spoil_nothing(
    qm: RunningQueueManager, operations: Operations
) -> None:
    for number in range(120):
        qm.create(rf"private$\q{number}")
    outcome = operations.metrics.told(ADMINISTRATOR, Writer(), MetricsSettings())
    qm.advance(100)
    pieces = outcome.result()
    text = next(pieces)
    while "rpcqm_loop_lag_seconds_count" not in text:
        text = next(pieces)
    assert next(pieces) == ""
    qm.done(qm.engine.queues.delete_queue(qm.find(r"private$\q119")))
    qm.create(r"private$\later")
    lines = "".join(pieces).splitlines()
    found = [each for each in lines if each.startswith("rpcqm_queue_messages{")]
    assert len(found) == len(set(found)) == 120
