"""A sender chooses where its dead letters go, by rpcqm_sending ([MS-MQDMPR] 3.1.1.12)."""

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB, CallServer
from tests.support.rpc.dependent_client import (
    RECEIVE_ACCESS,
    SEND_ACCESS,
    Client,
    served_clients,
)
from tests.support.rpc.remote_reader import format_of

DEADLETTER = 1
CHOSEN = r"private$\chosen"


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_clients(qm)


@pytest.fixture
def client(server: CallServer) -> Client:
    return Client(server.connect(ALICE, transport=NCALRPC))


def choose(client: Client, number: int, name: Queue | FormatName | str | None) -> str:
    chosen = None if name is None else format_of(name)
    return client.status("R_SetDeadLetterQueue", dwQMContext=number, pDeadLetterQueue=chosen)


def send_dying(client: Client, handle: bytes, body: bytes) -> None:
    sent = client.sent(handle, body, pAuditing=DEADLETTER, ulRelativeTimeToLive=1)
    assert sent == "MQ_OK"


def system(qm: RunningQueueManager) -> Queue:
    queue = qm.engine.queue_manager.system_deadletter_queue
    assert queue is not None
    return queue


@pytest.mark.conformance("MQDMPR-element-Message")
def test_dead_letters_go_to_the_queue_that_the_sender_has_chosen(
    qm: RunningQueueManager, client: Client
) -> None:
    handle, number = client.open(qm.create(), SEND_ACCESS)
    chosen = qm.create(CHOSEN)
    send_dying(client, handle, b"before")
    assert choose(client, number, chosen) == "MQ_OK"
    send_dying(client, handle, b"one")
    assert choose(client, number, None) == "MQ_OK"
    send_dying(client, handle, b"after")
    qm.advance(2_000)
    assert qm.bodies(chosen) == [b"one"]
    assert qm.bodies(system(qm)) == [b"before", b"after"]


def test_another_handle_on_the_same_queue_has_its_own_choice(
    qm: RunningQueueManager, client: Client
) -> None:
    queue, chosen = qm.create(), qm.create(CHOSEN)
    _, number = client.open(queue, SEND_ACCESS)
    other, _ = client.open(queue, SEND_ACCESS)
    assert choose(client, number, chosen) == "MQ_OK"
    send_dying(client, other, b"one")
    qm.advance(2_000)
    assert qm.bodies(system(qm)) == [b"one"]


def test_only_who_has_opened_the_queue_to_send_can_choose(
    qm: RunningQueueManager, server: CallServer, client: Client
) -> None:
    queue, chosen = qm.create(), qm.create(CHOSEN)
    _, number = client.open(queue, SEND_ACCESS)
    bob = Client(server.connect(BOB, transport=NCALRPC))
    assert choose(bob, number, chosen) == "MQ_ERROR_INVALID_HANDLE"
    _, number = client.open(queue, RECEIVE_ACCESS)
    assert choose(client, number, chosen) == "MQ_ERROR_ACCESS_DENIED"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (r"DIRECT=OS:WORKSTATION\private$\missing", "MQ_ERROR_QUEUE_NOT_FOUND"),
        (r"DIRECT=OS:elsewhere\private$\orders", "MQ_ERROR_QUEUE_NOT_FOUND"),
        (
            r"DIRECT=OS:WORKSTATION\private$\chosen;JOURNAL",
            "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        ),
        (
            r"DIRECT=OS:WORKSTATION\system$;DEADXACT",
            "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        ),
    ],
)
def test_only_an_ordinary_queue_here_can_be_chosen(
    qm: RunningQueueManager, client: Client, name: str, expected: str
) -> None:
    qm.create(CHOSEN)
    _, number = client.open(qm.create(), SEND_ACCESS)
    assert choose(client, number, FormatName.parse(name)) == expected


def test_a_queue_that_the_sender_may_not_send_to_cannot_be_chosen(
    qm: RunningQueueManager, client: Client
) -> None:
    chosen = qm.create(CHOSEN, security=parse_sddl("D:(A;;0x3;;;WD)").encode())
    _, number = client.open(qm.create(), SEND_ACCESS)
    assert choose(client, number, chosen) == "MQ_ERROR_ACCESS_DENIED"


