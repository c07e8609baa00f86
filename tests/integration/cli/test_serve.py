"""`rpcqm serve`: start, doors, ready file, stop, and what can go wrong."""

import asyncio
import contextlib
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.names import format_name
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.ready import ReadyFile
from rpcqm.client.target import LocalServer
from rpcqm.testing import PrivateQueueManager, private_queue_manager

CONFIGURATION = "[storage]\nreserve = 1\n"
LOOPBACK = "127.0.0.1"


@pytest.fixture
def private(tmp_path: Path) -> Iterator[PrivateQueueManager]:
    """A queue manager of this test's own, which has not been started."""
    queue_manager = PrivateQueueManager(tmp_path / "data", configuration=CONFIGURATION)
    yield queue_manager
    queue_manager.stop()


def connects(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=10).close()
    except ConnectionRefusedError:
        return False
    return True


def serve(*options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a server that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "rpcqm", "serve", *options],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"RPCQM_BINARY_PORT": "-1"} | environment,
    )


def test_the_ready_file_tells_every_door_and_goes_away(private: PrivateQueueManager) -> None:
    private.start()
    content = json.loads(private.ready_path.read_text())
    assert private.process is not None
    assert content["pid"] == private.process.pid
    assert content["name"] == socket.gethostname().split(".")[0]
    assert uuid.UUID(content["id"])
    assert set(content["endpoints"]) == {"epm", "rpc", "qm2qm", "binary"}
    doors = [(host, port) for host, port in content["endpoints"].values()]
    assert all(connects(door) for door in doors)
    assert stat.S_IMODE(Path(content["socket"]).stat().st_mode) == 0o666
    assert private.stop() == 0
    assert not private.ready_path.exists()
    assert not Path(content["socket"]).exists()
    assert not any(connects(door) for door in doors)


def test_identity_and_recoverable_messages_survive_a_stop_and_a_crash(
    private: PrivateQueueManager,
) -> None:
    first = private.start().ready.id
    private.run("queue", "create", "orders")
    private.run("send", "orders", "--body", "kept")
    private.run("send", "orders", "--body", "lost", "--express", "--priority", "7")
    private.kill()
    crashed = private.run("peek", "orders", check=False)
    assert crashed.returncode == 3
    assert crashed.stderr.startswith("rpcqm: No queue manager can be reached at ")
    assert private.start().ready.id == first
    assert private.run("peek", "orders", "--all", "--format", "body").stdout == "kept"
    assert private.restart().ready.id == first
    assert private.run("receive", "orders", "--format", "body").stdout == "kept"


def test_a_negative_port_switches_a_door_off(private: PrivateQueueManager) -> None:
    with private_queue_manager(
        ["--epm-port", "-1", "--qm2qm-port", "-1", "--binary-port", "-1"], CONFIGURATION
    ) as queue_manager:
        assert set(queue_manager.ready.endpoints) == {"rpc"}
        queue_manager.run("queue", "list")


