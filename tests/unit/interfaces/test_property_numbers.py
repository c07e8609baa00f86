"""Properties by their numbers and types, and whether what is told of them is true ([MS-MQMQ] 2.3).

The numbers are those of the specification; every value is the consequence of calls and messages.
"""

import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from rpcqm.codec.properties import PropVariant
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types.qmmgmt import MGMT_OBJECT, MGMT_OBJECT_u
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.binary.binary_network import Node, Simulation
from tests.support.queue_manager import MEMORY, RunningQueueManager
from tests.support.rpc.administrator import queue_object
from tests.support.rpc.callers import ADMINISTRATOR
from tests.support.rpc.dependent_client import Client, object_of, served_clients, variants
from tests.support.rpc.remote_reader import Reader, served_remote_read, status_name

ORDERS = r"DIRECT=OS:.\private$\orders"
STREAM = r"DIRECT=OS:bob\private$\stream"
VT_EMPTY, VT_NULL, VT_I2, VT_I4, VT_UI1, VT_UI4, VT_I8 = 0, 1, 2, 3, 17, 19, 20
VT_LPWSTR, VT_BLOB, VT_CLSID = 31, 65, 72
VT_VECTOR_VARIANT, VT_VECTOR_LPWSTR = 0x100C, 0x101F
NULL = PropVariant.of(VT_NULL)
LABEL, MODIFY_TIME, QUOTA = 108, 110, 105
PRIVATE_TYPE = "c626ea11-e6b6-9749-9595-9150557358d1"
SECOND = 1_000


def local(qm: RunningQueueManager | Node) -> Client:
    return Client(served_clients(qm).connect(ADMINISTRATOR, transport=NCALRPC))


def create(client: Client, path: str, **more: Any) -> str:
    """R_QMCreateObjectInternal with numbers and variants."""
    numbers, values = more.get("numbers", [LABEL]), more.get("values", [(VT_LPWSTR, "label")])
    given = variants(*(PropVariant.of(*value) for value in values))
    return client.create(path, cp=len(numbers), aProp=numbers, apVar=given)


def change(client: Client, number: int, vartype: int, value: Any) -> str:
    """R_QMSetObjectProperties of one property."""
    given = variants(PropVariant.of(vartype, value))
    fields = {"pObjectFormat": object_of(ORDERS), "cp": 1, "aProp": [number], "apVar": given}
    return client.status("R_QMSetObjectProperties", **fields)


def told(client: Client, number: int) -> tuple[int, Any]:
    """Type and value by R_QMGetObjectProperties."""
    (variant,) = client.get_properties(ORDERS, number)
    return int(variant.vt), variant.value


class Given(NamedTuple):
    """What a queue is created with, what is told of it, and what that is changed to."""

    name: str
    number: int
    vartype: int
    value: Any
    told: Any
    changed: Any = None


GIVEN = (
    Given("PATHNAME", 103, VT_LPWSTR, r".\private$\orders", r"WORKSTATION\private$\orders"),
    Given("JOURNAL", 104, VT_UI1, 1, 1, 0),
    Given("QUOTA", 105, VT_UI4, 77, 77, 79),
    Given("BASEPRIORITY", 106, VT_I2, 5, 0),
    Given("JOURNAL_QUOTA", 107, VT_UI4, 78, 78, 80),
    Given("LABEL", 108, VT_LPWSTR, "things", "things", "others"),
    Given("AUTHENTICATE", 111, VT_UI1, 1, 1, 0),
    Given("PRIV_LEVEL", 112, VT_UI4, 2, 2, 0),
    Given("TRANSACTION", 113, VT_UI1, 1, 1),
)


def queue_property(name: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(f"MQMQ-prop-PROPID_Q_{name}")


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name, marks=queue_property(row.name)) for row in GIVEN]
)
def test_what_a_queue_was_created_with_is_told_by_its_number(
    qm: RunningQueueManager, row: Given
) -> None:
    """Also after a restart."""
    status = create(
        local(qm), r".\private$\orders", numbers=[row.number], values=[(row.vartype, row.value)]
    )
    assert status == "MQ_OK"
    qm.restart()
    client = local(qm)
    assert told(client, row.number) == (row.vartype, row.told)
    if row.changed is not None:
        assert change(client, row.number, row.vartype, row.changed) == "MQ_OK"
        assert told(client, row.number) == (row.vartype, row.changed)


