"""Reading for others by qm2qm, by lookup identifier ([MS-MQQP] 3.1)."""

import pytest

from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.qm2qm_reader import Qm2QmReader, body_or_status, served_qm2qm
from tests.support.rpc.remote_reader import (
    LOOKUP_PEEK_CURRENT,
    LOOKUP_PEEK_NEXT,
    LOOKUP_PEEK_PREV,
    LOOKUP_RECEIVE_CURRENT,
    LOOKUP_RECEIVE_NEXT,
    LOOKUP_RECEIVE_PREV,
    NULL_HANDLE,
    PEEK_CURRENT,
    RECEIVE,
    SEQUENCE,
)

ALL_ONES = 0xFFFFFFFFFFFFFFFF
INVALID_PARAMETER = b"MQ_ERROR_INVALID_PARAMETER"


@pytest.fixture
def reader(qm: RunningQueueManager) -> Qm2QmReader:
    return Qm2QmReader(served_qm2qm(qm).connect())


@pytest.mark.conformance("MQQP-op-10")
@pytest.mark.parametrize(
    ("action", "at", "body"),
    [
        pytest.param(
            LOOKUP_PEEK_CURRENT,
            1,
            b"two",
            marks=pytest.mark.conformance("MQQP-action-lookup_peek_current"),
        ),
        pytest.param(
            LOOKUP_PEEK_NEXT,
            1,
            b"three",
            marks=pytest.mark.conformance("MQQP-action-lookup_peek_next"),
        ),
        pytest.param(
            LOOKUP_PEEK_PREV,
            1,
            b"one",
            marks=pytest.mark.conformance("MQQP-action-lookup_peek_prev"),
        ),
        pytest.param(
            LOOKUP_RECEIVE_CURRENT,
            1,
            b"two",
            marks=pytest.mark.conformance("MQQP-action-lookup_receive_current"),
        ),
        pytest.param(
            LOOKUP_RECEIVE_NEXT,
            None,
            b"one",
            marks=pytest.mark.conformance("MQQP-action-lookup_receive_next"),
        ),
        pytest.param(
            LOOKUP_RECEIVE_PREV,
            -1,
            b"three",
            marks=pytest.mark.conformance("MQQP-action-lookup_receive_prev"),
        ),
    ],
)
def test_messages_are_read_by_lookup_identifier(
    qm: RunningQueueManager, reader: Qm2QmReader, action: int, at: int | None, body: bytes
) -> None:
    queue = qm.create()
    identifiers = [qm.send(queue, each) for each in (b"one", b"two", b"three")]
    number, _ = reader.open(queue)
    wanted = 0 if at is None else ALL_ONES if at < 0 else identifiers[at]
    response = reader.read_by_id(number, action, wanted)
    assert body_or_status(response) == body
    expected = identifiers[[b"one", b"two", b"three"].index(body)]
    assert response.lpRemoteReadDesc2.SequentialId == expected & SEQUENCE
    if action in (LOOKUP_PEEK_CURRENT, LOOKUP_PEEK_NEXT, LOOKUP_PEEK_PREV):
        assert response.pphContext == NULL_HANDLE
        assert len(qm.bodies(queue)) == 3
        return
    assert body not in qm.bodies(queue)
    assert queue.message_count == 3
    assert reader.end(response.pphContext) == "MQ_OK"
    assert queue.message_count == 2


@pytest.mark.conformance("MQQP-op-10")
def test_lookups_that_make_no_sense_are_refused(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    queue = qm.create()
    identifier = qm.send(queue, b"one")
    number, _ = reader.open(queue)

    def refused(action: int, wanted: int = identifier, **fields: int) -> bool:
        return body_or_status(reader.read_by_id(number, action, wanted, **fields)) == (
            INVALID_PARAMETER
        )

    assert refused(RECEIVE)
    assert refused(PEEK_CURRENT)
    assert refused(LOOKUP_PEEK_CURRENT, 0)
    assert refused(LOOKUP_PEEK_PREV, 0)
    assert refused(LOOKUP_PEEK_CURRENT, ulTimeout=1)
    assert refused(LOOKUP_PEEK_CURRENT, hCursor=1)
    assert refused(LOOKUP_PEEK_CURRENT, hRemoteQueue=0)
    assert refused(LOOKUP_PEEK_CURRENT, dwQueue=number ^ 1)
    missing = reader.read_by_id(number, LOOKUP_RECEIVE_NEXT, identifier)
    assert body_or_status(missing) == b"MQ_ERROR_MESSAGE_NOT_FOUND"
    assert body_or_status(reader.read_by_id(number, LOOKUP_PEEK_CURRENT, identifier)) == b"one"