@pytest.mark.conformance("MQMP-rule-2.1", "MQQP-rule-2.1")
def test_without_a_port_the_next_free_one_is_taken(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # taken by somebody else is as good
            stack.enter_context(socket.create_server((LOOPBACK, 2103)))
        queue_manager = PrivateQueueManager(
            tmp_path / "data",
            configuration=CONFIGURATION,
            ports=("--epm-port", "0", "--binary-port", "0"),
        )
        stack.callback(queue_manager.stop)
        ports = {door: port for door, (_, port) in queue_manager.start().ready.endpoints.items()}
    assert ports["rpc"] > 2103
    assert (ports["rpc"] - 2103) % 11 == 0
    assert (ports["qm2qm"] - 2105) % 11 == 0


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        outcome = serve("--data-dir", str(tmp_path), "--epm-port", str(port), "--rpc-port", "0")
    assert outcome.returncode == 1
    assert outcome.stderr == (
        f"rpcqm: Port {port} of {LOOPBACK} is in use by another program; choose another one "
        "with --epm-port, or 0 for a free one.\n"
    )
    assert not (tmp_path / "rpcqm.json").exists()


def test_a_data_directory_in_use_is_one_sentence(private: PrivateQueueManager) -> None:
    private.start()
    outcome = serve("--data-dir", str(private.data_dir), "--epm-port", "0", "--rpc-port", "0")
    assert outcome.returncode == 1
    assert str(private.data_dir) in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    private.run("queue", "list")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--host", "203.0.113.7"], "choose an address with --host."),
        (["--host", "no.such.host.invalid"], "choose an address with --host."),
        (["--ready-file", "/nowhere/at/all/ready"], "Cannot write /nowhere/at/all/ready: No such"),
    ],
    ids=["foreign address", "unknown host", "ready file"],
)
def test_what_cannot_be_started_is_one_sentence(
    tmp_path: Path, options: list[str], sentence: str
) -> None:
    ports = ["--epm-port", "0", "--rpc-port", "0", "--qm2qm-port", "0"]
    outcome = serve("--data-dir", str(tmp_path), *ports, *options)
    assert outcome.returncode == 1
    assert sentence in outcome.stderr
    assert "(" not in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_data_directory_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        outcome = serve("--data-dir", str(path))
        assert outcome.returncode == 1
        assert str(path) in outcome.stderr
        assert "Errno" not in outcome.stderr
        assert outcome.stderr.count("\n") == 1


def test_a_wrong_configuration_is_explained(tmp_path: Path) -> None:
    (tmp_path / "rpcqm.toml").write_text("host = 1\n[securty]\n")
    outcome = serve("--config", str(tmp_path / "rpcqm.toml"))
    assert outcome.returncode == 2
    assert f"{tmp_path}/rpcqm.toml:1: `host` is a text, not 1." in outcome.stderr
    assert "did you mean `security`?" in outcome.stderr


@pytest.mark.parametrize(
    ("setting", "content", "sentence"),
    [
        ("signing_key", None, "Cannot read {}: No such file or directory."),
        ("signing_key", "no key", "{} holds no RSA key in PEM form that needs no password."),
        ("signing_certificate", "junk", "{} holds no certificate in PEM form."),
    ],
)
def test_a_key_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, setting: str, content: str | None, sentence: str
) -> None:
    key, config = tmp_path / "key.pem", tmp_path / "rpcqm.toml"
    if content is not None:
        key.write_text(content)
        key.chmod(0o600)
    config.write_text(f'[binary]\n{setting} = "{key}"\n')
    outcome = serve("--config", str(config), "--data-dir", str(tmp_path / "data"))
    assert outcome.returncode == 1
    assert sentence.format(key) in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_long_path_puts_the_socket_into_a_directory_of_its_own(tmp_path: Path) -> None:
    data_dir = tmp_path / ("d" * 100) / "data"
    with private_queue_manager(configuration=CONFIGURATION, data_dir=data_dir) as queue_manager:
        path = queue_manager.socket
        assert len(os.fsencode(path)) <= 107
        assert data_dir not in path.parents
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o711
        queue_manager.run("queue", "create", "orders")
    assert not path.parent.exists()


def test_a_service_has_its_socket_in_the_runtime_directory(tmp_path: Path) -> None:
    environment = {"RUNTIME_DIRECTORY": str(tmp_path)}
    with private_queue_manager((), CONFIGURATION, environment) as queue_manager:
        assert queue_manager.socket == tmp_path / "rpcqm.sock"
        queue_manager.run("queue", "create", "orders")
    assert not (tmp_path / "rpcqm.sock").exists()


def test_the_service_manager_is_told(tmp_path: Path) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(30)
        environment = {"NOTIFY_SOCKET": str(address)}
        with private_queue_manager((), CONFIGURATION, environment):
            assert manager.recv(100) == b"READY=1"
        assert manager.recv(100) == b"STOPPING=1"