@queue_property("TYPE")
@queue_property("INSTANCE")
def test_each_queue_has_an_instance_and_the_type_it_was_given(qm: RunningQueueManager) -> None:
    client, given = local(qm), UUID(PRIVATE_TYPE)
    path = r".\private$\orders"
    assert create(client, path, numbers=[102], values=[(VT_CLSID, given)]) == "MQ_OK"
    assert told(client, 102) == (VT_CLSID, given)
    first = told(client, 101)
    assert first[0] == VT_CLSID
    qm.restart()
    client = local(qm)
    assert told(client, 101) == first
    assert client.status("R_QMDeleteObject", pObjectFormat=object_of(ORDERS)) == "MQ_OK"
    assert create(client, path) == "MQ_OK"
    assert told(client, 101) != first


@queue_property("CREATE_TIME")
@queue_property("MODIFY_TIME")
def test_times_are_seconds_of_when_a_queue_was_created_and_changed(
    qm: RunningQueueManager,
) -> None:
    client = local(qm)
    qm.advance(20 * SECOND)
    created = qm.clock.now() // SECOND
    assert create(client, r".\private$\orders") == "MQ_OK"
    assert (told(client, 109), told(client, 110)) == ((VT_I4, created), (VT_I4, created))
    qm.advance(60 * SECOND)
    assert change(client, QUOTA, VT_UI4, 5) == "MQ_OK"
    assert (told(client, 109), told(client, 110)) == ((VT_I4, created), (VT_I4, created + 60))


@queue_property("PATHNAME_DNS")
@queue_property("ADS_PATH")
def test_a_private_queue_has_a_full_name_and_no_place_in_a_directory(
    qm: RunningQueueManager,
) -> None:
    client = local(qm)
    assert create(client, r".\private$\orders") == "MQ_OK"
    assert told(client, 124) == (VT_LPWSTR, r"workstation.example.org\private$\orders")
    assert told(client, 126) == (VT_LPWSTR, "")


ONLY_IN_DIRECTORIES = {
    "QMID": 115,
    "PARTITIONID": 116,
    "SEQNUM": 117,
    "HASHKEY": 118,
    "LABEL_HASHKEY": 119,
    "FULL_PATH": 121,
    "NAME_SUFFIX": 123,
    "OBJ_SECURITY": 1102,
    "SECURITY_INFORMATION": 1103,
}


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, id=name, marks=queue_property(name))
        for name, number in ONLY_IN_DIRECTORIES.items()
    ],
)
def test_a_number_that_only_directories_have_is_known_and_not_allowed(
    qm: RunningQueueManager, number: int
) -> None:
    """G172."""
    client = local(qm)
    assert create(client, r".\private$\orders") == "MQ_OK"
    assert client.get_properties(ORDERS, number) == "MQ_ERROR_PROPERTY_NOTALLOWED"
    assert change(client, number, VT_NULL, None) == "MQ_ERROR_PROPERTY_NOTALLOWED"
    assert client.get_properties(ORDERS, 120) == "MQ_ERROR_ILLEGAL_PROPID"


# What administrators are told, by R_QMMgmtGetInfo


def information(client: Client, subject: MGMT_OBJECT, number: int) -> tuple[int, Any]:
    """Type and value of one property."""
    response = client.caller.call(
        "R_QMMgmtGetInfo",
        pObjectFormat=subject,
        cp=1,
        aProp=[number],
        apVar=[propvariant_of(NULL)],
    )
    assert status_name(response.result) == "MQ_OK"
    variant = variant_of(response.apVar[0])
    return int(variant.vt), variant.value


