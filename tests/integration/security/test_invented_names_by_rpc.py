"""Names that accounts invent by RPC and by COM cost what those by /api/v1 do (G425, G426)."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.resolver import THREADS_OF_ONE
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.passwords import nt_hash
from rpcqm.client.target import RemoteServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager
from tests.support.accounts import PASSWORD
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import Objects
from tests.support.dcom.dcom_client import ComError, DcomClient, Reference
from tests.support.qm.invented_names import InventedPlace, Resolver, invented_place
from tests.support.rpc.callers import Fault
from tests.support.rpc.dependent_client import SEND_ACCESS, Client
from tests.support.rpc.network_caller import NetworkCaller
from tests.support.rpc.remote_reader import CLIENT, Reader, format_of, status_name
from tests.support.srmp.srmp_stranger import outgoing

NAMES = 200
OF_ONE = 40
REFUSED, UNREAD = "too many outgoing queues", "another queue manager cannot be read"
NO_ROOM = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
SETTINGS = f"""\
name = "here"
[storage]
reserve = 1
[security]
supporting_server = true
[dcom]
enabled = true
[remote]
allow_unauthenticated = true
[limits]
outgoing_queues_per_account = {OF_ONE}
[binary]
retry_milliseconds = 100
"""


class Place(InventedPlace):
    """A queue manager that any number of accounts call."""

    def __init__(self, made: PrivateQueueManager, resolver: Resolver) -> None:
        super().__init__(made, resolver)
        self._numbers = count(1)

    def account(self) -> NtlmCredentials:
        name = f"user{next(self._numbers)}"
        with self.made.client() as client:
            client.run(client.accounts.add(name, nt_hash(PASSWORD)))
        return NtlmCredentials(name, PASSWORD)

    def caller(self, *interfaces: str) -> NetworkCaller:
        address = self.made.endpoint("rpc")
        return NetworkCaller(address, *interfaces, credentials=self.account())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with invented_place(Place, tmp_path, "--dcom-port", SETTINGS) as place:
        yield place


def host(number: int) -> FormatName:
    return FormatName.parse(rf"DIRECT=OS:host{number}.invented\private$\q")


def test_an_account_opens_and_sends_to_so_many_hosts(place: Place) -> None:
    """rpc_QMOpenQueueInternal of qmcomm, rpc_ACSendMessageEx of qmcomm2."""
    with place.caller("qmcomm", "qmcomm2") as caller:
        client = Client(caller.caller)
        opened = [client.send_open(host(number), SEND_ACCESS) for number in range(NAMES)]
        told = [status_name(each.result) for each in opened]
        assert told == ["MQ_OK"] * OF_ONE + [NO_ROOM.name] * (NAMES - OF_ONE)
        for each in opened[:OF_ONE]:
            assert client.sent(bytes(each.phQueue), b"content") == "MQ_OK"
        place.check(OF_ONE, THREADS_OF_ONE)
    assert 0 < len(place.lines(REFUSED)) < NAMES // 2  # a call that fails is told of, at some rate


def test_one_open_of_many_hosts_makes_no_more(place: Place) -> None:
    server = RemoteServer(*place.made.endpoint("epm"), place.account())
    with BlockingClient(server) as client:
        sender = client.open_sender(*map(host, range(NAMES)))
        with pytest.raises(MQError):
            sender.__enter__()
    assert len(outgoing(place.made)) <= OF_ONE


def test_reading_at_invented_hosts_keeps_nobody_else_waiting(place: Place) -> None:
    """Names to read at are looked up two at a time, and the end does not wait for them."""
    with place.caller("qmcomm", "qmcomm2") as caller, place.caller("qmcomm", "qmcomm2") as other:
        for number in range(NAMES):
            start_reading(caller, f"host{number}.invented")
        place.resolver.await_asked("invented", THREADS_OF_ONE)
        start_reading(other, "other.fine")
        place.resolver.await_asked("fine")
        other.settle()
        place.check(0, THREADS_OF_ONE)


def test_lines_about_hosts_that_cannot_be_read_are_limited_for_each_account(place: Place) -> None:
    """All of them are this machine, where nobody listens for such readers."""
    with place.caller("qmcomm", "qmcomm2") as caller:
        for number in range(NAMES):
            start_reading(caller, f"host{number}.fine")
        caller.settle()
    assert 0 < len(place.lines(UNREAD)) < NAMES // 2


def start_reading(caller: NetworkCaller, machine: str) -> None:
    """rpc_QMOpenQueueInternal for a queue that the client says it has opened at a machine."""
    caller.send(
        "rpc_QMOpenQueueInternal",
        pQueueFormat=format_of(FormatName.parse(rf"DIRECT=OS:{machine}\private$\q")),
        dwDesiredAccess=1,
        dwShareMode=0,
        hRemoteQueue=1,
        lplpRemoteQueueName=None,
        dwpQueue=1,
        pLicGuid=CLIENT,
        lpClientName="CLIENT",
        dwRemoteProtocol=0,
        dwpRemoteContext=1,
    )


def test_remote_reads_of_queues_elsewhere_look_nothing_up(place: Place) -> None:
    """R_OpenQueue opens only what is here ([MS-MQRR] 3.1.4.2)."""
    with place.caller("remoteread") as caller:
        reader = Reader(caller.caller)
        for number in range(NAMES):
            with pytest.raises(Fault):
                reader.open(host(number))
    place.check(0, 0)


def test_objects_open_so_many_hosts(place: Place) -> None:
    """MSMQQueueInfo.Open to send, and to receive."""
    with (
        place.made.client() as client,
        DcomClient(place.made.endpoint("epm"), place.account()) as com,
    ):
        objects = Objects(place.made, com, client)
        opened = [open_to_send(objects, number) for number in range(NAMES)]
        assert [each is not None for each in opened] == [True] * OF_ONE + [False] * (NAMES - OF_ONE)
        place.check(OF_ONE, 0)
        for number in range(NAMES, 2 * NAMES):
            access = int(QueueAccessType.RECEIVE_ACCESS)
            com.start(queue_info(objects, number), "Open", access, 0)
        place.check(OF_ONE, THREADS_OF_ONE)
        assert 0 < len(place.lines(REFUSED)) < NAMES // 2


def open_to_send(objects: Objects, number: int) -> Reference | None:
    try:
        found = objects.com.call(
            queue_info(objects, number), "Open", int(QueueAccessType.SEND_ACCESS), 0
        )
    except ComError as error:
        return None if error.status is NO_ROOM else pytest.fail(str(error))
    assert isinstance(found, Reference)
    return found


def queue_info(objects: Objects, number: int) -> Reference:
    made = objects.create(clsids.MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
    objects.put(made, "FormatName", str(host(number)))
    return made
