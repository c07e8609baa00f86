"""Objects read queues of another queue manager, with the account that is configured for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac import coclasses
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.dcom.com_objects import Objects, number, served_objects, text
from tests.support.dcom.dcom_client import ENABLED, ComError, Reference

HERE, THERE = r"DIRECT=OS:.\private$\far", r"DIRECT=OS:other\private$\far"
RECEIVE, PEEK = int(QueueAccessType.RECEIVE_ACCESS), int(QueueAccessType.PEEK_ACCESS)
NOW = number(0)


@pytest.fixture(scope="module")
def other() -> Iterator[PrivateQueueManager]:
    """The queue manager that has the queue, and an account for those who read it."""
    with private_queue_manager((), 'name = "other"\n') as made:
        given = PASSWORD + "\n"
        made.run("user", "add", "reader", "--password-stdin", input=given)
        made.run("queue", "create", "far", "--sddl", "D:(A;;GA;;;AU)")
        yield made


@pytest.fixture(scope="module")
def far(other: PrivateQueueManager) -> Iterator[BlockingClient]:
    with other.client() as client:
        yield client


@pytest.fixture(scope="module")
def objects(
    other: PrivateQueueManager, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Objects]:
    accounts: Path = tmp_path_factory.mktemp("accounts") / "remote.toml"
    accounts.touch(0o600)
    accounts.write_text(f"[OTHER]\nuser = 'reader'\npassword = '{PASSWORD}'\n")
    host, port = other.endpoint("epm")
    remote = f'[remote]\npeers = "other={host}:{port}"\ncredentials_file = "{accounts}"\n'
    with served_objects(ENABLED + remote) as served:
        yield served


def send(far: BlockingClient, *labels: str) -> None:
    with far.open_sender(FormatName.parse(HERE)) as sender:
        for label in labels:
            sender.send(OutgoingMessage(b"from afar", label=label))


def labels(far: BlockingClient) -> list[str]:
    with far.open_reader(FormatName.parse(HERE), peek_only=True) as reader:
        return [message.label for message in reader.browse()]


def opened(objects: Objects, access: int = RECEIVE, name: str = THERE) -> Reference:
    info = objects.queue_info()
    objects.put(info, "FormatName", name)
    found = objects.com.call(info, "Open", access, 0)
    assert isinstance(found, Reference)
    return found


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


def label(objects: Objects, message: Reference) -> object:
    return objects.get(message, "Label")


@pytest.fixture(autouse=True)
def empty(far: BlockingClient) -> None:
    with far.open_reader(FormatName.parse(HERE)) as reader:
        reader.purge()


@pytest.mark.conformance("MQAC-IMSMQQueueInfo4-34-Open", "MQAC-IMSMQQueue4-20-Receive")
def test_a_message_of_another_machine_is_received(objects: Objects, far: BlockingClient) -> None:
    send(far, "one", "two")
    queue = opened(objects)
    found = objects.com.call(queue, "Receive", None, None, None, NOW, None)
    assert (label(objects, found), objects.get(found, "BodyLength")) == ("one", 9)
    assert labels(far) == ["two"]
    objects.com.call(queue, "Purge")
    assert labels(far) == []
    status = refusal(objects, queue, "Receive", None, None, None, NOW, None)
    assert status is HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    objects.com.call(queue, "Close")


@pytest.mark.conformance("MQAC-IMSMQQueue4-23-PeekNext", "MQAC-IMSMQQueue4-16-Reset")
def test_a_cursor_goes_through_a_queue_there(objects: Objects, far: BlockingClient) -> None:
    send(far, "one", "two")
    queue = opened(objects, PEEK)
    illegal = HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION
    assert refusal(objects, queue, "PeekNext", None, None, NOW, None) is illegal
    for operation, expected in (("PeekCurrent", "one"), ("PeekNext", "two"), ("Peek", "one")):
        found = objects.com.call(queue, operation, None, None, NOW, None)
        assert label(objects, found) == expected
    objects.com.call(queue, "Reset")
    found = objects.com.call(queue, "PeekCurrent", None, None, NOW, None)
    assert label(objects, found) == "one"
    denied = refusal(objects, queue, "Receive", None, None, None, NOW, None)
    assert denied is HResult.MQ_ERROR_ACCESS_DENIED


@pytest.mark.conformance("MQAC-IMSMQQueue4-32-PeekByLookupId")
def test_lookups_work_there(objects: Objects, far: BlockingClient) -> None:
    send(far, "one", "two", "three")
    queue = opened(objects)
    last = objects.com.call(queue, "PeekLastByLookupId", None, None, None)
    assert label(objects, last) == "three"
    identifier = objects.get(last, "LookupId")
    assert identifier != text("0")
    for operation, expected in (("PeekPreviousByLookupId", "two"), ("PeekByLookupId", "three")):
        found = objects.com.call(queue, operation, identifier, None, None, None)
        assert label(objects, found) == expected
    found = objects.com.call(queue, "ReceiveByLookupId", identifier, None, None, None, None)
    assert label(objects, found) == "three"
    found = objects.com.call(queue, "ReceiveFirstByLookupId", None, None, None, None)
    assert (label(objects, found), labels(far)) == ("one", ["two"])


def test_a_wait_there_ends_with_a_message(objects: Objects, far: BlockingClient) -> None:
    queue = opened(objects)
    waiting = objects.com.start(queue, "Receive", None, None, None, number(30_000), None)
    assert objects.get(queue, "IsOpen") == 1
    send(far, "late")
    assert label(objects, waiting.result(30)) == "late"
    assert labels(far) == []


def test_transactions_do_not_reach_other_machines(objects: Objects, far: BlockingClient) -> None:
    send(far, "one")
    dispenser = objects.create(coclasses.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    begun = objects.com.call(dispenser, "BeginTransaction")
    joined = Variant(VARENUM.VT_DISPATCH, begun)
    status = refusal(objects, opened(objects), "Receive", joined, None, None, NOW, None)
    assert status is HResult.MQ_ERROR_TRANSACTION_USAGE
    assert labels(far) == ["one"]


@pytest.mark.conformance("MQAC-IMSMQQueueInfo4-34-Open")
def test_where_no_account_is_for_nobody_logs_on(objects: Objects) -> None:
    info = objects.queue_info()
    objects.put(info, "FormatName", r"DIRECT=OS:stranger\private$\x")
    assert refusal(objects, info, "Open", RECEIVE, 0) is HResult.MQ_ERROR_ACCESS_DENIED
    objects.put(info, "FormatName", r"DIRECT=OS:other\private$\none")
    assert refusal(objects, info, "Open", RECEIVE, 0) is HResult.MQ_ERROR_QUEUE_NOT_FOUND
