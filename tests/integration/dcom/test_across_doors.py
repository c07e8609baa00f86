"""One message through two doors: objects on one side, RemoteRead or port 1801 on the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from rpcqm.client.blocking import BlockingClient
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.testing import private_queue_manager
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import STREAM, YES, Objects, number, octets, served_objects
from tests.support.dcom.dcom_client import ENABLED, Reference
from tests.support.waiting import until

SETTINGS = 'name = "{name}"\n[binary]\npeers = "{peer}=127.0.0.1:{port}"\n'
HERE, HERE_STREAM = r"DIRECT=OS:here\private$\orders", r"DIRECT=OS:here\private$\stream"
THERE, THERE_STREAM = r"DIRECT=OS:there\private$\far", r"DIRECT=OS:there\private$\flow"
PATIENCE = number(30_000)


@dataclass
class Doors:
    """Objects at `here`, and a client of `there` that knows no objects; 1801 is between."""

    objects: Objects
    there: BlockingClient


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    with private_queue_manager((), 'name = "there"\n') as there:
        for name, kind in (("far", ()), ("flow", ("--transactional",))):
            there.run("queue", "create", name, "--sddl", "D:(A;;GA;;;WD)(A;;GA;;;AN)", *kind)
        peer = SETTINGS.format(name="here", peer="there", port=there.endpoint("binary")[1])
        with served_objects(peer + ENABLED) as objects, there.client() as client:
            port = objects.machine.endpoint("binary")[1]
            there.reload(SETTINGS.format(name="there", peer="here", port=port))
            yield Doors(objects, client)


@pytest.mark.conformance("MQAC-IMSMQMessage4-54-Send", "MQAC-IMSMQDestination-7-Open")
@pytest.mark.parametrize(("name", "transaction"), [(THERE, None), (THERE_STREAM, number(3))])
def test_what_objects_send_to_another_machine_is_read_there_by_remote_read(
    doors: Doors, name: str, transaction: Variant | None
) -> None:
    objects = doors.objects
    message = objects.message()
    objects.put(message, "Label", "by objects")
    objects.put(message, "AppSpecific", 77)
    objects.put(message, "Body", octets(b"across"))
    objects.send(message, objects.destination(name), transaction)
    with doors.there.open_reader(FormatName.parse(name)) as reader, reader.receive(30_000) as found:
        pass
    assert (found.label, found.body, found.application_tag) == ("by objects", b"across", 77)
    assert found.is_transactional is (transaction is not None)
    assert objects.get(message, "Id") == octets(found.identifier.encode())


@pytest.mark.conformance("MQAC-IMSMQQueue4-20-Receive")
def test_what_comes_by_the_binary_protocol_is_received_by_objects(doors: Doors) -> None:
    objects = doors.objects
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS)
    arguments = (number(0), YES, YES, PATIENCE, YES)
    waiting = objects.com.start(queue, "Receive", *arguments)
    sent = OutgoingMessage(b"across", "by 1801", 6, application_tag=77)
    with doors.there.open_sender(FormatName.parse(HERE)) as sender:
        sender.send(sent)
    found = waiting.result(60)
    assert isinstance(found, Reference)
    told = [objects.get(found, name) for name in ("Label", "Body", "Priority", "AppSpecific")]
    assert told == ["by 1801", octets(b"across"), 6, 77]
    info = objects.get(found, "DestinationQueueInfo")
    assert isinstance(info, Reference)
    assert objects.get(info, "FormatName") == HERE
    assert objects.bodies() == []


def is_left(objects: Objects, count: int) -> bool:
    return len(objects.bodies(STREAM)) == count


@pytest.mark.conformance("MQAC-IMSMQQueue4-20-Receive", "MQAC-IMSMQTransaction-9-Abort")
def test_what_comes_in_a_stream_is_received_in_a_transaction(doors: Doors) -> None:
    objects = doors.objects
    sending = doors.there.open_sender(FormatName.parse(HERE_STREAM))
    with doors.there.begin_transaction() as transaction, sending as sender:
        for label in ("one", "two"):
            sender.send(OutgoingMessage(label=label), transaction)
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS, STREAM)
    for end, arguments, left in (("Abort", 2, 2), ("Commit", 3, 0)):
        begun = objects.com.call(dispenser, "BeginTransaction")
        joined = Variant(VARENUM.VT_DISPATCH, begun)
        received = [
            objects.com.call(queue, "Receive", joined, None, None, PATIENCE, None) for _ in range(2)
        ]
        assert [objects.get(each, "Label") for each in received] == ["one", "two"]
        assert [objects.get(each, "IsFirstInTransaction") for each in received] == [1, 0]
        objects.com.call(begun, end, *[None] * arguments)
        until(partial(is_left, objects, left))
