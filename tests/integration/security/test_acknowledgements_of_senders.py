"""What is written for the sender of a message is asked of that sender when it is written (G400)."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.passwords import nt_hash
from rpcqm.client.target import RemoteServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested
from rpcqm.codec.types.qmcomm import CACTransferBufferV1_Send
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.api.programs import Program
from tests.support.rpc.dependent_client import SEND_ACCESS, Client
from tests.support.rpc.network_caller import NetworkCaller
from tests.support.rpc.remote_reader import format_of

OPTIONS = ("--console-port", "0")
SETTINGS = 'name = "here"\n[security]\nsupporting_server = true\n'
EVERYBODY = "O:BAD:(A;;GA;;;BA)(A;;GA;;;WD)(A;;GA;;;AN)"
LOGGED_ON = "O:BAD:(A;;GA;;;BA)(A;;GA;;;AU)"
ADMINISTRATORS = "O:BAD:(A;;GA;;;BA)"
_numbers = count(1)


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(OPTIONS, SETTINGS) as running, running.client() as client:
        client.run(client.accounts.add("boss", nt_hash(PASSWORD), ["administrators"]))
        yield running


@pytest.fixture
def client(machine: PrivateQueueManager) -> Iterator[BlockingClient]:
    with machine.client() as client:
        yield client


@pytest.fixture
def user(client: BlockingClient) -> str:
    name = f"user{next(_numbers)}"
    client.run(client.accounts.add(name, nt_hash(PASSWORD)))
    return name


@pytest.fixture
def orders(machine: PrivateQueueManager) -> str:
    return queue(machine, EVERYBODY)


def queue(machine: PrivateQueueManager, sddl: str) -> str:
    name = f"queue-{next(_numbers)}"
    machine.run("queue", "create", name, "--sddl", sddl)
    return name


def send(machine: PrivateQueueManager, user: str, to: str, **members: Any) -> None:
    program = Program(machine.endpoint("console"), user, PASSWORD)
    message = {"body_base64": "aGVsbG8=", **members}
    answer = program.ask("POST", f"/queues/{to}/messages/batch", {"messages": [message]})
    program.close()
    assert answer.status == 201, answer


def bodies(client: BlockingClient, name: str) -> list[bytes]:
    with client.open_reader(format_name(name), peek_only=True) as reader:
        return [message.body for message in reader.browse()]


def format_name(name: str) -> FormatName:
    return FormatName.parse(rf"DIRECT=OS:here\private$\{name}")


@pytest.mark.parametrize(("later", "told"), [(LOGGED_ON, [b"hello"]), (ADMINISTRATORS, [])])
def test_a_right_that_was_taken_away_after_the_send_tells_nothing(
    machine: PrivateQueueManager,
    client: BlockingClient,
    user: str,
    orders: str,
    later: str,
    told: list[bytes],
) -> None:
    acks = queue(machine, LOGGED_ON)
    send(machine, user, orders, admin_queue=acks, acknowledgements=["no-receive"])
    machine.run("queue", "set", acks, "--sddl", later)
    machine.run("purge", orders)
    assert bodies(client, acks) == told


def test_an_account_that_is_there_no_more_is_told_nothing(
    machine: PrivateQueueManager, client: BlockingClient, user: str, orders: str
) -> None:
    acks = queue(machine, LOGGED_ON)
    send(machine, user, orders, admin_queue=acks, acknowledgements=["no-receive"])
    machine.run("user", "remove", user)
    machine.run("purge", orders)
    assert bodies(client, acks) == []


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["nobody", "its SID", "its queue manager"])
def test_a_sender_that_its_message_does_not_name_is_known_after_a_restart(
    machine: PrivateQueueManager, client: BlockingClient, user: str, orders: str, kind: int
) -> None:
    """[MS-MQMQ] 2.2.8: a message may name its sender, its queue manager or nobody."""
    acks = queue(machine, LOGGED_ON)
    with NetworkCaller(
        machine.endpoint("rpc"), "qmcomm", "qmcomm2", credentials=NtlmCredentials(user, PASSWORD)
    ) as caller:
        sender = Client(caller.caller)
        handle, _ = sender.open(format_name(orders), SEND_ACCESS)
        for name in (orders, acks):
            fields: dict[str, Any] = {"pulSenderIDType": kind, "pAcknowledge": 0x08}
            named = send_arm(name)
            assert sender.sent(handle, b"hello", send=named, **fields) == "MQ_OK"
    machine.restart()
    with machine.client() as client:
        machine.run("purge", orders)
        assert bodies(client, acks) == [b"hello"]


def send_arm(administration: str) -> CACTransferBufferV1_Send:
    return CACTransferBufferV1_Send(
        pAdminQueueFormat=format_of(format_name(administration)), pResponseQueueFormat=None
    )


@pytest.mark.parametrize(("later", "place"), [(EVERYBODY, "chosen"), (ADMINISTRATORS, "system")])
def test_a_dead_letter_goes_where_its_sender_may_send_when_it_dies(
    machine: PrivateQueueManager,
    client: BlockingClient,
    user: str,
    orders: str,
    later: str,
    place: str,
) -> None:
    """The queue of that name may be somebody else's by then."""
    chosen = queue(machine, EVERYBODY)
    send(machine, user, orders, dead_letter_queue=chosen)
    machine.run("queue", "delete", chosen)
    machine.run("queue", "create", chosen, "--sddl", later)
    machine.run("purge", r".\system$;deadletter")
    machine.run("purge", orders)
    assert bodies(client, chosen) == ([b"hello"] if place == "chosen" else [])
    with client.open_reader(FormatName.parse(r"DIRECT=OS:.\SYSTEM$;DEADLETTER")) as reader:
        letters = [message.body for message in reader.browse()]
    assert letters == ([] if place == "chosen" else [b"hello"])


