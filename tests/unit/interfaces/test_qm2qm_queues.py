"""What qm2qm does with whole queues, and for two identities ([MS-MQQP] 3.1)."""

import pytest

from rpcqm.base.errors import HResult
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB, CallServer, Fault
from tests.support.rpc.dependent_client import Client, create_remote_cursor
from tests.support.rpc.qm2qm_reader import Qm2QmReader, body_or_status, served_qm2qm
from tests.support.rpc.remote_reader import CLIENT, INFINITE, PEEK_ACCESS, PEEK_CURRENT


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_qm2qm(qm)


@pytest.fixture
def reader(server: CallServer) -> Qm2QmReader:
    return Qm2QmReader(server.connect())


@pytest.mark.conformance("MQQP-op-6")
def test_purging_needs_a_queue_that_is_open_for_receiving(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    peeking, _ = reader.open(queue, PEEK_ACCESS)
    for number, status in (
        (peeking, HResult.MQ_ERROR_ACCESS_DENIED),
        (peeking ^ 1, HResult.MQ_ERROR_INVALID_HANDLE),
    ):
        with pytest.raises(Fault) as fault:
            reader.caller.call("RemoteQMPurgeQueue", hQueue=number)
        assert fault.value.status == status
    assert qm.bodies(queue) == [b"one"]
    receiving, _ = reader.open(queue)
    assert reader.status("RemoteQMPurgeQueue", hQueue=receiving) == "MQ_OK"
    assert qm.bodies(queue) == []


def test_a_deleted_queue_cannot_be_read(qm: RunningQueueManager, reader: Qm2QmReader) -> None:
    queue = qm.create()
    number, session = reader.open(queue)
    waiting = reader.start(number, ulTimeout=INFINITE)
    qm.done(qm.engine.queues.delete_queue(queue))
    reader.caller.protocol()
    assert body_or_status(waiting.result()) == b"MQ_ERROR_QUEUE_DELETED"
    assert body_or_status(reader.read(number)) == b"MQ_ERROR_QUEUE_NOT_AVAILABLE"
    assert reader.close(session) == "MQ_OK"


def test_the_opener_may_make_cursors_while_another_reads(
    qm: RunningQueueManager, server: CallServer
) -> None:
    """The two identities of the proxy share a queue ([MS-MQMP] 3.2.4.8)."""
    queue = qm.create()
    qm.send(queue, b"one")
    client, supporting = Client(server.connect(ALICE)), Qm2QmReader(server.connect(BOB))
    number = Qm2QmReader(client.caller).open_by_qmcomm(queue).phQueue
    assert supporting.adopt(number, pLicGuid=CLIENT).result == 0
    cursor = create_remote_cursor(client, number).phCursor
    assert body_or_status(supporting.read(number, PEEK_CURRENT, hCursor=cursor)) == b"one"
