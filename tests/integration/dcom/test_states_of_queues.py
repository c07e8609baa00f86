"""What MSMQManagement tells of queues in every state that a client can bring about.

It is read again against [MC-MQAC] 2.2.2.19 and 3.3 to 3.5: the numbers are written out here.
"""

from collections.abc import Iterator

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import ManagementQueueProperty
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac import coclasses
from rpcqm.testing import private_queue_manager
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import (
    ADMINISTRATOR,
    EVERYBODY,
    QUEUE,
    STREAM,
    Objects,
    number,
    served_objects,
    text,
)
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient, Reference
from tests.support.http.http_server import RunningHttpServer, serving_http
from tests.support.waiting import until

P = ManagementQueueProperty
HERE, OUTGOING = "IMSMQQueueManagement", "IMSMQOutgoingQueueManagement"
PEER = r"DIRECT=OS:other\private$\far"
TEXTS = VARENUM.VT_ARRAY | VARENUM.VT_BSTR
SILENT = r"DIRECT=OS:silent\orders"
STATES = (
    "LOCAL CONNECTION",
    "DISCONNECTED",
    "WAITING",
    "NEED VALIDATION",
    "ONHOLD",
    "INACTIVE",
    "CONNECTED",
    "DISCONNECTING",
    "LOCKED",
)
PEEK, RECEIVE = 0xA0, 0x81
"""With MQ_ADMIN_ACCESS."""
ORDERED = number(3)
"""MQ_SINGLE_MESSAGE."""


@pytest.fixture(scope="module")
def shop() -> Iterator[RunningHttpServer]:
    """It takes what is posted, and never says how far it has come."""
    with serving_http() as running:
        yield running


@pytest.fixture(scope="module")
def peer() -> Iterator[tuple[str, int]]:
    """Another queue manager, which takes what is sent to it."""
    with private_queue_manager((), 'name = "other"\n') as made:
        made.run("queue", "create", "far", "--sddl", EVERYBODY)
        yield made.endpoint("binary")


@pytest.fixture(scope="module")
def objects(shop: RunningHttpServer, peer: tuple[str, int]) -> Iterator[Objects]:
    peers = f"silent=127.0.0.1:1,other=127.0.0.1:{peer[1]}"
    configuration = f'name = "here"\nhttp_port = 0\n{ENABLED}[binary]\npeers = "{peers}"\n'
    with (
        served_objects(configuration) as alice,
        DcomClient(alice.machine.endpoint("epm"), ADMINISTRATOR) as com,
    ):
        yield Objects(alice.machine, com, alice.client)


@pytest.fixture(scope="module")
def posted(objects: Objects, shop: RunningHttpServer) -> str:
    """The name of a queue that a transactional message was posted to."""
    name = f"DIRECT=HTTP://127.0.0.1:{shop.port}/msmq/private$/orders"
    objects.send(objects.message(), objects.destination(name), ORDERED)
    until(lambda: len(shop.requests) == 1)
    return name


