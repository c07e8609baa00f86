"""Request templates of a served queue manager: what they take, and what they see at once.

How much they have taken is what the queue manager says when it is reloaded.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from http.client import HTTPConnection
from itertools import count
from typing import Any, Self
from uuid import UUID

import pytest

from rpcqm.base.errors import MQError, RpcFault
from rpcqm.base.hresult import status_name
from rpcqm.client.blocking import BlockingClient, BlockingSender
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.sending import opening_request
from rpcqm.client.target import RemoteServer, Target
from rpcqm.client.transfer_buffer import transfer_buffer_of
from rpcqm.codec.interface import Interface, TransferSyntax, load
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqmq import OBJECTID
from rpcqm.codec.types.mqvalues import MQ_ACTION_RECEIVE, QueueAccessType
from rpcqm.codec.types.qmcomm import (
    rpc_ACCloseHandleRequest,
    rpc_ACPurgeQueueRequest,
    rpc_QMOpenQueueInternalResponse,
)
from rpcqm.codec.types.qmcomm2 import rpc_ACReceiveMessageExRequest, rpc_ACSendMessageExRequest
from rpcqm.rpc.client import Binding, RpcClient, TypedCall
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager
from tests.support.fast import templates
from tests.support.rpc.dependent_client import receiving_buffer

PASSWORD = "a long pass phrase"
ON, OFF = (
    f"[security]\nsupporting_server = true\n[limits]\nrequest_templates = {switch}\n"
    for switch in ("true", "false")
)
"""Clients of other machines send by the same calls where they are served at all."""
MANY, LEARNED = 8, 3
"""Sends of a kind, and how many of them a template may leave to the careful path."""
_numbers = count(1)


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(templates.VARIABLE, raising=False)  # it would win over the file
        with private_queue_manager(("--console-port", "0"), ON) as made:
            made.run("user", "add", "alice", "--password-stdin", input=PASSWORD + "\n")
            yield made


@pytest.fixture
def name(queue_manager: PrivateQueueManager) -> str:
    name = f"orders-{next(_numbers)}"
    queue_manager.run("queue", "create", name, "--sddl", "O:BAG:BAD:(A;;GA;;;WD)")
    return name


def sent(queue_manager: PrivateQueueManager, configuration: str = ON) -> int:
    """How many messages templates have sent."""
    told = queue_manager.reload(configuration)
    line = next(line for line in told.splitlines() if '"reloaded"' in line)
    return int(json.loads(line)["templated"].get("sent", 0))


def format_name(name: str) -> FormatName:
    return FormatName.parse(rf"DIRECT=OS:.\private$\{name}")


def bodies(queue_manager: PrivateQueueManager, name: str) -> list[bytes]:
    with queue_manager.client() as client, client.open_reader(format_name(name)) as reader:
        return [message.body for message in reader.browse()]


def send(sender: BlockingSender, first: int = 0, size: int = 0) -> list[bytes]:
    made = [(b"%d" % number).ljust(size, b".") for number in range(first, first + MANY)]
    for body in made:
        sender.send(OutgoingMessage(body))
    return made


def alice(queue_manager: PrivateQueueManager) -> Target:
    """Whose calls are sealed: PKT_PRIVACY by NTLM."""
    return RemoteServer(*queue_manager.endpoint("epm"), NtlmCredentials("alice", PASSWORD))


@pytest.mark.parametrize("syntax", list(TransferSyntax), ids=lambda each: each.name)
@pytest.mark.parametrize("door", ["local", "sealed"])
def test_sends_by_each_door_in_each_syntax_are_recognised(
    queue_manager: PrivateQueueManager,
    name: str,
    door: str,
    syntax: TransferSyntax,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bind = RpcClient.bind

    async def bound(self: RpcClient, interface: Interface, _: object = None) -> Binding:
        return await bind(self, interface, syntax if syntax in interface.syntaxes else None)

    monkeypatch.setattr(RpcClient, "bind", bound)
    target = queue_manager.target if door == "local" else alice(queue_manager)
    before = sent(queue_manager)
    with BlockingClient(target) as client, client.open_sender(format_name(name)) as sender:
        told = send(sender)
    assert sent(queue_manager) - before >= MANY - LEARNED
    assert bodies(queue_manager, name) == told


def test_sends_of_programs_are_recognised(queue_manager: PrivateQueueManager, name: str) -> None:
    words = ("token", "create", name, "--account", "alice")
    token = queue_manager.run(*words).stdout.strip()
    before, told = sent(queue_manager), []
    connection = HTTPConnection(*queue_manager.endpoint("console"))
    for number in range(MANY):
        told.append(b"%d" % number)
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("POST", f"/api/v1/queues/{name}/messages", told[-1], headers)
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (201, True)
    connection.close()
    assert sent(queue_manager) - before >= MANY - LEARNED
    assert bodies(queue_manager, name) == told


def correlations(queue_manager: PrivateQueueManager, name: str) -> list[MessageIdentifier]:
    with queue_manager.client() as client, client.open_reader(format_name(name)) as reader:
        return [message.correlation_identifier for message in reader.browse()]


@pytest.mark.parametrize("configuration", [ON, OFF], ids=["templates", "careful"])
def test_each_message_that_asks_for_it_is_acknowledged_in_its_order(
    queue_manager: PrivateQueueManager, name: str, configuration: str
) -> None:
    answers = f"answers-{name}"
    queue_manager.run("queue", "create", answers)
    asking = OutgoingMessage(
        b"x",
        acknowledgements=AcknowledgementsRequested.ACK_POS_ARRIVAL,
        administration_queue=format_name(answers),
        journal=True,
    )
    before = sent(queue_manager, configuration)

    async def story() -> list[MessageIdentifier]:
        async with (
            QueueManagerClient(queue_manager.target) as client,
            client.open_sender(format_name(name)) as sender,
        ):
            learned = [await sender.send(asking) for _ in range(LEARNED)]
            return learned + await asyncio.gather(*[sender.send(asking) for _ in range(MANY)])

    identifiers = asyncio.run(story())
    taken = sent(queue_manager, configuration) - before
    assert taken >= MANY if configuration is ON else not taken
    assert correlations(queue_manager, answers) == identifiers


def test_a_sender_that_is_known_is_refused_by_a_changed_descriptor(
    queue_manager: PrivateQueueManager, name: str
) -> None:
    with BlockingClient(alice(queue_manager)) as client:
        with client.open_sender(format_name(name)) as sender:
            send(sender)
        queue_manager.run("queue", "acl", "deny", name, "alice", "send")
        with (
            pytest.raises(MQError, match="ACCESS_DENIED"),
            client.open_sender(format_name(name)) as sender,
        ):
            send(sender)
    assert len(bodies(queue_manager, name)) == MANY


def test_a_queue_of_the_same_name_is_another_one(
    queue_manager: PrivateQueueManager, name: str
) -> None:
    with queue_manager.client() as client, client.open_sender(format_name(name)) as sender:
        send(sender)
        queue_manager.run("queue", "delete", name)
        with pytest.raises(MQError):
            sender.send(OutgoingMessage(b"into nothing"))
        queue_manager.run("queue", "create", name)
        with contextlib.suppress(MQError):
            sender.send(OutgoingMessage(b"by an old handle"))
        assert bodies(queue_manager, name) == []
        with client.open_sender(format_name(name)) as again:
            assert send(again) == bodies(queue_manager, name)


def fill(sender: BlockingSender) -> None:
    for first in range(0, 100 * MANY, MANY):
        send(sender, first, size=400)


def room(queue_manager: PrivateQueueManager, configuration: str) -> int:
    """How many messages have room in ten kilobytes."""
    name = f"small-{next(_numbers)}"
    queue_manager.run("queue", "create", name, "--quota", "10")
    queue_manager.reload(configuration)
    with queue_manager.client() as client, client.open_sender(format_name(name)) as sender:
        with pytest.raises(MQError, match="INSUFFICIENT_RESOURCES"):
            fill(sender)
        with contextlib.suppress(MQError):  # less than the one that was refused may have room
            sender.send(OutgoingMessage())
    return len(bodies(queue_manager, name))


def test_a_quota_has_room_for_the_same_messages_either_way(
    queue_manager: PrivateQueueManager,
) -> None:
    assert room(queue_manager, ON) == room(queue_manager, OFF) > MANY


def test_the_switch_may_change_while_clients_send(
    queue_manager: PrivateQueueManager, name: str
) -> None:
    """Each message that was answered is there, once, and those of a sender are in order."""

    async def story() -> list[int]:
        stop = asyncio.Event()
        async with QueueManagerClient(queue_manager.target) as client:
            tasks = [asyncio.create_task(sending(client, each, stop)) for each in range(3)]
            for _ in range(3):
                for configuration in (OFF, ON):
                    await asyncio.to_thread(queue_manager.reload, configuration)
                    await asyncio.sleep(0)
            stop.set()
            return await asyncio.gather(*tasks)

    async def sending(client: QueueManagerClient, number: int, stop: asyncio.Event) -> int:
        async with client.open_sender(format_name(name)) as sender:
            for place in count():
                await sender.send(OutgoingMessage(b"%d:%d" % (number, place)))
                if stop.is_set():
                    return place + 1
        raise AssertionError

    before = sent(queue_manager)
    totals = asyncio.run(story())
    assert sent(queue_manager) - before > 0
    found = bodies(queue_manager, name)
    assert len(found) == sum(totals)
    for number, total in enumerate(totals):
        own = [body for body in found if body.startswith(b"%d:" % number)]
        assert own == [b"%d:%d" % (number, place) for place in range(total)]


def test_without_the_switch_templates_take_nothing(
    queue_manager: PrivateQueueManager, name: str
) -> None:
    before = sent(queue_manager, OFF)
    with queue_manager.client() as client, client.open_sender(format_name(name)) as sender:
        send(sender)
    assert sent(queue_manager, ON) == before


# What comes behind sends


class Line:
    """One connection, whose calls can come in one segment."""

    def __init__(self, client: RpcClient, comm: Binding, sending: Binding) -> None:
        self._client, self._comm, self._sending = client, comm, sending

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, queue_manager: PrivateQueueManager) -> AsyncIterator[Self]:
        async with await RpcClient.connect_unix(queue_manager.socket) as client:
            yield cls(client, await client.bind(load("qmcomm")), await client.bind(load("qmcomm2")))

    async def open(self, name: str, access: QueueAccessType) -> rpc_QMOpenQueueInternalResponse:
        return await self._comm.send(opening_request(format_name(name), access)).response()

    def send(self, handle: bytes, body: bytes) -> TypedCall[Any]:
        buffer = transfer_buffer_of(OutgoingMessage(body), 0)
        identifier = OBJECTID(Lineage=UUID(int=0))
        request = rpc_ACSendMessageExRequest(hQueue=handle, ptb=buffer, pMessageID=identifier)
        return self._sending.send(request)

    def purge(self, handle: bytes) -> TypedCall[Any]:
        return self._comm.send(rpc_ACPurgeQueueRequest(hQueue=handle))

    def receive(self, context: int, timeout: int = 10_000) -> TypedCall[Any]:
        """Receive the next message, and wait for it (ms)."""
        buffer = receiving_buffer(action=MQ_ACTION_RECEIVE, timeout=timeout)
        request = rpc_ACReceiveMessageExRequest(hQMContext=context, ptb=buffer)
        return self._sending.send(request)

    def close(self, handle: bytes) -> TypedCall[Any]:
        return self._comm.send(rpc_ACCloseHandleRequest(phQueue=handle))

    async def in_one_segment(self, *calls: Callable[[], TypedCall[Any]]) -> list[str]:
        """Make calls, and tell what came of each."""
        with self._client.together():
            made = [call() for call in calls]
        return [await _outcome(each) for each in made]


async def _outcome(call: TypedCall[Any]) -> str:
    try:
        return status_name((await call.response()).result)
    except RpcFault as fault:
        return fault.status.name


Last = Callable[[Line, bytes, rpc_QMOpenQueueInternalResponse], TypedCall[Any]]
"""Makes a call, given a queue's handle for sending and what has opened it for receiving."""


