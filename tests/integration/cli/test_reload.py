"""What a running queue manager takes over on SIGHUP, and that it drops nobody."""

import asyncio
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from rpcqm.base.errors import RpcFault
from rpcqm.client.names import format_name
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import RemoteServer
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.service.reload import FIXED
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.qm.directories import DIRECTORY, WORKSTATION, write_directory

Command = Callable[..., Any]

BASE = 'name = "WORKSTATION"\n[storage]\nreserve = 1\n'
SWITCHED = """\
[security]
ntlm = false
debug_rpc = true
[limits]
calls = 7
handles = 3
idle_seconds = 600
[storage]
reserve = 2
express_memory = 3
trail_days = 2
quota = 4096
[logging]
level = "debug"
[binary]
peers = "other=127.0.0.1:1"
"""
NEW_QUEUE = """\
[[queue]]
path = 'WORKSTATION\\new'
identifier = "5d1f8a2e-4c3b-4a19-8e7d-6f5c4b3a2900"
"""


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    """In place of the one of the other tests."""
    with private_queue_manager(configuration=BASE) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        added = ("user", "add", "ops", "--group", "administrators", "--password-stdin")
        queue_manager.run(*added, input="secret\n")
        yield queue_manager


@pytest.fixture
def reload(queue_manager: PrivateQueueManager) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Have a configuration taken over, until the test ends; what the log says of it."""

    def reload(text: str) -> dict[str, Any]:
        lines = map(json.loads, queue_manager.reload(text).splitlines())
        (said,) = (line for line in lines if "reloaded" in line["event"])
        return dict(said)

    yield reload
    reload(BASE)


@pytest.fixture
def directory() -> Iterator[Path]:
    with TemporaryDirectory(prefix="rpcqm-reload-") as directory:
        yield Path(directory)


def ops(queue_manager: PrivateQueueManager, password: str = "secret") -> RemoteServer:
    host, port = queue_manager.endpoint("epm")
    return RemoteServer(host, port, NtlmCredentials("ops", password))


def logs_on(queue_manager: PrivateQueueManager, password: str = "secret") -> bool:
    async def attempt() -> bool:
        async with QueueManagerClient(ops(queue_manager, password)) as client:
            try:
                await client.management.private_queues()
            except RpcFault:
                return False
            return True

    return asyncio.run(attempt())


def test_everything_is_taken_over_and_a_live_connection_goes_on(
    queue_manager: PrivateQueueManager, reload: Command, run: Command
) -> None:
    async def receive_across_the_reload() -> str | None:
        async with (
            QueueManagerClient(ops(queue_manager)) as client,
            client.open_reader(format_name("orders", "127.0.0.1")) as reader,
        ):
            waiting = asyncio.ensure_future(reader.receive())
            await reader.create_cursor()  # answered after the wait has begun
            said = await asyncio.to_thread(reload, 'name = "WORKSTATION"\n' + SWITCHED)
            keys = re.findall(r"(?m)^(\w+) =", SWITCHED)
            assert sorted(key.split(".")[1] for key in said["changed"]) == sorted(keys)
            assert said["waiting_for_restart"] == []
            assert not await asyncio.to_thread(logs_on, queue_manager)  # who comes now is refused
            await asyncio.to_thread(run, "send", "orders", "--body", "woken")
            async with await waiting as message:
                return message.text

    assert asyncio.run(receive_across_the_reload()) == "woken"
    reload(BASE)
    assert logs_on(queue_manager)


def test_handles_are_limited_for_clients_that_come_afterwards(
    queue_manager: PrivateQueueManager, reload: Command
) -> None:
    async def opened(client: QueueManagerClient, many: int) -> int:
        readers = [client.open_reader(format_name("orders", "127.0.0.1")) for _ in range(many)]
        opened = 0
        for reader in readers:
            try:
                await reader.__aenter__()
            except RpcFault:
                break
            opened += 1
        return opened

    async def before_and_afterwards() -> tuple[int, int]:
        async with QueueManagerClient(ops(queue_manager)) as before:
            assert await opened(before, 1) == 1
            await asyncio.to_thread(reload, BASE + "[limits]\nhandles = 3\n")
            async with QueueManagerClient(ops(queue_manager)) as after:
                return await opened(before, 5), await opened(after, 5)

    assert asyncio.run(before_and_afterwards()) == (5, 3)


def test_the_disk_reserve_holds_at_once(reload: Command, run: Command, refused: Command) -> None:
    said = reload('name = "WORKSTATION"\n[storage]\nreserve = 1000000000\n')
    assert said["changed"] == ["storage.reserve"]
    assert "(MQ_ERROR_INSUFFICIENT_RESOURCES)" in refused("send", "orders", "--body", "x").errors
    reload(BASE)
    run("send", "orders", "--body", "x")


def test_a_directory_is_taken_over_and_followed(
    queue_manager: PrivateQueueManager, reload: Command, run: Command, directory: Path
) -> None:
    known = DIRECTORY.replace(str(WORKSTATION), str(queue_manager.ready.id))
    path = write_directory(directory, known)
    configuration = f'directory_file = "{path}"\n{BASE}'
    assert reload(configuration)["changed"] == ["directory_file"]
    assert r"WORKSTATION\reports" in run("queue", "list").text
    path.write_text(known + NEW_QUEUE)
    assert reload(configuration)["changed"] == ["directory_file"]
    assert r"WORKSTATION\new" in run("queue", "list").text
    assert reload(configuration)["changed"] == []
    assert reload(BASE)["waiting_for_restart"] == ["directory_file"]
    assert r"SERVER\orders" in run("queue", "list", "--directory").text


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ('directory_file = "{directory}/none.toml"\n', "none.toml: cannot be read"),
        ('[binary]\nsigning_key = "{directory}/none.pem"\n', "none.pem: No such file"),
        ('[binary]\npeers = "other=127.0.0.1:x"\n', "binary: 'x' is not a port"),
        ('[security]\nkeytab = "{directory}/none"\n', "security.keytab: the keys in "),
        ('[remote]\ncredentials_file = "{directory}/none"\n', "none: cannot be read"),
    ],
)
def test_one_file_that_is_wrong_and_nothing_is_taken_over(
    reload: Command,
    run: Command,
    queue_manager: PrivateQueueManager,
    directory: Path,
    wrong: str,
    why: str,
) -> None:
    wrong = wrong.format(directory=directory)
    top, tables = (wrong, "") if wrong.startswith("directory") else ("", wrong)
    good = '[storage]\nreserve = 1000000000\n[logging]\nlevel = "error"\n'
    said = reload(f'name = "WORKSTATION"\n{top}{good}{tables}')
    assert said["event"] == "not reloaded"
    assert why in said["mistakes"][0]
    run("send", "orders", "--body", "x")  # the reserve is as it was, and so is the log's level
    queue_manager.reload(BASE)
    assert json.loads(queue_manager.log.splitlines()[-1])["event"] == "reloaded"


def test_passwords_that_were_written_by_hand_are_kept(
    queue_manager: PrivateQueueManager,
    reload: Command,
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accounts = queue_manager.data_dir / "accounts"
    good = accounts.read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO("other\n"))
    run("user", "password", "ops", "--password-stdin")
    accounts.write_text(good)
    reload(BASE)
    monkeypatch.setattr("sys.stdin", io.StringIO("more\n"))
    run("user", "add", "more", "--password-stdin")  # writes the file anew
    assert good in accounts.read_text()
    assert logs_on(queue_manager)


def test_peers_are_found_where_they_are_now(reload: Command, run: Command) -> None:
    with private_queue_manager(configuration='name = "OTHER"\n[storage]\nreserve = 1\n') as other:
        other.run("queue", "create", "inbox")
        host, port = other.endpoint("binary")
        said = reload(f'{BASE}[binary]\npeers = "other={host}:{port}"\n')
        assert said["changed"] == ["binary.peers"]
        run("send", r"DIRECT=OS:other\private$\inbox", "--body", "x")
        received = other.run("receive", "inbox", "--timeout", "20000", "--format", "body")
        assert received.stdout == "x"


def test_what_it_listens_on_waits_for_the_next_start(reload: Command) -> None:
    said = reload('name = "ELSEWHERE"\nhost = "127.0.0.2"\n[storage]\nreserve = 1\n')
    assert {"host", "name"} <= set(said["waiting_for_restart"]) & set(FIXED)
    assert said["changed"] == []


def test_a_door_that_was_kept_closed_waits_for_the_next_start() -> None:
    with private_queue_manager(configuration=BASE + "[security]\nhardened_security = true\n") as mq:
        assert "binary" not in mq.ready.endpoints
        said = mq.reload(BASE)
        assert '"changed": ["security.hardened_security"]' in said
        assert '"waiting_for_restart": ["binary_port"]' in said


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ("quota = 4096", 1024),
        ("quota = 3", 1),
        ("queue_quota = 77", 77),
        ("queue_quota = 4294967295", None),
    ],
)
def test_new_queues_have_the_quota_of_the_configuration_and_others_keep_theirs(
    queue_manager: PrivateQueueManager,
    reload: Callable[[str], dict[str, Any]],
    storage: str,
    expected: int | None,
) -> None:
    def quota(queue: str) -> int | None:
        shown = queue_manager.run("queue", "show", queue, "--json").stdout
        value: int | None = json.loads(shown)["quota"]
        return value

    reload(BASE + storage + "\n")
    name = f"bounded-{expected}"
    queue_manager.run("queue", "create", name)
    assert (quota(name), quota("orders")) == (expected, 262_144)
