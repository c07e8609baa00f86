"""Maintenance: nothing new comes by any door, and everything else goes on (G631, G632)."""

import http.client
import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from rpcqm.base.errors import MQError
from rpcqm.cli.output import told_time
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from tests.support.binary.binary_stranger import BinaryStranger
from tests.support.qm.event_hands import DONE, HANDS, REFUSED
from tests.support.qm.event_world import Subject, World, opened_world
from tests.support.waiting import until

REASON = "a new disk"
NOT_AVAILABLE = "MQ_ERROR_SERVICE_NOT_AVAILABLE"
TOLD = {"command": REFUSED, "http": "503"}
"""What doors tell that have no names of errors."""
READS = ("receive", "give back", "move", "remove", "purge")


@pytest.fixture(scope="module")
def opened() -> Iterator[World]:
    with opened_world() as world:
        assert world.browser, "logged on before"
        yield world


@pytest.fixture
def world(opened: World) -> Iterator[World]:
    yield opened
    maintain(opened, False)


def maintain(world: World, on: bool) -> None:
    world.ask("PATCH", "/queue-manager", {"maintenance": on, "reason": REASON})


def a_message(world: World, event: str) -> Subject:
    """A queue with a message that was sent before."""
    subject = world.new_queue(transactional=event == "give back")
    identifier = world.send(subject.short)
    (message,) = world.messages(subject.short)
    return Subject(subject.short, str(message["lookup_id"]), identifier)


@pytest.mark.parametrize("door", [each for each in HANDS["send"] if each != "binary"])
def test_nothing_is_sent_by_any_door(world: World, door: str) -> None:
    """Also by those that know requests like it already, and after it, what is sent again."""
    send, subject = HANDS["send"][door], world.new_queue()
    before = 2 if door == "command" else 4
    for _ in range(before):
        assert send(world, subject) == DONE
    maintain(world, True)
    for _ in range(before):
        assert send(world, subject) == TOLD.get(door, NOT_AVAILABLE)
    assert len(world.messages(subject.short)) == before
    maintain(world, False)
    assert send(world, subject) == DONE
    assert len(world.messages(subject.short)) == before + 1


@pytest.mark.parametrize(
    ("event", "door"), [(event, door) for event in READS for door in HANDS[event]]
)
def test_who_reads_goes_on_by_every_door(world: World, event: str, door: str) -> None:
    subject = a_message(world, event)
    maintain(world, True)
    assert HANDS[event][door](world, subject) == DONE


def test_a_session_acknowledges_no_message_and_what_tells_of_messages_goes_on(
    world: World,
) -> None:
    subject = world.new_queue()
    maintain(world, True)
    with BinaryStranger(world.machine.endpoint("binary"), uuid4()) as stranger:
        stranger.send_as(subject.text, identifier=MessageIdentifier(stranger.guid, 1))
        stranger.send_as(
            subject.text,
            identifier=MessageIdentifier(stranger.guid, 2),
            message_class=MessageClass.MQMSG_CLASS_ACK_RECEIVE,
        )
        until(lambda: len(world.messages(subject.short)) == 1)
        (found,) = world.messages(subject.short)
        assert found["class"] == "ACK_RECEIVE"
        maintain(world, False)
        with pytest.raises(ConnectionError, match="has closed"):  # without an acknowledgement
            stranger.await_all()


def test_what_a_transaction_has_sent_before_is_committed(world: World) -> None:
    """What it would send after that is refused, and the transaction goes on without it."""
    subject = world.new_queue(transactional=True)
    client = world.far

    async def work() -> str:
        async with (
            client.wrapped.open_sender(subject.name) as sender,
            client.wrapped.begin_transaction() as unit,
        ):
            await sender.send(OutgoingMessage(b"before"), unit)
            maintain(world, True)
            with pytest.raises(MQError) as refused:
                await sender.send(OutgoingMessage(b"never"), unit)
        return refused.value.status.name

    assert client.run(work()) == NOT_AVAILABLE
    assert [each["body"] for each in world.messages(subject.short)] == ["before"]


def test_health_is_well_and_readiness_says_why_not(world: World) -> None:
    maintain(world, True)
    assert asked(world, "/healthz") == (200, "ok\n")
    status, told = asked(world, "/readyz")
    assert (status, told) == (503, f"no new message is taken during maintenance: {REASON}\n")
    maintain(world, False)
    assert asked(world, "/readyz") == (200, "ok\n")


def asked(world: World, target: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*world.machine.endpoint("console"))
    connection.request("GET", target)
    answer = connection.getresponse()
    told = answer.status, answer.read().decode()
    connection.close()
    return told


def test_programs_are_told_why_and_when_to_come_again(world: World) -> None:
    subject = world.new_queue()
    maintain(world, True)
    program = world.program
    program.connection.request(
        "POST", f"/api/v1/queues/{subject.short}/messages", b"x", program.headers
    )
    answer = program.connection.getresponse()
    problem = json.loads(answer.read())
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert REASON in problem["detail"]


def test_everything_says_since_when_by_whom_and_why(world: World) -> None:
    maintain(world, True)
    assert world.run("network", "disconnect", "--reason", "a new cable").returncode == 0
    told = world.ask("GET", "/overview")
    assert (told["maintenance"]["by"], told["maintenance"]["reason"]) == ("boss", REASON)
    assert told["disconnected"]["reason"] == "a new cable"
    codes = [each["code"] for each in told["attention"]]
    assert codes[:2] == ["maintenance", "disconnected"]
    overview = world.run("status", "--overview").stdout
    said = world.run("maintenance", "status").stdout
    since = told_time(told["maintenance"]["since"])
    for words in (overview, said):
        assert f"since {since}, by boss: {REASON}" in words
        assert "a new cable" in words
    page = world.browser.get("/console/overview").words
    assert f"by boss: {REASON}" in page
    doctor = world.run("doctor", "--json")
    assert REASON in doctor.stdout, doctor.stderr
    assert "a new cable" in doctor.stdout
    world.ask("PATCH", "/queue-manager", {"connected": True})
    maintain(world, False)
    assert "Messages are taken" in world.run("maintenance", "status").stdout
    assert json.loads(world.run("maintenance", "status", "--json").stdout) == {
        "maintenance": None,
        "disconnected": None,
    }
