"""tshark with the dissector that `rpcqm capture dissector` writes."""

import itertools
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.dissector import dissector
from rpcqm.capture.unsealing.accounts import parse_account
from tests.support.accounts import PASSWORD
from tests.support.capture.analysed import calls_of
from tests.support.capture.captures import CLIENT, SERVER, ethernet, ipv4, pcap, tcp
from tests.support.codec.packets import user_message
from tests.support.rpc.every_method import interfaces, write_every_method

WAYS = ("request", "response")
CAPTURES = Path(__file__).parents[1] / "vectors" / "captures"


@pytest.fixture(scope="module")
def tshark(
    require: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., list[list[str]]]:
    """The fields that tshark prints for the packets of a filter."""
    require("tshark")
    script = tmp_path_factory.mktemp("lua") / "rpcqm.lua"
    script.write_text(dissector(), "utf-8")

    def run(capture: Path, display_filter: str, *fields: str) -> list[list[str]]:
        command = ["tshark", "-r", str(capture), "-X", f"lua_script:{script}", "-Y", display_filter]
        command += ["-o", f"ntlmssp.nt_password:{PASSWORD}", "-d", "tcp.port==2103,dcerpc"]
        command += ["-T", "fields", *(part for field in fields for part in ("-e", field))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "Lua" not in done.stderr, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    return run


def expected(capture: Path) -> Counter[tuple[str, str, str]]:
    """What our own reader says of the same capture, as the dissector's fields."""
    found: Counter[tuple[str, str, str]] = Counter()
    for call in calls_of(capture, [parse_account(f"alice:{PASSWORD}")])[0]:
        assert isinstance(call, CapturedCall)
        if call.interface_name != "ept":
            found[call.interface_name, call.name, "request"] += 1
            result = getattr(call.operation and call.operation.declaration.result, "name", "")
            status = call.status_name if result == "long" else ""
            if call.fault is None:
                found[call.interface_name, call.name, status or "response"] += 1
    return found


@pytest.mark.parametrize(
    "name", ["impacket-none", "impacket-integrity", "wine-none", "wine-packet", "wine-privacy"]
)
def test_tshark_tells_the_calls_that_we_tell(
    tshark: Callable[..., list[list[str]]], name: str
) -> None:
    capture = CAPTURES / f"{name}.pcapng"
    fields = ("interface", "method", "direction", "status_name", "damaged")
    told: Counter[tuple[str, str, str]] = Counter()
    for row in tshark(capture, "rpcqm && !epm", *(f"rpcqm.{field}" for field in fields)):
        interface, method, direction, status, damaged = row
        assert damaged == ""
        told[interface, method, status or direction] += 1
    assert told == expected(capture)


def test_tshark_reads_every_method_of_every_interface(
    tshark: Callable[..., list[list[str]]], tmp_path: Path
) -> None:
    """In NDR and in NDR64, with values that exercise what their types can hold."""
    path = tmp_path / "every.pcapng"
    calls = write_every_method(path)
    assert calls == 2 * sum(len(list(filter(None, each.operations))) for each in interfaces())
    fields = ("interface", "method", "direction", "status_name", "damaged")
    told: Counter[tuple[str, str, str]] = Counter()
    for row in tshark(path, "rpcqm", *(f"rpcqm.{field}" for field in fields)):
        interface, method, direction, _, damaged = row
        assert damaged == "", (interface, method, direction)
        told[interface, method, direction] += 1
    found, problems = calls_of(path)
    assert problems.total == 0
    ours = [(call.interface_name, call.name, way) for call in found for way in WAYS]
    assert told == Counter(ours)


def test_fields_are_named_and_read(tshark: Callable[..., list[list[str]]]) -> None:
    rows = tshark(
        CAPTURES / "impacket-none.pcapng",
        'rpcqm.method == "R_OpenQueue" && rpcqm.direction == "request"',
        "rpcqm.field",
    )
    assert "dwAccess = 1," in rows[1][0]
    assert '= "TCP:127.0.0.1\\' in rows[1][0]
    assert 'impacket-1",' in rows[1][0]


def test_the_binary_protocol_is_read(
    tshark: Callable[..., list[list[str]]], tmp_path: Path
) -> None:
    packet = user_message(label="by binary")
    stream = packet + packet
    target = (SERVER[0], 1801)
    cuts = (0, 100, len(packet) + 50, len(stream))
    frames = [
        ethernet(ipv4(CLIENT[0], SERVER[0], tcp(CLIENT, target, 100 + a, stream[a:b])))
        for a, b in itertools.pairwise(cuts)
    ]
    path = tmp_path / "binary.pcap"
    path.write_bytes(pcap(frames))
    rows = tshark(path, "rpcqm_mqqb", "rpcqm_mqqb.packet", "rpcqm_mqqb.label")
    assert rows == [["UserMessage", "by binary"], ["UserMessage", "by binary"]]
