"""What a start does with what it finds is what would have happened while running (G532, G533).

The rows are in restarts.toml.
"""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.testing import private_queue_manager
from tests.support.binary.binary_stranger import BinaryStranger
from tests.support.ports import ports_of
from tests.support.qm.event_world import AWAY, SETTINGS, Subject, World, opened_world
from tests.support.qm.restarting_service import BOSS, RestartingService, restarting_service
from tests.support.rpc.dependent_client import (
    RECEIVE_ACCESS,
    SEND_ACCESS,
    Client,
    receiving_buffer,
)
from tests.support.rpc.remote_reader import NACK, Reader
from tests.support.waiting import until

TABLE = tomllib.loads(Path(__file__).with_name("restarts.toml").read_text("utf-8"))
PASSED: dict[str, dict[str, Any]] = {each["name"]: each for each in TABLE["passed"]}
KILLED: dict[str, dict[str, Any]] = {each["name"]: each for each in TABLE["killed"]}
STATES: dict[str, dict[str, Any]] = {each["name"]: each for each in TABLE["states"]}
ADMINISTRATORS = "O:BAD:(A;;GA;;;BA)"
LOGGED_ON = "O:BAD:(A;;GA;;;BA)(A;;GA;;;AU)"
CAROL = "carol"
SECOND = 1_000


# What time does


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RestartingService]:
    with restarting_service(tmp_path) as running:
        yield running


def sent(service: RestartingService, name: str) -> tuple[str, dict[str, float]]:
    """A message whose time is over after two seconds, and the counters before that."""
    service.add(CAROL)
    gone, own = "no account" in name, "keeps dead letters" in name
    for queue, sddl in (
        ("orders", LOGGED_ON),
        ("acks", LOGGED_ON if gone else ADMINISTRATORS),
        ("own", ADMINISTRATORS),
    ):
        service.ask("POST", "/queues", {"name": queue, "sddl": sddl})
    service.ask("PATCH", "/queues/orders", {"trail": True})
    wanted = {
        "dead_letter": True,
        "admin_queue": "acks",
        "acknowledgements": ["no-arrival", "no-receive"],
        **({"dead_letter_queue": "own"} if own else {}),
        **({"ttrq": 2} if "elsewhere" in name else {"ttbr": 2}),
    }
    queue = AWAY if "elsewhere" in name else "orders"
    identifier = service.send(CAROL if gone else BOSS, queue, **wanted)
    if gone:
        service.ask("DELETE", f"/accounts/{CAROL}")
    return identifier, counters(service)


def counters(service: RestartingService) -> dict[str, float]:
    """What is counted of messages that are gone; it begins anew with the service."""
    metrics = service.service._metrics.snapshot()
    return {name.partition(".")[2]: value for name, value in metrics.items() if "messages." in name}


def outcome(
    service: RestartingService, identifier: str, before: dict[str, float]
) -> dict[str, Any]:
    """What has become of a message, once it is a dead letter."""
    letters, own = "/dead-letters?limit=10", "/queues/own/messages"
    until(lambda: service.classes(letters) or service.classes(own))
    service.advance(SECOND)  # dead letters of a moment are told together
    heard = service.ask("GET", "/event-trail?kind=dead-letter")["events"]
    counted = {name for name, count in counters(service).items() if count > before.get(name, 0)}
    trace = service.ask("GET", f"/message-traces/{quote(identifier, safe='')}")["events"]
    return {
        "dead": service.classes(letters),
        "own": service.classes(own),
        "told": service.classes("/queues/acks/messages"),
        "trail": [each["event"] for each in trace],
        "counted": sorted(counted & {"expired", "purged", "failed"}),
        "heard": sorted({each["kind"] for each in heard}),
    }


def while_running(service: RestartingService) -> None:
    service.advance(3 * SECOND)


def while_down(service: RestartingService) -> None:
    service.down(3 * SECOND)


def after_a_restart(service: RestartingService) -> None:
    service.down(SECOND)
    service.advance(3 * SECOND)