def test_the_watchdog_gets_signs_of_life(tmp_path: Path) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(30)
        environment = {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "300000"}
        with private_queue_manager((), CONFIGURATION, environment):
            heard = [manager.recv(100) for _ in range(4)]
        assert heard.count(b"WATCHDOG=1") == 3


def test_a_reload_takes_over_settings_and_drops_nobody(tmp_path: Path) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(30)
        with private_queue_manager((), CONFIGURATION, {"NOTIFY_SOCKET": str(address)}) as private:
            assert manager.recv(100) == b"READY=1"
            private.run("queue", "create", "orders")
            message = asyncio.run(_receive_across_a_reload(private))
            assert manager.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert manager.recv(100) == b"READY=1\nSTATUS=Reloaded"
    assert message == "woken"


async def _receive_across_a_reload(private: PrivateQueueManager) -> str | None:
    """The message that a receive gets which began before the reload."""
    async with (
        QueueManagerClient(LocalServer(private.socket)) as client,
        client.open_reader(format_name("orders")) as reader,
    ):
        waiting = asyncio.ensure_future(reader.receive())
        await reader.create_cursor()  # answered after the wait has begun
        said = await asyncio.to_thread(
            private.reload, CONFIGURATION + "[security]\nsupporting_server = true\n"
        )
        assert '"changed": ["security.supporting_server"]' in said
        assert '"waiting_for_restart": []' in said
        await asyncio.to_thread(private.run, "send", "orders", "--body", "woken")
        async with await waiting as message:
            return message.text


def test_a_reload_takes_effect(private: PrivateQueueManager) -> None:
    private.start()
    host, port = private.endpoint("epm")
    logged_on = ("--server", f"{host}:{port}", "--user", "alice", "--password-stdin")
    create = ("queue", "create", "orders", *logged_on)
    private.run("user", "add", "alice", "--password-stdin", input="Secret-1\n")
    refused = private.run(*create, check=False, input="Secret-1\n")
    assert "dependent clients" in refused.stderr
    private.reload(CONFIGURATION + "[security]\nsupporting_server = true\n")
    private.run(*create, input="Secret-1\n")


def test_a_wrong_configuration_is_not_taken_over(private: PrivateQueueManager) -> None:
    private.start()
    said = private.reload("epm_prot = 1\n")
    assert "there is no setting `epm_prot`" in said
    private.run("queue", "list")


def test_each_refused_call_is_one_line_of_the_log(private: PrivateQueueManager) -> None:
    private.start()
    private.run("queue", "create", "orders")
    private.run("receive", "orders", check=False)  # an empty queue is no refusal
    private.run("queue", "create", "orders", check=False)
    private.run("queue", "delete", "elsewhere", check=False)
    host, port = private.endpoint("epm")
    private.run("peek", "orders", "--server", f"{host}:{port}", check=False)
    lines = [json.loads(line) for line in private.log.splitlines()]
    refused = [line for line in lines if line["event"] == "a call was refused"]
    assert [(line["operation"], line["status"]) for line in refused] == [
        ("R_QMCreateObjectInternal", "MQ_ERROR_QUEUE_EXISTS"),
        ("R_QMDeleteObject", "MQ_ERROR_QUEUE_NOT_FOUND"),
        ("R_OpenQueue", "RPC_S_ACCESS_DENIED"),
    ]
    assert refused[-1]["peer"].startswith(host)
    assert refused[-1]["identity"] == "ANONYMOUS LOGON"
    levels = [line["authentication_level"].removeprefix("RPC_C_AUTHN_LEVEL_") for line in refused]
    assert levels == ["PKT_PRIVACY", "PKT_PRIVACY", "NONE"]


def test_what_waits_for_a_restart_is_named(private: PrivateQueueManager) -> None:
    private.start()
    said = private.reload('name = "elsewhere"\n' + CONFIGURATION)
    assert '"waiting_for_restart": ["name"]' in said