class World:
    """Alice and Bob, and what has travelled between them."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.alice = simulation.node("alice")
        self.bob = simulation.node("bob")
        self.travelled: list[bytes] = []
        simulation.record = self.travelled

    @property
    def now(self) -> int:
        return self.simulation.clock.now() // SECOND

    def of(self, node: Node, number: int, name: str = STREAM) -> tuple[int, Any]:
        return information(local(node), queue_object(name), number)

    def machine(self, number: int) -> tuple[int, Any]:
        subject = MGMT_OBJECT(type=1, u=MGMT_OBJECT_u(1, 0))
        return information(local(self.bob), subject, number)

    def orders(self) -> None:
        """Bob has an ordinary queue with two messages, a third was received, and a subqueue."""
        client = local(self.bob)
        journaling = {"numbers": [104], "values": [(VT_UI1, 1)]}
        assert create(client, r".\private$\orders", **journaling) == "MQ_OK"
        for size in (10, 1000, 3000):
            self.alice.send(r"DIRECT=OS:bob\private$\orders", b"x" * size)
        self.simulation.advance(5 * SECOND)
        self.bob.receive()
        mover = Reader(served_remote_read(self.bob).connect(ADMINISTRATOR))
        mover.open_for_move(ORDERS + ";late")

    def stream(self) -> None:
        """Alice has sent three transactional messages to Bob; none is acknowledged yet."""
        transactional = {"numbers": [113], "values": [(VT_UI1, 1)]}
        assert create(local(self.bob), r".\private$\stream", **transactional) == "MQ_OK"
        for number in range(3):
            self.alice.send(STREAM, b"%d" % number, transactional=True)
        self.simulation.advance(SECOND // 4)

    def sizes(self) -> list[int]:
        """What each message takes: its packet as it travelled, and Alice's address (G164)."""
        packets = [data for data in self.travelled if data[4:8] == b"LIOR" and not data[2] & 0x08]
        address = len(self.alice.address)
        return [struct.unpack_from("<I", data, 8)[0] + address for data in packets]

    def identifier(self) -> int:
        """Of Alice's sequence, as EOD_NEXT_SEQ has it."""
        return int(struct.unpack("<q", self.of(self.alice, 18)[1][:8])[0])


@pytest.fixture
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        yield World(simulation)
        simulation.stop()


def order(identifier: int, number: int, previous: int) -> bytes:
    """SEQUENCE_INFO ([MS-MQMQ] 2.2.5)."""
    return struct.pack("<qII", identifier, number, previous)


Expected = Callable[[World], Any]
LOCAL: list[tuple[str, int, int, Expected]] = [
    ("PATHNAME", 1, VT_LPWSTR, lambda _: r"bob\private$\orders"),
    ("FORMATNAME", 2, VT_LPWSTR, lambda _: r"DIRECT=OS:bob\private$\orders"),
    ("TYPE", 3, VT_LPWSTR, lambda _: "PRIVATE"),
    ("LOCATION", 4, VT_LPWSTR, lambda _: "LOCAL"),
    ("XACT", 5, VT_LPWSTR, lambda _: "NO"),
    ("FOREIGN", 6, VT_LPWSTR, lambda _: "NO"),
    ("MESSAGE_COUNT", 7, VT_UI4, lambda _: 2),
    ("BYTES_IN_QUEUE", 8, VT_UI4, lambda world: sum(world.sizes()[1:3])),
    ("JOURNAL_MESSAGE_COUNT", 9, VT_UI4, lambda _: 1),
    ("BYTES_IN_JOURNAL", 10, VT_UI4, lambda world: world.sizes()[0]),
    ("STATE", 11, VT_LPWSTR, lambda _: "LOCAL CONNECTION"),
    ("SUBQUEUE_COUNT", 26, VT_UI4, lambda _: 1),
    ("SUBQUEUE_NAMES", 27, VT_VECTOR_LPWSTR, lambda _: ("late",)),
]


def management(kind: str, rows: list[tuple[str, int, int, Expected]]) -> list[Any]:
    return [
        pytest.param(
            *rest, id=name, marks=pytest.mark.conformance(f"MQMQ-prop-PROPID_{kind}_{name}")
        )
        for name, *rest in rows
    ]


@pytest.mark.parametrize(("number", "vartype", "expected"), management("MGMT_QUEUE", LOCAL))
def test_what_is_told_of_a_queue_here_is_what_happened_to_it(
    world: World, number: int, vartype: int, expected: Expected
) -> None:
    world.orders()
    assert world.of(world.bob, number, ORDERS) == (vartype, expected(world))


MACHINE: list[tuple[str, int, int, Expected]] = [
    ("ACTIVEQUEUES", 1, VT_VECTOR_LPWSTR, lambda _: (r"DIRECT=OS:bob\private$\orders;late",)),
    ("PRIVATEQ", 2, VT_VECTOR_LPWSTR, lambda _: (r"bob\private$\orders",)),
    ("DSSERVER", 3, VT_NULL, lambda _: None),
    ("CONNECTED", 4, VT_LPWSTR, lambda _: "CONNECTED"),
    ("TYPE", 5, VT_LPWSTR, lambda _: "rpcqm"),
    ("BYTES_IN_ALL_QUEUES", 6, VT_I8, lambda world: sum(world.sizes()[:3])),
]


