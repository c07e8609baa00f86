"""Wireshark counts the calls of every kind of frame and file as we do, by interface and opnum."""

import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rpcqm.codec.interface import TransferSyntax
from tests.support.capture.analysed import calls_of
from tests.support.capture.captures import TIME, enhanced, pcapng_head
from tests.support.capture.traffic import Client
from tests.support.capture.tshark import NOT_BY_TSHARK, by_tshark, by_us
from tests.support.capture.tunnels import LINKS, WRAPS, Wrap, broken

Make = Callable[[list[bytes]], list[list[bytes]]]


def connection(number: int) -> list[bytes]:
    """A whole connection of a client of its own, as Ethernet frames."""
    client = Client(random.Random(number), number, TransferSyntax.NDR, False)
    client.begin(whole=True)
    client.open()
    client.answer()
    client.speak(5)
    client.leave()
    return client.frames


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A capture with a connection in each kind of frame, and the client's port of each."""
    links = [1, *dict.fromkeys(link for link, _ in LINKS.values())]
    octets, ports = pcapng_head(links), dict[str, str]()
    time = TIME
    for number, (kind, (interface, groups)) in enumerate(_kinds(links).items()):
        ports[str(50000 + number)] = kind
        for frame in [frame for group in groups(connection(number)) for frame in group]:
            time += 1_000_000
            octets += enhanced(frame, time, interface)
    path = tmp_path_factory.mktemp("frames") / "frames.pcapng"
    path.write_bytes(octets)
    return path, ports


def _each(wrap: Wrap) -> Make:
    return lambda frames: [[wrap(frame[14:])] for frame in frames]


def _fragments(outside: bool) -> Make:
    return lambda frames: broken(frames, 96, outside, random.Random(1))


def _kinds(links: Sequence[int]) -> dict[str, tuple[int, Make]]:
    """The interface of each kind of frame, and what makes such frames."""
    kinds = {name: (0, _each(wrap)) for name, wrap in WRAPS.items()}
    kinds |= {name: (links.index(link), _each(wrap)) for name, (link, wrap) in LINKS.items()}
    kinds["fragments inside"] = 0, _fragments(False)
    kinds["fragments outside"] = 0, _fragments(True)
    return kinds


def test_calls_of_every_kind_of_frame_are_those_that_tshark_counts(
    captures: tuple[Path, dict[str, str]],
) -> None:
    path, ports = captures
    ours, theirs = by_us(path), by_tshark(path)
    unread = {port for port, kind in ports.items() if kind in NOT_BY_TSHARK}
    assert {port for port, _, _ in ours} == set(ports)
    wrong = []
    for port, kind in ports.items():
        mine = {key[1:]: n for key, n in ours.items() if key[0] == port}
        its = {key[1:]: n for key, n in theirs.items() if key[0] == port}
        if mine != its and port not in unread:
            wrong.append(kind)
    assert wrong == []


def test_calls_of_every_kind_of_file_are_those_that_tshark_counts(
    tmp_path: Path,
) -> None:
    """As editcap writes them: pcap, and Network Monitor 2 in the time zone of this computer."""
    plain = tmp_path / "plain.pcapng"
    blocks = [enhanced(each, TIME + n * 10**6) for n, each in enumerate(connection(1))]
    plain.write_bytes(pcapng_head((1,)) + b"".join(blocks))
    expected = by_us(plain)
    times = [call.time for call in calls_of(plain)[0]]
    for form in ("pcap", "nsecpcap", "netmon2"):
        made = tmp_path / form
        subprocess.run(["editcap", "-F", form, plain, made], check=True)
        assert by_us(made) == by_tshark(made) == expected
        assert [call.time for call in calls_of(made)[0]] == times