async def behind_sends(
    queue_manager: PrivateQueueManager, name: str, last: Last, emptied: bool
) -> list[str]:
    """What comes of a send, what follows it and another send, all in one segment."""
    async with Line.to(queue_manager) as line:
        sending = (await line.open(name, QueueAccessType.SEND_ACCESS)).phQueue
        receiving = await line.open(name, QueueAccessType.RECEIVE_ACCESS)
        for _ in range(LEARNED):
            assert await line.in_one_segment(lambda: line.send(sending, b"learned")) == ["MQ_OK"]
        if emptied:
            await line.in_one_segment(lambda: line.purge(receiving.phQueue))
        return await line.in_one_segment(
            lambda: line.send(sending, b"ahead"),
            lambda: last(line, sending, receiving),
            lambda: line.send(sending, b"behind"),
        )


Told = tuple[list[str], list[bytes], bool]


def both_ways(
    queue_manager: PrivateQueueManager, name: str, last: Last, emptied: bool = False
) -> Told:
    """The outcome of a story, which has to be the same with templates and without."""
    found = []
    for configuration in (ON, OFF):
        own = f"{name}-{configuration is ON}"
        queue_manager.run("queue", "create", own)
        before = sent(queue_manager, configuration)
        told = asyncio.run(behind_sends(queue_manager, own, last, emptied))
        taken = sent(queue_manager, configuration) > before
        assert taken is (configuration is ON)
        found.append((told, bodies(queue_manager, own), taken))
    assert found[0][:2] == found[1][:2]
    return found[0]


def test_a_close_in_one_segment_with_sends_does_not_overtake_them(
    queue_manager: PrivateQueueManager, name: str
) -> None:
    told, kept, _ = both_ways(
        queue_manager, name, lambda line, sending, receiving: line.close(sending)
    )
    assert told == ["MQ_OK", "MQ_OK", "nca_s_fault_context_mismatch"]
    assert kept == [*[b"learned"] * LEARNED, b"ahead"]


@pytest.mark.parametrize("emptied", [False, True], ids=["some before", "none before"])
def test_a_purge_in_one_segment_with_sends_does_not_overtake_the_one_ahead_of_it(
    queue_manager: PrivateQueueManager, name: str, emptied: bool
) -> None:
    told, kept, _ = both_ways(
        queue_manager, name, lambda line, sending, receiving: line.purge(receiving.phQueue), emptied
    )
    assert told == ["MQ_OK"] * 3
    assert kept == [b"behind"]


@pytest.mark.parametrize("timeout", [0, 10_000])
def test_a_receive_in_one_segment_with_sends_gets_the_one_ahead_of_it(
    queue_manager: PrivateQueueManager, name: str, timeout: int
) -> None:
    """Also one that waits for nothing but what is on its way; what was learned from is gone."""

    def receive(line: Line, sending: bytes, receiving: Any) -> TypedCall[Any]:
        return line.receive(receiving.pdwQMContext, timeout)

    told, kept, _ = both_ways(queue_manager, name, receive, emptied=True)
    assert told == ["MQ_OK"] * 3
    assert kept == [b"behind"]