@pytest.mark.parametrize(("number", "vartype", "expected"), management("MGMT_MSMQ", MACHINE))
def test_what_is_told_of_the_machine_is_what_happened_there(
    world: World, number: int, vartype: int, expected: Expected
) -> None:
    world.orders()
    assert world.machine(number) == (vartype, expected(world))


UNACKNOWLEDGED: list[tuple[str, int, int, Expected]] = [
    ("NEXTHOPS", 12, VT_VECTOR_LPWSTR, lambda _: ("IP=192.0.2.2",)),
    ("EOD_LAST_ACK", 13, VT_BLOB, lambda _: bytes(16)),
    ("EOD_FIRST_NON_ACK", 16, VT_BLOB, lambda world: order(world.identifier(), 1, 0)),
    ("EOD_LAST_NON_ACK", 17, VT_BLOB, lambda world: order(world.identifier(), 3, 2)),
    ("EOD_NEXT_SEQ", 18, VT_BLOB, lambda world: order(world.identifier(), 4, 3)),
    ("EOD_NO_ACK_COUNT", 20, VT_UI4, lambda _: 3),
    ("EOD_RESEND_TIME", 21, VT_I4, lambda world: world.now + 30),
    ("EOD_RESEND_INTERVAL", 22, VT_UI4, lambda _: 30),
    ("EOD_RESEND_COUNT", 23, VT_UI4, lambda _: 0),
]


@pytest.mark.conformance("MQMQ-packet-SEQUENCE_INFO")
@pytest.mark.parametrize(
    ("number", "vartype", "expected"), management("MGMT_QUEUE", UNACKNOWLEDGED)
)
def test_what_is_told_of_messages_without_acknowledgement_is_where_they_are(
    world: World, number: int, vartype: int, expected: Expected
) -> None:
    world.stream()
    assert world.of(world.alice, number) == (vartype, expected(world))


ACKNOWLEDGED: list[tuple[str, int, int, Expected]] = [
    ("EOD_LAST_ACK_TIME", 14, VT_I4, lambda world: world.now - 1),
    ("EOD_LAST_ACK_COUNT", 15, VT_UI4, lambda _: 1),
    ("EOD_NO_READ_COUNT", 19, VT_UI4, lambda _: 1),
]


@pytest.mark.parametrize(("number", "vartype", "expected"), management("MGMT_QUEUE", ACKNOWLEDGED))
def test_what_is_told_of_acknowledged_messages_is_when_and_how_often(
    world: World, number: int, vartype: int, expected: Expected
) -> None:
    world.stream()
    world.alice.send(STREAM, b"kept", transactional=True, negative_journaling_requested=True)
    world.simulation.advance(SECOND)
    assert world.of(world.alice, number) == (vartype, expected(world))


@pytest.mark.conformance("MQMQ-prop-PROPID_MGMT_QUEUE_EOD_SOURCE_INFO")
def test_the_destination_tells_of_each_source_in_six_columns(world: World) -> None:
    world.stream()
    vartype, columns = world.of(world.bob, 24)
    assert vartype == VT_VECTOR_VARIANT
    assert [(int(column.vt), column.value) for column in columns] == [
        (0x101F, (STREAM,)),
        (0x1048, (world.alice.engine.queue_manager.identifier,)),
        (0x1015, (world.identifier(),)),
        (0x1013, (3,)),
        (0x1003, (world.now,)),
        (0x1013, (0,)),
    ]


@pytest.mark.conformance("MQMQ-prop-PROPID_MGMT_QUEUE_CONNECTION_HISTORY")
def test_the_source_tells_how_its_connection_came_about_in_four_columns(world: World) -> None:
    started = world.now
    world.stream()
    vartype, columns = world.of(world.alice, 25)
    assert vartype == VT_VECTOR_VARIANT
    assert [int(column.vt) for column in columns] == [0x1013, 0x1003, 0x1003, 0x100C]
    status, times, errors, addresses = (column.value for column in columns)
    assert (status, errors) == ((0, 1, 2), (0, 0, 0))
    assert set(times) == {started}
    assert [(int(each.vt), each.value) for each in addresses] == [(0x101F, ("192.0.2.2",))] * 3
