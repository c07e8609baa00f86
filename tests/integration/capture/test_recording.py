"""`rpcqm serve --capture` records what is served, as it would be in clear."""

import asyncio
import json
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.cli.main import main
from rpcqm.client.passwords import nt_hash
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import RemoteServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.capture.analysed import calls_of

QUEUE = FormatName.parse("DIRECT=TCP:127.0.0.1\\private$\\recorded")

ORDERS = FormatName.parse("DIRECT=OS:.\\private$\\orders")

MANY = 10


async def read(made: PrivateQueueManager) -> bytes:
    """The body of a message, read over TCP with PKT_PRIVACY."""
    host, port = made.endpoint("epm")
    credentials = NtlmCredentials("alice", PASSWORD)
    target = RemoteServer(host, port, credentials)
    async with QueueManagerClient(target) as client, client.open_reader(QUEUE) as reader:
        message = await reader.peek(1000)
        return message.body


def test_sealed_traffic_is_recorded_in_clear(tmp_path: Path) -> None:
    path = tmp_path / "served.pcapng"
    body = "a body " * 2000
    with private_queue_manager(["--capture", str(path)]) as made:
        words = ("user", "add", "alice", "--password-stdin", "--group", "administrators")
        made.run(*words, input=PASSWORD + "\n")
        made.run("queue", "create", "recorded")
        made.run("send", "recorded", input=body)
        assert asyncio.run(read(made)) == body.encode()
        assert "recorded, unsealed" in made.log
    found, problems = calls_of(path)
    assert problems.total == 0
    assert not any(call.sealed for call in found)
    names = [(call.interface_name, call.name, call.status_name) for call in found]
    assert ("RemoteRead", "R_StartReceive", "MQ_OK") in names
    assert ("ept", "ept_map", "rpc_s_ok") in names
    reading = next(call for call in found if call.name == "R_StartReceive")
    assert isinstance(reading, CapturedCall)
    assert (reading.conversation.level, reading.conversation.account) == (6, "alice")
    sections = reading.decoded_response().ppPacketSections
    assert body.encode() in sections[0].pSectionBuffer
    assert main(["capture", "replay", str(path), "--in-process"]) == 0


def test_every_door_is_recorded_and_plays_again(tmp_path: Path) -> None:
    """Local commands, and messages of another queue manager, which a local reader then takes."""
    path, result = tmp_path / "served.pcapng", tmp_path / "result.json"
    with private_queue_manager(["--capture", str(path)]) as made:
        made.run("queue", "create", "orders")
        made.run("user", "add", "alice", "--password-stdin", input=PASSWORD + "\n")
        peers = f'[binary]\npeers = "there=127.0.0.1:{made.endpoint("binary")[1]}"\n'
        with private_queue_manager(configuration=peers) as other, made.client() as reading:
            to = r"DIRECT=OS:there\private$\orders"
            other.run("send", to, "--count", "2", input="from elsewhere")
            with reading.open_reader(ORDERS) as reader:
                for _ in range(2):
                    with reader.receive(20_000) as message:
                        assert message.body == b"from elsewhere"
    octets = path.read_bytes()
    assert nt_hash(PASSWORD) not in octets
    found, problems = calls_of(path)
    assert problems.total == 0
    servers = {call.conversation.server for call in found if call.protocol == "ncacn_ip_tcp"}
    assert servers == {"127.200.0.1:1"}
    names = Counter(call.name for call in found)
    assert (names["UserMessage"], names["R_QMCreateObjectInternal"], names["R_AddAccount"]) == (
        *(2, 1, 1),
    )
    assert main(["capture", "replay", str(path), "--in-process", "--json", str(result)]) == 0
    told = json.loads(result.read_text("utf-8"))
    skipped = [each["name"] for each in told["results"] if each["verdict"] != "same"]
    assert skipped == ["R_AddAccount"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    words = ["serve", "--data-dir", str(tmp_path / "d"), "--capture", str(tmp_path / "no" / "x")]
    command = [sys.executable, "-m", "rpcqm", *words, "--epm-port", "0", "--rpc-port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "cannot be written: No such file or directory." in done.stderr


def test_a_full_disk_ends_the_recording_and_nothing_else(tmp_path: Path) -> None:
    path, unlimited = tmp_path / "served.pcapng", (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with private_queue_manager(["--capture", str(path)]) as made:
        for number in range(MANY):  # more than the log has, for which the limit holds too
            made.run("queue", "create", f"orders-{number}")
        assert made.process is not None
        pid, room = made.process.pid, path.stat().st_size
        # A file that is larger than allowed fails as one on a full disk does.
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        for _ in range(2):
            made.run("queue", "list")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
        made.run("queue", "list")
        assert made.log.count("nothing more is recorded") == 1
    found, _ = calls_of(path)
    assert [call.name for call in found] == ["R_QMCreateObjectInternal"] * MANY