def point(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(*(f"MQAC-{name}" for name in names))


def managed(objects: Objects, name: str, interface: str = "IMSMQManagement") -> Reference:
    made = objects.create(clsids.MSMQ_MANAGEMENT, "IMSMQManagement")
    objects.com.call(made, "Init", None, None, text(name))
    return made if interface == "IMSMQManagement" else objects.com.query_interface(made, interface)


def told(objects: Objects, name: str, identifier: ManagementQueueProperty) -> object:
    asked = objects.client.management._information(FormatName.parse(name), [identifier])
    (value,) = objects.client.run(asked)
    return value


def system_queue(objects: Objects) -> str:
    """A dead-letter queue, opened by an administrator."""
    name = r"DIRECT=OS:here\system$;DEADLETTER"
    info = objects.queue_info()
    objects.put(info, "FormatName", name)
    objects.com.call(info, "Open", int(QueueAccessType.PEEK_ACCESS), 0)
    return name


@point("IMSMQOutgoingQueueManagement-21-EodResend")
def test_what_is_not_acknowledged_goes_out_again(
    objects: Objects, shop: RunningHttpServer, posted: str
) -> None:
    made = managed(objects, posted, OUTGOING)
    before = len(shop.requests)
    objects.com.call(made, "EodResend")
    until(lambda: len(shop.requests) == before + 1)
    assert shop.requests[-1].body == shop.requests[0].body


@point(
    "IMSMQOutgoingQueueManagement-16-State",
    "IMSMQOutgoingQueueManagement-17-NextHops",
    "element-QUEUE_STATE",
)
def test_a_state_has_its_number(objects: Objects) -> None:
    objects.send(objects.message(), objects.destination(PEER))
    made = managed(objects, PEER, OUTGOING)
    _expect(objects, made, 6)
    hops = objects.get(made, "NextHops")
    asked = told(objects, PEER, P.PROPID_MGMT_QUEUE_NEXTHOPS)
    assert isinstance(asked, tuple)
    assert hops == Variant(TEXTS, SafeArray(VARENUM.VT_BSTR, list(asked)))
    assert asked == ("IP=127.0.0.1",)
    objects.com.call(made, "Pause")
    _expect(objects, made, 4)
    objects.send(objects.message(), objects.destination(PEER))
    objects.com.call(made, "Resume")
    _expect(objects, made, 6)
    machine = objects.create(coclasses.MSMQ_APPLICATION, "IMSMQApplication3")
    objects.com.call(machine, "Disconnect")
    _expect(objects, made, 1)
    objects.com.call(machine, "Connect")


def _expect(objects: Objects, made: Reference, state: int) -> None:
    until(lambda: told(objects, PEER, P.PROPID_MGMT_QUEUE_STATE) == STATES[state])
    assert objects.get(made, "State") == state


@point("IMSMQOutgoingQueueManagement-16-State", "IMSMQOutgoingQueueManagement-20-Pause")
def test_a_queue_here_is_no_outgoing_queue(objects: Objects) -> None:
    objects.open(QueueAccessType.PEEK_ACCESS)
    made = objects.create(clsids.MSMQ_OUTGOING_QUEUE_MANAGEMENT, OUTGOING)
    objects.com.call(made, "Init", None, text(r".\private$\orders"), None)
    assert objects.get(made, "State") == 0
    for order in ("Pause", "Resume", "EodResend"):
        assert refusal(objects, made, order) is HResult.MQ_ERROR_INVALID_PARAMETER
    nothing = SafeArray(VARENUM.VT_BSTR, [])
    assert objects.get(made, "NextHops") == Variant(TEXTS, nothing)
    collection = objects.com.call(made, "EodGetSendInfo")
    assert objects.com.call(collection, "Item", text("EodNextSeq")) == Variant(VARENUM.VT_NULL)
    there = objects.create(clsids.MSMQ_QUEUE_MANAGEMENT, HERE)
    objects.send(objects.message(), objects.destination(SILENT))
    objects.com.call(there, "Init", None, None, text(SILENT))
    assert objects.get(there, "JournalMessageCount") == 0
    assert objects.get(there, "BytesInJournal") == Variant(VARENUM.VT_UI8, 0)
    assert objects.com.call(there, "EodGetReceiveInfo").value.values == []


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


@point("IMSMQManagement-12-QueueType", "IMSMQManagement-14-TransactionalStatus")
def test_a_type_has_its_number(objects: Objects) -> None:
    objects.send(objects.message(), objects.destination(SILENT))
    for path in (QUEUE, STREAM):
        objects.open(QueueAccessType.PEEK_ACCESS, path)
    for name, kind, status in (
        (SILENT, 0, 2),
        ("DIRECT=OS:" + QUEUE, 1, 1),
        ("DIRECT=OS:" + STREAM, 1, 0),
        (system_queue(objects), 2, 1),
    ):
        made = managed(objects, name)
        assert objects.get(made, "QueueType") == kind, name
        assert objects.get(made, "TransactionalStatus") == status, name


@point("IMSMQQueueInfo4-34-Open", "element-MQACCESS")
def test_administrators_read_what_waits_for_another_machine(objects: Objects) -> None:
    name = r"DIRECT=OS:silent\private$\waiting"
    message = objects.message()
    objects.put(message, "Label", "waits")
    objects.send(message, objects.destination(name))
    info = objects.queue_info()
    objects.put(info, "FormatName", name)
    for access, operation in ((PEEK, "Peek"), (RECEIVE, "Receive")):
        queue = objects.com.call(info, "Open", access, 0)
        assert objects.get(queue, "Access") == access
        arguments = [None] * (3 if operation == "Receive" else 2)
        found = objects.com.call(queue, operation, *arguments, number(0), None)
        assert objects.get(found, "Label") == "waits"
    with DcomClient(objects.machine.endpoint("epm")) as com:
        alice = Objects(objects.machine, com, objects.client)
        theirs = alice.queue_info()
        alice.put(theirs, "FormatName", name)
        objects.send(message, objects.destination(name))
        assert refusal(alice, theirs, "Open", PEEK, 0) is HResult.MQ_ERROR_ACCESS_DENIED
    here = refusal(objects, objects.queue_info(), "Open", PEEK, 0)
    assert here is HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE
