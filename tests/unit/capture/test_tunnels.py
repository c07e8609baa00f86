"""Frames of every kind give the calls of the plain frames, one by one and in columns alike."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.capture.columnar import consecutive, template
from rpcqm.capture.columnar.analysis import analyse_columns
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.frames.ends import Segment
from rpcqm.capture.frames.octets import Octets
from rpcqm.capture.frames.walking import MOST_LAYERS, end_of_frame
from rpcqm.cli.main import main
from tests.support.capture.analysed import calls_of
from tests.support.capture.captures import (
    CLIENT,
    SERVER,
    TIME,
    Collected,
    enhanced,
    ipv4,
    ipv6,
    pcapng_head,
    tcp,
)
from tests.support.capture.traffic import traffic
from tests.support.capture.tunnels import (
    LINKS,
    UNREAD,
    WRAPS,
    broken,
    in_itself,
    pieces,
    plain,
    timed_pcap,
)
from tests.unit.capture.test_columnar import InColumns

WHERE = frozenset({"offset", "response_offset"})
"""What of a call depends on where in the file its frames are."""
FRAMES = traffic(3, clients=2, calls=60, odd=False)
PACKET = ipv4(CLIENT[0], SERVER[0], tcp(CLIENT, SERVER, 100, b"hello"))
PACKET_6 = ipv6("2001:db8::1", "2001:db8::2", tcp(CLIENT, SERVER, 100, b"hello"))


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that little traffic is enough."""
    monkeypatch.setattr(consecutive, "SHORTEST_RUN", 2)
    monkeypatch.setattr(template, "LEAST_ROWS", 2)


def stored(directory: Path, groups: Iterable[Iterable[bytes]], link: int = 1) -> Path:
    path = directory / "capture"
    path.write_bytes(timed_pcap(groups, link))
    return path


def told(path: Path) -> tuple[list[Any], list[str]]:
    """Calls without where they are, and the problems."""
    found, problems = calls_of(path)
    return [_told(each) for each in found], [problem.reason for problem in problems]


def _told(call: Any) -> tuple[Any, ...]:
    where = call.conversation.client, call.conversation.server, call.interface_name, call.name
    return (*where, call.time, call.ended, call.request, call.response, call.fault, call.note)