@pytest.mark.parametrize(("later", "told"), [(LOGGED_ON, 1), (ADMINISTRATORS, 0)])
def test_who_sends_a_dead_letter_again_lends_its_sender_no_right(
    machine: PrivateQueueManager,
    client: BlockingClient,
    user: str,
    orders: str,
    later: str,
    told: int,
) -> None:
    acks = queue(machine, LOGGED_ON)
    members: dict[str, Any] = {"admin_queue": acks, "acknowledgements": ["arrival"]}
    send(machine, user, orders, dead_letter=True, **members)
    machine.run("purge", acks)
    machine.run("queue", "set", acks, "--sddl", later)
    machine.run("purge", r".\system$;deadletter")
    machine.run("purge", orders)
    machine.run("dead-letter", "resend", "--all")
    assert bodies(client, orders) == [b"hello"]
    assert len(bodies(client, acks)) == told


@pytest.mark.parametrize("command", ["move", "resend"])
def test_who_moves_a_message_lends_its_sender_no_right(
    machine: PrivateQueueManager, client: BlockingClient, user: str, orders: str, command: str
) -> None:
    """The new message is an administrator's, who may send everywhere; its sender may not (G615)."""
    acks, other = queue(machine, LOGGED_ON), queue(machine, EVERYBODY)
    send(machine, user, orders, admin_queue=acks, acknowledgements=["arrival", "no-receive"])
    machine.run("purge", acks)
    machine.run("queue", "set", acks, "--sddl", ADMINISTRATORS)
    to = (other,) if command == "move" else ("--to", other)
    machine.run(command, orders, *to, "--all")
    machine.run("purge", other)
    assert bodies(client, acks) == []


def test_who_moves_a_message_speaks_for_nobody_else(
    machine: PrivateQueueManager, client: BlockingClient, user: str, orders: str
) -> None:
    """Who moves messages sends them: neither the sender's name nor its rights go with them."""
    other = queue(machine, EVERYBODY)
    send(machine, user, orders)
    boss = Program(machine.endpoint("console"), "boss", PASSWORD)
    before = boss.ask("GET", f"/queues/{orders}/messages").value["messages"][0]["sender"]
    assert boss.ask("POST", f"/queues/{orders}/move", {"to": other}).value["messages"] == 1
    after = boss.ask("GET", f"/queues/{other}/messages").value["messages"][0]["sender"]
    own = {each["name"]: each["sid"] for each in boss.ask("GET", "/accounts").value["accounts"]}
    assert (before, after) == (own[user], own["boss"])
    boss.close()


@pytest.mark.parametrize("command", ["copy", "move", "resend"])
def test_who_may_not_send_there_moves_and_copies_nothing(
    machine: PrivateQueueManager, client: BlockingClient, user: str, orders: str, command: str
) -> None:
    shut = queue(machine, ADMINISTRATORS)
    send(machine, user, orders)
    program = Program(machine.endpoint("console"), user, PASSWORD)
    told = program.ask("POST", f"/queues/{orders}/{command}", {"to": shut, "all": True})
    program.close()
    assert (told.status, told.code) == (403, "MQ_ERROR_ACCESS_DENIED")
    assert (bodies(client, orders), bodies(client, shut)) == ([b"hello"], [])


def test_a_token_names_no_queue_of_elsewhere_that_it_is_not_for(
    machine: PrivateQueueManager, user: str, orders: str
) -> None:
    """Acknowledgements go to any host that their senders name, and their bodies with them."""
    there = r"DIRECT=OS:there\private$\acks"
    words = ("token", "create", f"of {user}", "--account", user, "--queues", f"{orders},{there}")
    program = Program(machine.endpoint("console"))
    program.headers["Authorization"] = f"Bearer {machine.run(*words).stdout.split()[-1]}"
    statuses = {
        named: program.ask(
            "POST",
            f"/queues/{orders}/messages/batch",
            {"messages": [{"admin_queue": named, "acknowledgements": ["no-receive"]}]},
        ).status
        for named in (there, r"DIRECT=OS:there\private$\other", "not-made-yet")
    }
    program.close()
    assert list(statuses.values()) == [201, 403, 403]


def test_templates_remember_no_right(
    machine: PrivateQueueManager, client: BlockingClient, user: str, orders: str
) -> None:
    """Sends that templates have taken are refused from the moment on that the right is gone."""
    acks = queue(machine, LOGGED_ON)
    message = OutgoingMessage(
        acknowledgements=AcknowledgementsRequested.ACK_POS_ARRIVAL,
        administration_queue=format_name(acks),
    )
    server = RemoteServer(*machine.endpoint("epm"), NtlmCredentials(user, PASSWORD))
    with BlockingClient(server) as sending, sending.open_sender(format_name(orders)) as sender:
        for _ in range(8):
            sender.send(message)
        machine.run("queue", "set", acks, "--sddl", ADMINISTRATORS)
        for _ in range(8):
            with pytest.raises(MQError) as raised:
                sender.send(message)
            assert raised.value.status is HResult.MQ_ERROR_ACCESS_DENIED
        assert len(bodies(client, orders)) == len(bodies(client, acks)) == 8
        machine.run("queue", "set", acks, "--sddl", LOGGED_ON)
        sender.send(message)
    assert len(bodies(client, orders)) == len(bodies(client, acks)) == 9