@pytest.mark.parametrize("pause", [while_running, while_down])
@pytest.mark.parametrize("name", PASSED)
def test_time_that_passes_while_it_is_down_has_the_outcome_of_time_that_passes(
    service: RestartingService, name: str, pause: Callable[[RestartingService], None]
) -> None:
    identifier, before = sent(service, name)
    if pause is while_down:
        before = {}
        if "later than the restart" in name:
            pause = after_a_restart
    pause(service)
    row = {"own": [], **PASSED[name]}
    wanted = {key: value for key, value in row.items() if key != "name"}
    assert outcome(service, identifier, before) == wanted


# What a crash does


@pytest.fixture(scope="module")
def opened() -> Iterator[World]:
    with opened_world() as world:
        yield world


def subject_of(world: World) -> tuple[Subject, Subject]:
    """A transactional queue with one message, and where acknowledgements of it go."""
    acks = world.new_queue(ADMINISTRATORS)
    orders = world.new_queue(transactional=True)
    headers = {"Rpcqm-Admin-Queue": acks.short, "Rpcqm-Acknowledgements": "no-receive"}
    identifier = world.send(orders.short, headers)
    (message,) = world.messages(orders.short)
    return Subject(orders.short, str(message["lookup_id"]), identifier), acks


def purge(world: World, subject: Subject) -> None:
    world.ask("DELETE", f"/queues/{subject.short}/messages")


def in_a_transaction(world: World, subject: Subject) -> Callable[[], None]:
    """Receive; what ends it."""
    client, unit = Client(world.caller().caller), uuid4().bytes_le
    transaction = client.enlist(unit)
    _, context = client.open(subject.name, RECEIVE_ACCESS)
    buffer = receiving_buffer()
    buffer.old.pUow = XACTUOW(rgb=unit)
    assert client.receive(context, buffer)[0] == "MQ_OK"
    return lambda: _ended(client.status("R_QMAbortTransaction", phIntXact=transaction))


def _ended(status: str) -> None:
    assert status == "MQ_OK"


def in_a_read(world: World, subject: Subject) -> Callable[[], None]:
    reader = Reader(world.caller().caller)
    handle = reader.open(subject.name)
    reader.read(handle, request_id=9)
    return lambda: _ended(reader.end(handle, 9, NACK))


def under_a_lease(world: World, subject: Subject) -> Callable[[], None]:
    path = f"/queues/{subject.short}/receive?lease=600"
    (message,) = world.program.ask("POST", path).value["messages"]

    def release() -> None:
        assert world.program.ask("POST", f"/leases/{message['lease']}/release").status == 204

    return release


def sending(world: World, subject: Subject) -> Callable[[], None]:
    purge(world, subject)
    client, unit = Client(world.caller().caller), uuid4().bytes_le
    transaction = client.enlist(unit)
    handle, _ = client.open(subject.name, SEND_ACCESS)
    assert client.sent(handle, b"never", pUow=XACTUOW(rgb=unit)) == "MQ_OK"
    return lambda: _ended(client.status("R_QMAbortTransaction", phIntXact=transaction))


SCENES: dict[str, Callable[[World, Subject], Callable[[], None]]] = {
    "a transaction that has received ends": in_a_transaction,
    "a transaction that has received ends after a purge": in_a_transaction,
    "a read ends after a purge": in_a_read,
    "a lease ends after a purge": under_a_lease,
    "a transaction that has sent ends": sending,
    "a lease ends": under_a_lease,
}


def restarted(world: World) -> None:
    """Kill the process, and start it on what is on the disk."""
    world.machine.kill()
    world.stack.close()
    world.known.clear()
    world.machine.start()


def classes(world: World, subject: Subject) -> list[str]:
    return [str(each["class"]) for each in world.messages(subject.short)]


@pytest.mark.parametrize("way", ["ends", "crash"])
@pytest.mark.parametrize("name", KILLED)
def test_what_a_crash_ends_has_the_outcome_of_its_end(opened: World, name: str, way: str) -> None:
    world = opened
    subject, acks = subject_of(world)
    end = SCENES[name](world, subject)
    if "after a purge" in name:
        purge(world, subject)
    if way == "ends":
        end()
    else:
        restarted(world)
    row = KILLED[name]
    wanted = {**row, **row.get("but", {})} if way == "crash" else row
    left = world.messages(subject.short)
    if wanted["told"]:
        until(lambda: classes(world, acks))
    told = classes(world, acks) if name != "a transaction that has sent ends" else []
    assert (len(left), told) == (wanted["left"], wanted["told"])
    assert [each["abort_count"] for each in left] == wanted["aborts"]
    if wanted["trail"]:
        perhaps = wanted.get("perhaps", ())
        trail = [each for each in world.trail(subject.identifier) if each not in perhaps]
        assert trail == wanted["trail"]