def test_a_write_of_unknown_outcome_ends_the_process_unanswered(
    private: PrivateQueueManager,
) -> None:
    private.start()
    private.run("queue", "create", "orders")
    kept = private.run("send", "orders", "--body", "kept").stdout
    assert private.process is not None
    resource.prlimit(private.process.pid, resource.RLIMIT_FSIZE, (1024, 1024))
    lost = private.run("send", "orders", "--body", "x" * 5000, "--count", "50", check=False)
    assert (lost.returncode, lost.stdout) == (3, "")
    assert lost.stderr.endswith("was lost.\n")
    assert private.process.wait(30) == 74
    private.process = None
    private.start()
    (line,) = private.run("peek", "orders", "--all", "--format", "json").stdout.splitlines()
    assert json.loads(line)["id"] == kept.strip()


def test_an_ipv6_address_can_be_listened_on() -> None:
    with private_queue_manager(["--host", "::1"], CONFIGURATION) as queue_manager:
        host, port = queue_manager.endpoint("rpc")
        assert host == "::1"
        assert connects((host, port))


def test_a_stop_answers_who_waits(private: PrivateQueueManager) -> None:
    private.start()
    private.run("queue", "create", "orders")

    async def wait_while_it_stops() -> MQError:
        async with (
            QueueManagerClient(LocalServer(private.socket)) as client,
            client.open_reader(format_name("orders")) as reader,
        ):
            waiting = asyncio.ensure_future(reader.receive())
            await reader.create_cursor()  # answered after the wait has begun
            stopping = asyncio.ensure_future(asyncio.to_thread(private.stop))
            with pytest.raises(MQError) as caught:
                await waiting
            assert await stopping == 0
        return caught.value

    refusal = asyncio.run(wait_while_it_stops())
    assert refusal.status is HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE


def test_the_data_directory_lets_others_through_to_the_socket_only(
    private: PrivateQueueManager,
) -> None:
    private.start()
    assert stat.S_IMODE(private.data_dir.stat().st_mode) == 0o711
    for entry in private.data_dir.iterdir():
        others = stat.S_IMODE(entry.stat().st_mode) & 0o077
        assert others == {"rpcqm.json": 0o044, "rpcqm.sock": 0o066}.get(entry.name, 0), entry


def test_the_commands_read_the_written_endpoints(private: PrivateQueueManager) -> None:
    private.start()
    assert ReadyFile.read(private.data_dir / "rpcqm.json") == private.ready


def test_a_healthy_data_directory_is_well(private: PrivateQueueManager) -> None:
    private.start()
    private.run("queue", "create", "orders")
    private.run("send", "orders", "--body", "x", "--count", "10")
    in_use = private.run("fsck", str(private.data_dir), check=False)
    assert in_use.returncode == 1
    assert in_use.stderr.count("\n") == 1
    private.stop()
    checked = private.run("fsck", str(private.data_dir))
    assert checked.stdout == f"{private.data_dir} is well.\n"


def test_a_damaged_data_directory_is_told(private: PrivateQueueManager) -> None:
    private.start()
    private.run("queue", "create", "orders")
    private.run("send", "orders", "--body", "x" * 10_000, "--count", "50")
    private.restart()
    private.stop()
    for table in (private.data_dir / "messages").glob("*.sst"):
        content = bytearray(table.read_bytes())
        content[len(content) // 3] ^= 0xFF
        table.write_bytes(content)
    checked = private.run("fsck", str(private.data_dir), check=False)
    assert checked.returncode == 1
    assert "Traceback" not in checked.stderr


def test_fsck_of_what_is_no_data_directory_is_one_sentence(
    private: PrivateQueueManager, tmp_path: Path
) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        outcome = private.run("fsck", str(path), check=False)
        assert outcome.returncode == 1
        assert outcome.stderr.count("\n") == 1
