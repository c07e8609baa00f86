"""Wireshark's dissectors read a capture of our server's traffic."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rpcqm.codec.interface import load
from tests.support.accounts import PASSWORD
from tests.support.network.namespace import Namespace
from tests.support.served import ServedQueueManager
from tests.support.waiting import PATIENCE

PROGRAMS = ("tshark", "dumpcap")
SCRIPTS = Path(sys.executable).parent
CLIENT = Path(__file__).parent / "get_server_port.py"
MALFORMED = "_ws.malformed || _ws.expert.severity == error"
NONE, CONNECT, PACKET, INTEGRITY, PRIVACY = 1, 2, 4, 5, 6

Tshark = Callable[..., list[str]]


@contextmanager
def capturing(namespace: Namespace, path: Path) -> Iterator[None]:
    """Capture the namespace's loopback to a file while the block lasts."""
    dumpcap = namespace.start(
        ["dumpcap", "-q", "-i", "lo", "-w", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert dumpcap.stdout is not None
    for line in dumpcap.stdout:
        if line.startswith("File:"):
            break
    try:
        yield
        await_last_packet(namespace, path)
    finally:
        dumpcap.send_signal(signal.SIGINT)
        dumpcap.communicate(timeout=60)


def await_last_packet(namespace: Namespace, path: Path) -> None:
    """Send datagrams until one is in the file: all that went before is there too."""
    end = time.monotonic() + PATIENCE
    while b"the last packet" not in path.read_bytes():
        assert time.monotonic() < end, "dumpcap writes nothing"
        namespace.run(["bash", "-c", "echo the last packet > /dev/udp/127.0.0.1/9"])
        time.sleep(0.05)


@pytest.fixture(scope="module")
def answers(server: ServedQueueManager) -> dict[int, bytes]:
    """What impacket got back from R_GetServerPort, and a capture beside the server's files."""
    capture = server.directory / "capture.pcapng"
    with capturing(server.namespace, capture):
        done = server.namespace.run(
            [sys.executable, CLIENT, server.rpc_port, "alice", PASSWORD], check=True
        )
        server.namespace.run([sys.executable, SCRIPTS / "rpcdump.py", "127.0.0.1"], check=True)
    return {
        int(level): bytes.fromhex(stub)
        for level, stub in (line.split() for line in done.stdout.splitlines())
    }


@pytest.fixture(scope="module")
def tshark(server: ServedQueueManager, answers: dict[int, bytes]) -> Tshark:
    """The lines that tshark prints for the packets of a filter, with the fields asked for."""

    def run(display_filter: str, *fields: str) -> list[str]:
        command = ["tshark", "-r", str(server.directory / "capture.pcapng"), "-Y", display_filter]
        command += ["-o", f"ntlmssp.nt_password:{PASSWORD}"]
        command += ["-d", f"tcp.port=={server.rpc_port},dcerpc"]
        if fields:
            command += ["-T", "fields", *(part for field in fields for part in ("-e", field))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return run


def test_nothing_that_we_sent_is_malformed(tshark: Tshark, server: ServedQueueManager) -> None:
    ours = f"tcp.srcport in {{135, {server.rpc_port}}}"
    assert tshark(f"dcerpc && {ours}") != []
    assert tshark(f"({MALFORMED}) && {ours}") == []


def test_every_request_has_its_response(tshark: Tshark, server: ServedQueueManager) -> None:
    requests = tshark("dcerpc.pkt_type == 0", "frame.number")
    responses = tshark("dcerpc.pkt_type == 2", "dcerpc.request_in")
    assert requests == [frames.split(",")[0] for frames in responses]


def test_towers_are_read(tshark: Tshark, server: ServedQueueManager) -> None:
    entries = tshark("epm.opnum == 2 && tcp.srcport == 135", "epm.uuid", "epm.proto.tcp_port")
    told = "\n".join(entries)
    assert str(load("remoteread").uuid) in told
    assert str(server.rpc_port) in told


def test_handshakes_are_read(tshark: Tshark) -> None:
    challenges = tshark("ntlmssp.messagetype == 2 && dcerpc.pkt_type == 12", "dcerpc.auth_level")
    assert [int(level) for level in challenges] == [CONNECT, PACKET, INTEGRITY, PRIVACY]


def test_plain_answers_are_read(tshark: Tshark, answers: dict[int, bytes]) -> None:
    stubs = tshark("dcerpc.pkt_type == 2 && !epm && dcerpc.stub_data", "dcerpc.stub_data")
    plain = [answers[level].hex() for level in (NONE, CONNECT, PACKET, INTEGRITY)]
    assert stubs == plain


def test_a_sealed_answer_is_unsealed_with_the_password(
    tshark: Tshark, answers: dict[int, bytes], server: ServedQueueManager
) -> None:
    opened = tshark("dcerpc.pkt_type == 2", "dcerpc.decrypted_stub_data")
    assert answers[PRIVACY].hex() in opened
    assert int.from_bytes(answers[PRIVACY], "little") == server.rpc_port
