"""What stays open for an account ends with it (docs/decisions.md, G403 to G405).

The rows are in ended_rights.toml: each kind of what is open, by each door, and each cause.
"""

import ast
import contextlib
import json
import re
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import rpcqm
from rpcqm.base.ended_rights import OpenKind
from rpcqm.base.errors import MQError, NtStatus
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.passwords import nt_hash
from rpcqm.testing import PrivateQueueManager
from tests.support.api.programs import Program
from tests.support.qm.open_rights import (
    FIRST,
    NOBODY,
    OPENED,
    PATIENCE,
    SECOND,
    World,
    as_another_user,
    how_many,
    machine_with_all_doors,
    make_queue,
    send_under_key,
    stream_of,
    world_of,
)
from tests.support.rpc.callers import Fault
from tests.support.rpc.dependent_client import Client
from tests.support.rpc.network_caller import NetworkCaller
from tests.support.rpc.remote_reader import Reader
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
TABLE = tomllib.loads(Path(__file__).with_name("ended_rights.toml").read_text("utf-8"))
ROWS: list[dict[str, str]] = TABLE["row"]
ENDS, STAYS = "ends", "stays"


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    with machine_with_all_doors() as running:
        yield running


@pytest.fixture
def world(machine: PrivateQueueManager) -> Iterator[World]:
    with world_of(machine) as world:
        yield world


WALKED = [
    (row["open"], cause, row[cause])
    for row in ROWS
    for cause in TABLE["causes"]
    if row.get(cause) in (ENDS, STAYS) and cause != "token"
]


@pytest.mark.parametrize(("opened", "cause", "outcome"), WALKED)
def test_what_is_open_ends_with_the_rights_of_its_account(
    world: World, opened: str, cause: str, outcome: str
) -> None:
    ends, stays = OPENED[opened](world)
    stays() if opened != "request" else None
    world.lose(cause)
    ends() if outcome == ENDS else stays()


BY_OPERATORS = [(row["open"], row["operator"]) for row in ROWS if "operator" in row]


@pytest.mark.parametrize(("opened", "kind"), BY_OPERATORS)
def test_an_operator_sees_and_ends_what_is_open(world: World, opened: str, kind: str) -> None:
    """It ends as if its client had gone, one line of the audit log tells of each."""
    ends, stays = OPENED[opened](world)
    stays() if opened != "request" else None
    position = len(world.machine.log)
    found = world.end(kind)
    assert found
    ends()
    lines = [json.loads(each) for each in world.machine.log[position:].splitlines()]
    acts = [each for each in lines if each["event"] == "an operator acts"]
    wanted = "abort transaction" if kind == "transaction" else f"end {kind}"
    assert [each["action"] for each in acts] == [wanted] * len(found)
    if kind != "connection":
        address = "local" if opened == "local socket" else "127.0.0.1"
        assert {each["address"] for each in found} == {address}
        door = "com" if "objects" in opened else "http" if opened in ("request", "lease") else "rpc"
        assert {each["door"] for each in found} == {door}
        assert kind != "handle" or world.handles() == 0
        with pytest.raises(MQError) as gone:
            world.client.run(world.client.wrapped.maintenance.end_opened(found[0]["id"]))
        assert gone.value.status is NtStatus.STATUS_OBJECT_NAME_NOT_FOUND


# Orders of events


def test_an_account_that_changes_itself_is_answered(world: World) -> None:
    """Its connection ends behind the answer."""
    world.lose("removed")
    accounts = world.client.accounts
    with contextlib.suppress(MQError):
        world.client.run(accounts.remove(NOBODY))
    world.client.run(accounts.add(NOBODY, nt_hash(FIRST), ["administrators"]))
    with as_another_user(), BlockingClient(world.machine.target) as client:
        client.run(client.accounts.set_password(NOBODY, nt_hash(SECOND)))
        # The end may come just behind the answer: what only reads is asked again after it.
        client.run(client.accounts.list())
        client.run(client.accounts.remove(NOBODY))
        with pytest.raises(MQError):
            client.run(client.accounts.list())


@pytest.mark.parametrize("cause", ["removed", "password"])
def test_a_log_on_that_is_under_way_is_worth_nothing(world: World, cause: str) -> None:
    """The account ends between the challenge and the answer to it."""

    class Slow(NetworkCaller):
        def _receive(self) -> None:
            super()._receive()
            if not lost:
                lost.append(cause)
                world.lose(cause)

    lost: list[str] = []
    make_queue(world)
    address = world.machine.endpoint("rpc")
    with (
        Slow(address, "remoteread", credentials=world.credentials) as caller,
        pytest.raises((Fault, ConnectionError)),
    ):
        Reader(caller.caller).open(world.name)
    assert lost == [cause]


def test_nothing_is_sent_any_more_while_templates_take_sends(world: World) -> None:
    """Sends come without a pause; the number of messages is final when the command returns."""
    make_queue(world)
    caller = world.caller("qmcomm", "qmcomm2")
    client = Client(caller.caller)
    handle, _ = client.open(world.name, 2)
    taken: list[int] = []

    def send() -> None:
        with contextlib.suppress(Exception):
            while True:
                for _ in range(20):
                    client.start_send(handle, b"more")
                caller.settle()
                taken.append(20)

    thread = threading.Thread(target=send)
    thread.start()
    until(lambda: len(taken) > 5)
    world.lose("removed")
    messages = how_many(world)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert how_many(world) == messages >= sum(taken)


