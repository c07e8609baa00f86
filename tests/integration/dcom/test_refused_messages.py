"""Classes of messages that report what has become of another, as objects read them."""

from collections.abc import Iterator

import pytest

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.types.mqacvalues import MQMSGCLASS
from rpcqm.codec.types.mqvalues import QueueAccessType
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import (
    ADMINISTRATOR,
    NO,
    QUEUE,
    YES,
    Objects,
    number,
    served_objects,
)
from tests.support.dcom.dcom_client import DcomClient

CONNECTOR = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
ORDERS = FormatName.of_path(PathName.parse(QUEUE))
PATIENCE = 60_000
"""Milliseconds: the message that is waited for comes within two seconds."""


@pytest.fixture(scope="module")
def objects() -> Iterator[Objects]:
    with served_objects() as served:
        yield served


@pytest.mark.conformance("MQAC-class-NACK_RECEIVE_TIMEOUT_AT_SENDER")
def test_a_message_that_could_not_leave_in_time_tells_so_in_the_dead_letter_queue(
    objects: Objects,
) -> None:
    objects.machine.run(
        *("send", r"DIRECT=OS:elsewhere.invalid\private$\far", "--ttbr", "1", "--ttrq", "30"),
        "--dead-letter",
    )
    with DcomClient(objects.machine.endpoint("epm"), ADMINISTRATOR) as com:
        administrator = Objects(objects.machine, com, objects.client)
        dead = administrator.create(clsids.MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        administrator.put(dead, "FormatName", r"DIRECT=OS:.\SYSTEM$;DEADLETTER")
        queue = com.call(dead, "Open", int(QueueAccessType.RECEIVE_ACCESS), 0)
        message = com.call(queue, "Receive", number(0), YES, NO, number(PATIENCE), NO)
        told = com.call(message, "get_Class")
    assert told == MQMSGCLASS.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT_AT_SENDER


@pytest.mark.parametrize(
    "reported",
    [
        pytest.param(
            MQMSGCLASS[f"MQMSG_CLASS_{name}"],
            marks=pytest.mark.conformance(f"MQAC-class-{name}"),
            id=name,
        )
        for name in ("NACK_COULD_NOT_ENCRYPT", "NACK_SOURCE_COMPUTER_GUID_CHANGED")
    ],
)
def test_a_connector_reports_in_words_that_receivers_understand(
    objects: Objects, reported: MQMSGCLASS
) -> None:
    """Of queue managers that rpcqm never is: only another one reports so."""
    message = objects.message()
    objects.put(message, "ConnectorTypeGuid", CONNECTOR)
    objects.put(message, "MsgClass", int(reported))
    objects.send(message, objects.destination())
    with objects.client.open_reader(ORDERS, peek_only=True) as reader:
        assert [each.message_class for each in reader.browse()] == [reported]
    assert objects.get(objects.received(), "Class") == reported
