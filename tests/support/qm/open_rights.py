"""What an account can have open, by each door, and how it is seen whether that is over."""

import contextlib
import json
import os
import pwd
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

import pytest

from rpcqm.base.errors import MQError, RpcFault
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.passwords import nt_hash
from rpcqm.client.target import HandleLostError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.codec.types.mqvalues import INFINITE, VARENUM, QueueAccessType
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program, Told
from tests.support.console.browser import open_browser
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import YES, Objects, number
from tests.support.dcom.dcom_client import ComError, DcomClient, Reference
from tests.support.rpc.callers import Fault
from tests.support.rpc.dependent_client import RECEIVE_ACCESS, Client, receiving_buffer
from tests.support.rpc.network_caller import NetworkCaller
from tests.support.rpc.remote_reader import Reader, format_of, status_name
from tests.support.waiting import until

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
_numbers = count(1)


@contextlib.contextmanager
def machine_with_all_doors() -> Iterator[PrivateQueueManager]:
    """A queue manager that listens at every door, with an administrator."""
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
    by_operator: bool = False
    """Whether what is open ends by an order, and the account stays."""

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

    def handles(self) -> int:
        """Context handles on queues that connections of the account have."""
        found = self.client.run(self.client.wrapped.maintenance.open_connections())
        return sum(each["handles"] for each in found if self.user in each["accounts"])

    # What ends what is open

    def end(self, kind: str) -> list[dict[str, Any]]:
        """Let an operator end all of a kind that the account has open; returns what that was."""
        self.by_operator = True
        run, maintenance = self.client.run, self.client.wrapped.maintenance
        if kind == "connection":
            found = [
                each
                for each in run(maintenance.open_connections())
                if self.user in each["accounts"]
            ]
        else:
            rows = run(maintenance.opened(self.name, "", 1000))["opened"]
            mine = [each for each in rows if each["account"] == self.user]
            found = [each for each in mine if each["kind"] == kind]
        for each in found:
            run(maintenance.end_opened(each["id"]))
        return found

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


@contextlib.contextmanager
def world_of(machine: PrivateQueueManager) -> Iterator[World]:
    """A new account and the name of a new queue."""
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


def a_bulk_handle(world: World) -> Held:
    make_queue(world)
    caller = world.caller("rpcqm_bulk")
    opened = caller.call("R_BulkOpen", pQueueFormat=format_of(world.name), dwAccess=RECEIVE_ACCESS)

    def listed() -> int:
        found = caller.call("R_BulkList", phContext=opened.pphContext, After=0, cMost=0)
        return int(found.result)

    def ends() -> None:
        with pytest.raises((Fault, OSError)):
            listed()

    return ends, lambda: _assert(listed() == 0)


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


def waiting(world: World, caller: NetworkCaller, call: Any) -> Held:
    """A call that waits is answered with an error; its connection ends with its account."""

    def ends() -> None:
        caller.settle()
        try:
            status = status_name(call.result().result)
        except Fault as fault:
            status = str(fault)
        if world.by_operator:
            assert "CANCELLED" in status
            return
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
    return waiting(world, caller, reader.start(handle, timeout=INFINITE, cursor=cursor))


def a_remote_read(world: World) -> Held:
    make_queue(world)
    caller = world.caller("remoteread")
    reader = Reader(caller.caller)
    return waiting(world, caller, reader.start(reader.open(world.name), timeout=INFINITE))


def a_read(world: World) -> Held:
    make_queue(world)
    caller = world.caller("qmcomm", "qmcomm2")
    client = Client(caller.caller)
    _, context = client.open(world.name, RECEIVE_ACCESS)
    started = client.start_receive(context, receiving_buffer(timeout=INFINITE))
    return waiting(world, caller, started)


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
        assert told.result(PATIENCE).status in ((503,) if world.by_operator else (401, 403))

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


def an_objects_transaction(world: World) -> Held:
    """What was received in it is there again."""
    make_queue(world, "--transactional")
    world.machine.run("send", world.queue, "--transactional", "--body", "kept")
    objects = world.objects()
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    begun = Variant(VARENUM.VT_DISPATCH, objects.com.call(dispenser, "BeginTransaction"))
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS, rf".\private$\{world.queue}")
    assert objects.com.call(queue, "Receive", begun, None, None, number(0), None)
    assert world.is_locked()
    return lambda: until(lambda: not world.is_locked()), lambda: _assert(world.is_locked())


def a_key(world: World) -> Held:
    """Whoever asks again with what was proved before is told nothing, and sends nothing."""
    make_queue(world)
    first = send_under_key(world.program(), world)
    assert first.status == 201

    def ends() -> None:
        again = send_under_key(world.program(), world)
        assert again.status in (401, 403) or again.value != first.value

    def stays() -> None:
        assert send_under_key(world.program(), world).value == first.value
        assert how_many(world) == 1

    return ends, stays


def send_under_key(program: Program, world: World) -> Told:
    key = {"Idempotency-Key": "k"}
    return program.ask("POST", f"/queues/{world.queue}/messages", b"once", key)


def a_followed_page(world: World) -> Held:
    make_queue(world)
    browser = open_browser(world.machine)
    browser.log_on(world.user, FIRST)
    stream = world.stack.enter_context(browser.followed())
    assert stream.readline() == b": alive\n"

    def ends() -> None:
        assert b": alive\n" not in iter(stream.readline, b"")

    return ends, lambda: None


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
    "bulk handle": a_bulk_handle,
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
    "objects' transaction": an_objects_transaction,
    "key of a request": a_key,
    "followed page": a_followed_page,
}


def how_many(world: World) -> int:
    with world.client.open_reader(world.name, peek_only=True) as reader:
        return sum(1 for _ in reader.browse())