def test_the_network_needs_a_supporting_server(
    qm: RunningQueueManager, server: CallServer, client: Client
) -> None:
    chosen = qm.create(CHOSEN)
    _, number = client.open(qm.create(), SEND_ACCESS)
    far = Client(server.connect(ALICE))
    assert choose(far, number, chosen) == "MQ_ERROR_WKS_CANT_SERVE_CLIENT"
    qm.engine.queue_manager.supporting_server = True
    assert choose(far, number, chosen) == "MQ_OK"


def add(client: Client, number: int, name: Queue | FormatName | str) -> str:
    return client.status("R_AddDestination", dwQMContext=number, pQueueFormat=format_of(name))


def test_a_message_goes_to_every_destination_once(qm: RunningQueueManager, client: Client) -> None:
    first, second = qm.create(), qm.create(r"private$\second")
    elsewhere = r"DIRECT=OS:other\private$\third"
    handle, number = client.open(first, SEND_ACCESS)
    assert client.sent(handle, b"before") == "MQ_OK"
    for name in (second, FormatName.parse(elsewhere), second):
        assert add(client, number, name) == "MQ_OK"
    assert client.sent(handle, b"all") == "MQ_OK"
    (third,) = qm.engine.outgoing.list()
    assert [qm.bodies(queue) for queue in (first, second, third)] == [
        [b"before", b"all"],
        [b"all"],
        [b"all"],
    ]
    client.close(handle)
    assert not first.open_queue_descriptor_collection
    assert not second.open_queue_descriptor_collection


def test_what_cannot_be_sent_to_is_no_destination(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    reading, number = client.open(queue, RECEIVE_ACCESS)
    assert add(client, number, queue) == "MQ_ERROR_ACCESS_DENIED"
    client.close(reading)
    _, number = client.open(queue, SEND_ACCESS)
    nowhere = FormatName.parse(r"DIRECT=OS:.\private$\nowhere")
    assert add(client, number, nowhere) == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert add(client, 99, queue) == "MQ_ERROR_INVALID_HANDLE"
    qm.done(qm.engine.queues.delete_queue(queue))
    assert add(client, number, qm.create(r"private$\second")) == "MQ_ERROR_QUEUE_DELETED"


@pytest.mark.conformance("MQMQ-formatname-multicast", "MQMQ-packet-MQFFormatNameElement")
@pytest.mark.parametrize(
    "names",
    [
        ["MULTICAST=234.1.1.1:80"],
        ["MULTICAST=234.1.1.1:80", r"DIRECT=OS:elsewhere\private$\orders"],
        [r"DIRECT=OS:elsewhere\private$\orders", "MULTICAST=234.1.1.1:80"],
    ],
    ids=["alone", "first", "last"],
)
def test_nothing_is_sent_to_a_multicast_address(
    qm: RunningQueueManager, client: Client, names: list[str]
) -> None:
    """G173."""
    handle, number = client.open(FormatName.parse(names[0]), SEND_ACCESS)
    for name in map(FormatName.parse, names[1:]):
        added = format_of(name)
        status = client.status("R_AddDestination", dwQMContext=number, pQueueFormat=added)
        assert status == "MQ_OK"
    assert client.sent(handle, b"x") == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    assert [queue.message_count for queue in qm.engine.outgoing.list()] == [0] * len(names)


@pytest.mark.conformance("MQMQ-formatname-multiple_element")
@pytest.mark.parametrize(
    "name",
    [
        r"DIRECT=OS:.\private$\orders;JOURNAL",
        r"DIRECT=OS:.\system$;DEADLETTER",
        "MACHINE=00000000-0000-0000-0000-000000000001;JOURNAL",
        "CONNECTOR=00000000-0000-0000-0000-000000000001",
    ],
)
def test_what_is_only_read_is_no_destination_among_others(
    qm: RunningQueueManager, client: Client, name: str
) -> None:
    queue = qm.create()
    handle, number = client.open(queue, SEND_ACCESS)
    added = format_of(FormatName.parse(name))
    status = client.status("R_AddDestination", dwQMContext=number, pQueueFormat=added)
    assert status == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    assert client.sent(handle, b"x") == "MQ_OK"
    assert qm.bodies(queue) == [b"x"]