@pytest.mark.parametrize("configuration", [ON, OFF], ids=["templates", "careful"])
def test_reads_behind_sends_of_another_connection_get_them_in_order(
    queue_manager: PrivateQueueManager, name: str, configuration: str
) -> None:
    async def story() -> list[bytes]:
        async with (
            QueueManagerClient(queue_manager.target) as client,
            QueueManagerClient(queue_manager.target) as other,
            client.open_sender(format_name(name)) as sender,
            other.open_reader(format_name(name)) as reader,
        ):
            read: list[bytes] = []
            for number in range(MANY):
                sending = asyncio.create_task(sender.send(OutgoingMessage(b"%d" % number)))
                async with await reader.receive(timeout=60) as message:
                    read.append(message.body)
                await sending
            return read

    before = sent(queue_manager, configuration)
    assert asyncio.run(story()) == [b"%d" % number for number in range(MANY)]
    assert (sent(queue_manager, configuration) > before) is (configuration is ON)
    assert bodies(queue_manager, name) == []


@pytest.mark.parametrize("configuration", [ON, OFF], ids=["templates", "careful"])
def test_a_queue_that_gets_another_label_goes_on_taking_messages(
    queue_manager: PrivateQueueManager, name: str, configuration: str
) -> None:
    """A queue's name stays; what can be changed is the name that people give it."""
    queue_manager.reload(configuration)
    with queue_manager.client() as client, client.open_sender(format_name(name)) as sender:
        told = send(sender)
        queue_manager.run("queue", "set", name, "--label", "another name")
        told += send(sender, MANY)
    assert bodies(queue_manager, name) == told
