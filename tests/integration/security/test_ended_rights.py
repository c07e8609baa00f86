"""What stays open for an account ends with it (docs/decisions.md, G403 to G405).

The rows are in ended_rights.toml: each kind of what is open, by each door, and each cause.
"""

import ast
import contextlib
import json
import os
import pwd
import re
import threading
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import rpcqm
from rpcqm.base.ended_rights import OpenKind
from rpcqm.base.errors import MQError, RpcFault
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.passwords import nt_hash
from rpcqm.client.target import HandleLostError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.codec.types.mqvalues import INFINITE, QueueAccessType
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.callers import Fault
from tests.support.com_objects import YES, Objects, number
from tests.support.dcom_client import ComError, DcomClient, Reference
from tests.support.dependent_client import RECEIVE_ACCESS, Client, receiving_buffer
from tests.support.network_caller import NetworkCaller
from tests.support.programs import Program
from tests.support.remote_reader import Reader, status_name
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
TABLE = tomllib.loads(Path(__file__).with_name("ended_rights.toml").read_text("utf-8"))
ROWS: list[dict[str, str]] = TABLE["row"]
SETTINGS = (
    'name = "here"\n[security]\nsupporting_server = true\n[dcom]\nenabled = true\n'
    '[logging]\nformat = "json"\n[console]\nlongest_wait = 60\n'
)
OPTIONS = ("--console-port", "0", "--dcom-port", "0")
EVERYBODY = "O:BAD:(A;;GA;;;BA)(A;;GA;;;WD)(A;;GA;;;AN)"
OTHERS = "O:BAD:(D;;GA;;;{sid})(A;;GA;;;BA)"
FIRST, SECOND = "a long pass phrase", "another pass phrase"
NOBODY, BOSS = "nobody", "boss"
PATIENCE = 30
PEEK_NEXT = 0x80000001
EXCLUSIVE = 1
ENDS, STAYS = "ends", "stays"
_numbers = count(1)


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(OPTIONS, SETTINGS) as running, running.client() as client:
        running.data_dir.parent.chmod(0o711)  # for another user of this machine
        client.run(client.accounts.add(BOSS, nt_hash(FIRST), ["administrators"]))
        yield running


@dataclass
class World:
    """A queue manager with an account that loses its rights, and a queue with one message."""

    machine: PrivateQueueManager
    client: BlockingClient
    user: str
    queue: str
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def credentials(self) -> NtlmCredentials:
        return NtlmCredentials(self.user, FIRST)

    @property
    def name(self) -> FormatName:
        return FormatName.parse(rf"DIRECT=OS:here\private$\{self.queue}")

    def caller(self, *interfaces: str, group_id: int = 0, user: str = "") -> NetworkCaller:
        credentials = NtlmCredentials(user, FIRST) if user else self.credentials
        address = self.machine.endpoint("rpc")
        made = NetworkCaller(address, *interfaces, credentials=credentials, group_id=group_id)
        return self.stack.enter_context(made)

    def program(self, user: str = "") -> Program:
        made = Program(self.machine.endpoint("console"), user or self.user, FIRST)
        self.stack.callback(made.close)
        return made

    def objects(self, user: str = "") -> Objects:
        credentials = NtlmCredentials(user, FIRST) if user else self.credentials
        com = self.stack.enter_context(DcomClient(self.machine.endpoint("epm"), credentials))
        return Objects(self.machine, com, self.client)

    def is_exclusive(self) -> bool:
        """Whether somebody keeps others out of the queue."""
        try:
            with self.client.open_reader(self.name):
                return False
        except MQError:
            return True

    def is_locked(self) -> bool:
        """Whether somebody has the message."""
        with self.client.open_reader(self.name, peek_only=True) as reader:
            return not list(reader.browse())

    # What ends rights

    def lose(self, cause: str) -> None:
        run, accounts = self.client.run, self.client.accounts
        if cause in ("removed", "remade"):
            run(accounts.remove(self.user))
        if cause == "remade":
            run(accounts.add(self.user, nt_hash(FIRST)))
        if cause == "password":
            run(accounts.set_password(self.user, nt_hash(SECOND)))
        if cause == "file":
            file = self.machine.data_dir / "accounts"
            line = rf"^({re.escape(self.user)}:\d+:[0-9A-F]+:)[0-9A-F]+"
            other = nt_hash(SECOND).hex().upper()
            text = re.sub(line, rf"\g<1>{other}", file.read_text(), flags=re.MULTILINE)
            file.write_text(text)
            self.machine.reload(SETTINGS)
        if cause == "descriptor":
            sid = next(each.sid for each in run(accounts.list()) if each.name == self.user)
            self.machine.run("queue", "set", self.queue, "--sddl", OTHERS.format(sid=sid))