# Tokens


def token(world: World) -> str:
    words = ("token", "create", f"of {world.user}", "--account", world.user)
    return world.machine.run(*words).stdout.split()[-1]


def bearer(world: World, text: str) -> Program:
    program = world.program()
    program.headers["Authorization"] = f"Bearer {text}"
    return program


def test_a_token_outlives_another_password(world: World) -> None:
    """What was open of it ends; the token itself is an administrator's to delete (G404)."""
    make_queue(world)
    program, text = world.program(), token(world)
    program.headers["Authorization"] = f"Bearer {text}"
    ends, _ = stream_of(bearer(world, text))
    world.lose("password")
    ends()
    assert program.ask("GET", "/queues").status == 200
    world.lose("removed")
    assert program.ask("GET", "/queues").status == 401


@pytest.mark.parametrize("cause", ["password", "file"])
def test_a_key_of_a_request_outlives_another_password(world: World, cause: str) -> None:
    """The account is the same, and must not send twice."""
    make_queue(world)
    first = send_under_key(world.program(), world)
    world.lose(cause)
    assert send_under_key(world.program(), world).status == 401
    changed = Program(world.machine.endpoint("console"), world.user, SECOND)
    world.stack.callback(changed.close)
    assert send_under_key(changed, world).value == first.value
    assert how_many(world) == 1


def test_a_key_belongs_to_the_account_and_outlives_its_token(world: World) -> None:
    make_queue(world)
    program = bearer(world, token(world))
    first = send_under_key(program, world)
    world.machine.run("token", "delete", f"of {world.user}")
    assert send_under_key(program, world).status == 401
    assert send_under_key(world.program(), world).value == first.value
    assert how_many(world) == 1


def test_a_stream_of_events_ends_with_its_token(world: World) -> None:
    make_queue(world)
    program = bearer(world, token(world))
    program.connection.request("GET", "/api/v1/events", headers=program.headers)
    stream = program.connection.getresponse()
    assert stream.readline().startswith(b"retry:")
    world.machine.run("token", "delete", f"of {world.user}")
    world.machine.run("queue", "set", world.queue, "--label", "seen by nobody")
    assert b"seen by nobody" not in stream.read()


def test_a_lease_belongs_to_the_account_and_outlives_its_token(world: World) -> None:
    make_queue(world)
    world.machine.run("send", world.queue, "--body", "kept")
    program = bearer(world, token(world))
    told = program.ask("POST", f"/queues/{world.queue}/receive?lease=3600")
    world.machine.run("token", "delete", f"of {world.user}")
    assert world.is_locked()
    lease = told.value["messages"][0]["lease"]
    assert program.ask("POST", f"/leases/{lease}/complete").status == 401
    assert world.program().ask("POST", f"/leases/{lease}/complete").status == 204


# The table has everything


def test_each_kind_of_what_stays_open_has_rows_and_is_ended() -> None:
    kinds = set(OpenKind)
    assert {row["kind"] for row in ROWS} == kinds
    subscribed = set()
    for path in (ROOT / "rpcqm").rglob("*.py"):
        subscribed |= set(re.findall(r"\.subscribe\(\s*OpenKind\.(\w+)", path.read_text("utf-8")))
    assert subscribed == {kind.name for kind in kinds}


def test_each_listener_has_rows(machine: PrivateQueueManager) -> None:
    assert {*machine.ready.endpoints, "local"} <= set(TABLE["listeners"])
    named = {each for opened in TABLE["listeners"].values() for each in opened}
    assert named <= {row["open"] for row in ROWS}


def test_each_row_says_what_each_cause_does_and_names_tests_that_are_there() -> None:
    assert {row["open"] for row in ROWS if row.get("removed") == ENDS} == set(OPENED)
    for row in ROWS:
        for cause in TABLE["causes"]:
            said = row.get(cause, "")
            if "::" in said:
                file, name = said.split("::")
                assert f"def {name}(" in (ROOT / file).read_text("utf-8"), said
            else:
                assert said in (ENDS, STAYS, ""), said


def classes_that_keep_an_identity() -> set[str]:
    """Classes with an attribute for who has called, by their annotations and assignments."""
    root = Path(rpcqm.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        module = "rpcqm." + ".".join(path.relative_to(root).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and any(map(_keeps, node.body)):
                found.add(f"{module}.{node.name}")
    return found


def _keeps(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AnnAssign):
        return "Identity" in ast.unparse(statement.annotation).split(" | ")
    assigned = (node for node in ast.walk(statement) if isinstance(node, ast.Assign))
    return any(
        re.fullmatch(r"\(?self\.\w+.*", ast.unparse(each.targets[0]))
        and re.search(r"\bidentity(\.sid|\.name)?\b", ast.unparse(each.value))
        and isinstance(statement, ast.FunctionDef)
        and statement.name == "__init__"
        for each in assigned
    )


def test_each_class_that_keeps_an_identity_has_an_end() -> None:
    """What later doors keep open must not be forgotten: say which kind ends it."""
    assert classes_that_keep_an_identity() - set(TABLE["keeps"]) == set()
