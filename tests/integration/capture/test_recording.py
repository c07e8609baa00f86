"""`rpcqm serve --capture` records what is served, as it would be in clear."""

import asyncio
import subprocess
import sys
from pathlib import Path

from rpcqm.capture.analysis import calls_of
from rpcqm.capture.call import Call
from rpcqm.cli.main import main
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import RemoteServer
from rpcqm.codec.format_name import FormatName
from rpcqm.rpc.ntlm import NtlmCredentials
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD

QUEUE = FormatName.parse("DIRECT=TCP:127.0.0.1\\private$\\recorded")


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
        made.run("send", "recorded", "--body", body)
        assert asyncio.run(read(made)) == body.encode()
        assert "recorded, unsealed" in made.log
    found, problems = calls_of(path)
    assert problems.total == 0
    assert not any(call.sealed for call in found)
    names = [(call.interface_name, call.name, call.status_name) for call in found]
    assert ("RemoteRead", "R_StartReceive", "MQ_OK") in names
    assert names[0] == ("ept", "ept_map", "rpc_s_ok")
    reading = next(call for call in found if call.name == "R_StartReceive")
    assert isinstance(reading, Call)
    assert (reading.conversation.level, reading.conversation.account) == (6, "alice")
    sections = reading.decoded_response().ppPacketSections
    assert body.encode() in sections[0].pSectionBuffer
    assert main(["capture", "replay", str(path), "--in-process", "--account", "alice:x"]) == 0


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    words = ["serve", "--data-dir", str(tmp_path / "d"), "--capture", str(tmp_path / "no" / "x")]
    command = [sys.executable, "-m", "rpcqm", *words, "--epm-port", "0", "--rpc-port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "cannot be written: No such file or directory." in done.stderr