@pytest.fixture
def world(machine: PrivateQueueManager) -> Iterator[World]:
    with machine.client() as client:
        user, queue = f"user{next(_numbers)}", f"queue-{next(_numbers)}"
        client.run(client.accounts.add(user, nt_hash(FIRST), ["administrators"]))
        world = World(machine, client, user, queue)
        with world.stack:
            yield world


def make_queue(world: World, *words: str) -> None:
    world.machine.run("queue", "create", world.queue, "--sddl", EVERYBODY, *words)


@contextlib.contextmanager
def as_another_user() -> Iterator[None]:
    """What this process connects to meanwhile sees another user of this machine."""
    if os.geteuid():
        pytest.skip("only root can be another user")
    os.seteuid(pwd.getpwnam(NOBODY).pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


Held = tuple[Callable[[], None], Callable[[], None]]
"""What asserts that it is over, and what asserts that it goes on."""


def an_association(world: World) -> Held:
    make_queue(world)
    caller = world.caller("remoteread")

    def ends() -> None:
        assert caller.ended

    return ends, lambda: caller.call("R_GetServerPort")


def a_local_socket(world: World) -> Held:
    world.user = NOBODY
    with contextlib.suppress(MQError):
        world.client.run(world.client.accounts.remove(NOBODY))
    world.client.run(world.client.accounts.add(NOBODY, nt_hash(FIRST)))
    make_queue(world)
    with as_another_user():
        client = world.stack.enter_context(BlockingClient(world.machine.target))
        reader = client.open_reader(world.name, exclusive=True)
        reader.__enter__()

    def ends() -> None:
        until(lambda: not world.is_exclusive())
        with pytest.raises((MQError, HandleLostError)):
            reader.peek(0)

    return ends, lambda: _assert(world.is_exclusive())


def _assert(holds: bool) -> None:
    assert holds


def a_handle(world: World) -> Held:
    make_queue(world)
    caller = world.caller("remoteread")
    Reader(caller.caller).open(world.name, share_mode=EXCLUSIVE)
    return lambda: until(lambda: not world.is_exclusive()), lambda: _assert(world.is_exclusive())


def a_shared_group(world: World) -> Held:
    """The group of an account lives on, because somebody else's connection is in it."""
    make_queue(world)
    caller = world.caller("remoteread")
    Reader(caller.caller).open(world.name, share_mode=EXCLUSIVE)
    other = world.caller("remoteread", group_id=caller.group_id, user=BOSS)

    def ends() -> None:
        until(lambda: not world.is_exclusive())
        other.call("R_GetServerPort")

    return ends, lambda: _assert(world.is_exclusive())


def waiting(caller: NetworkCaller, call: Any) -> Held:
    """A call that waits is answered with an error, and its connection ends."""

    def ends() -> None:
        caller.settle()
        try:
            status = status_name(call.result().result)
        except Fault as fault:
            status = str(fault)
        assert "ACCESS_DENIED" in status or "5" in status
        assert caller.ended

    def stays() -> None:
        assert caller.pending

    return ends, stays


def a_cursor(world: World) -> Held:
    make_queue(world)
    caller = world.caller("remoteread")
    reader = Reader(caller.caller)
    handle = reader.open(world.name)
    cursor = reader.cursor(handle)
    return waiting(caller, reader.start(handle, timeout=INFINITE, cursor=cursor))


def a_remote_read(world: World) -> Held:
    make_queue(world)
    caller = world.caller("remoteread")
    reader = Reader(caller.caller)
    return waiting(caller, reader.start(reader.open(world.name), timeout=INFINITE))


def a_read(world: World) -> Held:
    make_queue(world)
    caller = world.caller("qmcomm", "qmcomm2")
    client = Client(caller.caller)
    _, context = client.open(world.name, RECEIVE_ACCESS)
    return waiting(caller, client.start_receive(context, receiving_buffer(timeout=INFINITE)))


def a_transaction(world: World) -> Held:
    make_queue(world, "--transactional")
    world.machine.run("send", world.queue, "--transactional", "--body", "kept")
    caller = world.caller("qmcomm", "qmcomm2")
    client, unit = Client(caller.caller), uuid4().bytes_le
    _, context = client.open(world.name, RECEIVE_ACCESS)
    client.enlist(unit)
    buffer = receiving_buffer()
    buffer.old.pUow = XACTUOW(rgb=unit)
    assert client.receive(context, buffer)[0] == "MQ_OK"
    assert world.is_locked()
    return lambda: until(lambda: not world.is_locked()), lambda: _assert(world.is_locked())


def an_object(world: World) -> Held:
    """Whoever knows an object may call it: it ends with who has made it."""
    make_queue(world)
    made = world.objects().message()
    boss = world.objects(BOSS)
    boss.message()

    def ends() -> None:
        with pytest.raises(RpcFault, match="RPC_E_DISCONNECTED"):
            boss.get(made, "Label")

    return ends, lambda: _assert(boss.get(made, "Label") == "")


def an_objects_read(world: World) -> Held:
    make_queue(world)
    objects = world.objects()
    info = objects.queue_info(rf".\private$\{world.queue}")
    queue = objects.com.call(info, "Open", int(QueueAccessType.RECEIVE_ACCESS), EXCLUSIVE)
    assert isinstance(queue, Reference)
    assert objects.get(queue, "ShareMode") == EXCLUSIVE
    arguments = (number(0), YES, YES, number(600_000), YES)
    receiving = objects.com.start(queue, "Receive", *arguments)
    assert objects.get(queue, "ShareMode") == EXCLUSIVE, "the receive has come in front of this"

    def ends() -> None:
        with pytest.raises((ComError, RpcFault)):
            receiving.result(PATIENCE)
        until(lambda: not world.is_exclusive())

    return ends, lambda: _assert(not receiving.done())


def a_request(world: World) -> Held:
    make_queue(world)
    program = world.program()
    pool = world.stack.enter_context(ThreadPoolExecutor(1))
    before = waiting_reads(world)
    told = pool.submit(program.ask, "POST", f"/queues/{world.queue}/receive?wait=60&lease=0")
    until(lambda: waiting_reads(world) > before)

    def ends() -> None:
        assert told.result(PATIENCE).status in (401, 403)

    def stays() -> None:
        world.machine.run("send", world.queue, "--body", "late")
        assert told.result(PATIENCE).value["messages"]

    return ends, stays


def waiting_reads(world: World) -> int:
    """How many reads wait; whoever opened the queue alone to see that would keep them out."""
    overview = world.machine.run("status", "--overview", "--json").stdout
    return int(json.loads(overview)["waiting_reads"])


def a_lease(world: World) -> Held:
    make_queue(world)
    world.machine.run("send", world.queue, "--body", "kept")
    told = world.program().ask("POST", f"/queues/{world.queue}/receive?lease=3600")
    assert told.value["messages"]
    assert world.is_locked()
    return lambda: until(lambda: not world.is_locked()), lambda: _assert(world.is_locked())


def an_event_stream(world: World) -> Held:
    program = world.program()
    return stream_of(program)


def stream_of(program: Program) -> Held:
    """It ends before the next sign of life would."""
    program.connection.request("GET", "/api/v1/events", headers=program.headers)
    stream = program.connection.getresponse()
    assert stream.readline().startswith(b"retry:")

    def ends() -> None:
        assert b":\n\n" not in stream.read()

    return ends, lambda: None


OPENED: dict[str, Callable[[World], Held]] = {
    "association": an_association,
    "local socket": a_local_socket,
    "handle": a_handle,
    "shared group": a_shared_group,
    "cursor": a_cursor,
    "remote read": a_remote_read,
    "read": a_read,
    "transaction": a_transaction,
    "object": an_object,
    "objects' read": an_objects_read,
    "request": a_request,
    "lease": a_lease,
    "event stream": an_event_stream,
}

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


def how_many(world: World) -> int:
    with world.client.open_reader(world.name, peek_only=True) as reader:
        return sum(1 for _ in reader.browse())


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