def in_columns(path: Path) -> tuple[list[Any], list[str], InColumns]:
    problems, found, calls = Problems(), InColumns(), list[Any]()

    def take(singles: list[Any], batch: Any) -> None:
        several = list(batch.calls()) if batch is not None else []
        calls.extend(
            _told(each) for _, each in sorted([*singles, *several], key=lambda one: one[0])
        )
        found.take(singles, batch)

    analyse_columns(path, take, problems)
    return calls, [problem.reason for problem in problems], found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The calls of the plain frames."""
    calls, problems = told(stored(tmp_path_factory.mktemp("plain"), ([each] for each in FRAMES)))
    assert len(calls) > 50
    assert problems == []
    return calls


@pytest.mark.parametrize("kind", WRAPS)
def test_frames_of_every_kind_have_the_calls_of_plain_ones(
    kind: str, tmp_path: Path, expected: list[Any]
) -> None:
    """In columns too, and most of them without looking at frames one by one."""
    path = stored(tmp_path, ([WRAPS[kind](frame[14:])] for frame in FRAMES))
    assert told(path) == (expected, [])
    calls, problems, found = in_columns(path)
    assert (calls, problems) == (expected, [])
    assert found.in_batches > len(calls) * 0.7 or kind in {
        "IP without Ethernet",
        "GENEVE with options",
    }


@pytest.mark.parametrize("kind", LINKS)
def test_other_link_types_have_the_calls_of_plain_frames(
    kind: str, tmp_path: Path, expected: list[Any]
) -> None:
    link, wrap = LINKS[kind]
    path = stored(tmp_path, ([wrap(frame[14:])] for frame in FRAMES), link)
    assert told(path) == (expected, [])
    calls, problems, found = in_columns(path)
    assert (calls, problems) == (expected, [])
    assert found.in_batches > len(calls) * 0.7


@pytest.mark.parametrize("packet", [PACKET, PACKET_6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("kind", WRAPS)
def test_both_versions_of_ip_are_found_in_every_kind(kind: str, packet: bytes) -> None:
    if packet is PACKET_6 and kind == "GENEVE with options":
        return
    assert Collected().feed(WRAPS[kind](packet)).finish().forward == b"hello"


@pytest.mark.parametrize("outside", [False, True], ids=["inside", "outside"])
def test_fragments_in_tunnels_and_of_tunnels_are_put_together(
    outside: bool, tmp_path: Path, expected: list[Any]
) -> None:
    """In any order; the same in columns, where each goes by itself."""
    path = stored(tmp_path, broken(FRAMES, 96, outside, random.Random(1)))
    assert told(path) == (expected, [])
    assert in_columns(path)[:2] == (expected, [])


@pytest.mark.parametrize("packet", [PACKET, PACKET_6], ids=["IPv4", "IPv6"])
def test_fragments_of_one_packet_seen_twice_are_one_packet(packet: bytes) -> None:
    """Captured at two places, one behind the other."""
    parts = [each for each in pieces(packet, 8, 7) for _ in range(2)]
    found = Collected().feed(*parts, link=101)
    found.tcp.finish()
    assert found.forward == b"hello"
    assert found.problems.total == 0


def test_a_fragment_that_was_cut_leaves_its_packet_incomplete() -> None:
    """What is behind the cut may not count as what was captured."""
    first, *others = pieces(ipv4(CLIENT[0], SERVER[0], tcp(CLIENT, SERVER, 1, bytes(80))), 48, 7)
    found = Collected().feed(first[:-8], *others, link=101)
    found.tcp.finish()
    assert found.forward == b""
    assert found.problems.counts == {"network": 1}


@pytest.mark.parametrize("kind", UNREAD)
def test_what_is_not_read_is_told_once_with_its_number(kind: str) -> None:
    link, frame = UNREAD[kind]
    found = Collected().feed(frame, frame, frame, link=link)
    found.tcp.finish()
    (problem,) = found.problems
    assert problem.reason == f"3 frames hold {kind}, which is not read"
    assert (problem.kind, problem.offset) == ("not read", 0)
    assert found.problems.counts == {"not read": 3}


def test_frames_of_many_kinds_that_are_not_read_make_few_lines() -> None:
    frames = [bytes(12) + number.to_bytes(2, "big") + bytes(40) for number in range(0xA000, 0xA100)]
    found = Collected().feed(*frames)
    found.tcp.finish()
    assert len(list(found.problems)) == 65
    assert found.problems.counts == {"not read": 256}


@pytest.mark.parametrize("kind", WRAPS)
def test_a_frame_that_is_cut_anywhere_is_passed_over(kind: str) -> None:
    """No cut makes octets that were not there, and what is behind it is read."""
    frame = WRAPS[kind](PACKET)
    for end in range(len(frame)):
        found = Collected().feed(frame[:end], plain(PACKET)).finish()
        assert b"hello".startswith(found.forward), end
        assert len(found.forward) + sum(found.gaps) == 5, end


def test_tunnels_in_tunnels_are_bounded() -> None:
    """Also where a frame is as long as a record may be."""
    end = end_of_frame(1, Octets(in_itself(MOST_LAYERS)))
    assert not isinstance(end, Segment)
    assert isinstance(end_of_frame(1, Octets(in_itself(7))), Segment)


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 40))
def test_lying_lengths_and_other_damage_do_the_same_in_columns(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Of frames of several kinds, some with a wrong octet in a header, cut, or repeated."""
    rng = random.Random(seed)
    kinds = rng.sample(sorted(WRAPS), 3)
    groups: list[list[bytes]] = []
    for frame in traffic(seed, clients=2, calls=15, odd=False):
        made = bytearray(WRAPS[rng.choice(kinds)](frame[14:]))
        if rng.random() < 0.1:
            made[rng.randrange(min(len(made), 90))] = rng.choice((0, 0xFF, rng.randrange(256)))
        cut = len(made) if rng.random() < 0.95 else rng.randrange(1, len(made))
        groups.append([bytes(made[:cut])] * rng.choice((1, 1, 1, 2)))
    path = stored(tmp_path_factory.mktemp("lies"), groups)
    assert in_columns(path)[:2] == told(path)


def test_show_tells_of_tunnels_and_of_what_it_does_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list of a capture in GENEVE is that of the plain one, whatever else is in between."""
    assert main(["capture", "show", str(stored(tmp_path, ([each] for each in FRAMES)))]) == 0
    plain_list = capsys.readouterr().out
    _, teredo = UNREAD["Teredo"]
    made = ([WRAPS["GENEVE"](each[14:]), teredo] for each in FRAMES)
    path = stored(tmp_path, made)
    for more in ((), ("--status", "MQ_OK")):
        assert main(["capture", "show", str(path), *more]) == 0
        out, told = capsys.readouterr()
        assert out == plain_list or more
        assert f"{len(FRAMES)} frames hold Teredo, which is not read\n" in told
        assert f"{len(FRAMES)} problems: {len(FRAMES)} not read." in told


def test_packets_that_pktmon_saw_at_several_layers_are_one_packet(
    tmp_path: Path, expected: list[Any]
) -> None:
    """With its tag, without Ethernet, and in a tunnel; what was sent again in earnest counts."""
    layers = [(0, WRAPS["plain"]), (0, WRAPS["VLAN"]), (1, LINKS["raw"][1]), (0, WRAPS["VXLAN"])]
    out, late = [pcapng_head((1, 101))], list[bytes]()
    rng = random.Random(8)
    for number, frame in enumerate(FRAMES):
        packets = [frame[14:]]
        if rng.random() < 0.2:
            # It got lost behind the first layers, and comes again when others have come.
            late.append(frame[14:])
        elif late and rng.random() < 0.5:
            packets.append(late.pop(0))
        for packet in packets:
            for copy, (interface, wrap) in enumerate(layers):
                time = TIME + number * 1_000_000 + copy
                out.append(enhanced(wrap(packet), time, interface))
    path = tmp_path / "capture"
    path.write_bytes(b"".join(out))
    assert told(path) == (expected, [])
    assert in_columns(path)[:2] == (expected, [])