def test_each_row_that_differs_says_why() -> None:
    assert set(SCENES) == set(KILLED)
    assert all("why" in row["but"] for row in KILLED.values() if "but" in row)
    differing = [row for row in STATES.values() if row["running"] != row["restarted"]]
    assert all("why" in row for row in differing)


# States

HARDENED = SETTINGS.replace("[security]\n", "[security]\nhardened_security = true\n")


def _pause(world: World) -> None:
    world.ask("POST", f"/outgoing-queues/{quote(AWAY, safe='')}/pause")


def _leave(world: World) -> None:
    world.ask("PATCH", "/queue-manager", {"connected": False})


def _maintain(world: World) -> None:
    world.ask("PATCH", "/queue-manager", {"maintenance": True, "reason": "a new disk"})


def _harden(world: World) -> None:
    world.machine.reload(HARDENED)


def _soften(world: World) -> None:
    world.machine.reload(SETTINGS)


CHANGES: dict[str, tuple[Callable[[World], None], ...]] = {
    "a queue to elsewhere is paused": (_pause,),
    "the network is left": (_leave,),
    "maintenance has begun": (_maintain,),
    "hardened_security is switched on": (_harden,),
    "hardened_security is switched on and off for a queue that is paused": (
        _pause,
        _harden,
        _soften,
    ),
}


@pytest.mark.parametrize("way", ["running", "restarted"])
@pytest.mark.parametrize("name", STATES)
def test_a_state_is_the_same_after_a_restart(opened: World, name: str, way: str) -> None:
    """A restart comes after each change, in place of what a running queue manager does."""
    world = opened
    world.send_away()
    for change in CHANGES[name]:
        change(world)
        if way == "restarted":
            restarted(world)
    told = world.ask("GET", "/queue-manager")
    if name == "the network is left":
        shown = "connected" if told["connected"] else "disconnected"
    elif order := told["maintenance"]:
        shown = f"maintenance, by {order['by']}: {order['reason']}"
    else:
        shown = world.ask("GET", f"/outgoing-queues/{quote(AWAY, safe='')}")["state"]
    assert shown == STATES[name][way]
    _soften(world)
    world.ask("PATCH", "/queue-manager", {"connected": True, "maintenance": False})
    world.ask("POST", f"/outgoing-queues/{quote(AWAY, safe='')}/resume")


def test_every_state_has_a_change() -> None:
    assert set(CHANGES) == set(STATES)


def test_hardened_security_keeps_others_out_as_soon_as_it_is_switched_on(tmp_path: Path) -> None:
    """Port 1801 is open until the next start, but leads nowhere (G533)."""
    ports = ports_of(("here", "other"))
    peers = f'[binary]\npeers = "other=127.0.0.1:{ports["other"]}"\n'
    plain = f'name = "here"\n{peers}'
    hardened = f"{plain}[security]\nhardened_security = true\n"
    port = ("--binary-port", str(ports["other"]))
    to = r"DIRECT=OS:other\private$\orders"
    with (
        private_queue_manager((), plain) as here,
        private_queue_manager(port, 'name = "other"\n') as other,
    ):
        for machine in (here, other):
            machine.run("queue", "create", "orders")
        here.run("send", to, "--body", "one")
        other.run("receive", "orders", "--timeout", "20000")
        said = here.reload(hardened)
        assert '"waiting_for_restart": ["binary_port"]' in said
        here.run("send", to, "--body", "two")
        with pytest.raises((OSError, AssertionError)):
            BinaryStranger(here.endpoint("binary"))
        assert len(other.run("peek", "orders", "--timeout", "0", check=False).stdout) == 0
        assert 'waiting_for_restart": []' in here.reload(plain)
        assert "two" in other.run("receive", "orders", "--timeout", "20000").stdout
        with BinaryStranger(here.endpoint("binary")) as stranger:
            stranger.deliver(r"DIRECT=OS:here\private$\orders", 1)
        here.run("receive", "orders", "--timeout", "20000")
