"""Large captures by flow: whatever ranges and parts there are, the rows are those of the file."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rpcqm.capture.columnar import consecutive, template
from rpcqm.pipeline.column_tables import file_tables
from rpcqm.pipeline.flow_index import (
    IndexRow,
    exact,
    followed,
    in_order,
    index_rows,
    misread,
    part_of,
    plan,
    unbroken,
)
from rpcqm.pipeline.splitting import flow_of
from tests.support.capture.captures import (
    ACK,
    SYN,
    ethernet,
    ipv4,
    ipv6,
    pcap,
    pcapng,
    segment,
    tcp,
)
from tests.support.capture.traffic import hard_traffic, spoilt, traffic
from tests.support.capture.tunnels import UNREAD, WRAPS, broken, timed_pcap

TABLES = ("calls", "messages", "flows")
NO_FLOW = {"", "fragments"}


def rows_of(found: Iterable[tuple[str, Any]]) -> list[str]:
    """But for the numbers of conversations, and what one connection tells about another."""
    unlike = ("conversation", "queue")
    return sorted(
        str((table, {name: row[name] for name in row if name not in unlike}))
        for table, batch in found
        for row in batch.to_pylist()
    )


def index_of(path: Path, size: int, cores: int) -> tuple[list[IndexRow], int]:
    """The index as `ingest` makes it, and how many parts a file has."""
    made = plan([path], cores, size)
    for _ in range(2):
        index = [row for number in range(made.steps) for row in index_rows(made, number)]
        claims = [row["claim"] for row in index if row["kind"] == "claim"]
        rest, claims = unbroken(made, claims)
        linked = exact(rest, claims)
        if len(linked.ranges) == len(made.ranges) and not misread(linked, claims):
            break
        made = linked
    assert misread(linked, claims) == []
    return sorted(index, key=in_order), made.parts


def in_parts(path: Path, size: int, cores: int = 1) -> list[str]:
    index, parts = index_of(path, size, cores)
    return rows_of(followed(index, TABLES, (), parts))


def is_the_same_in_parts(path: Path, sizes: Iterable[int], cores: int = 1) -> int:
    """Checks that, and tells how many rows there are."""
    whole = rows_of(file_tables(TABLES, str(path), ()))
    for size in sizes:
        assert in_parts(path, size, cores) == whole
    return len(whole)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "capture"


@settings(max_examples=8)
@given(seed=st.integers(0, 1 << 30), alone=st.booleans(), size=st.integers(900, 9000))
@example(seed=178, alone=False, size=900)
@example(seed=449019475, alone=False, size=4436)
@example(seed=129883, alone=True, size=900)
def test_a_file_in_parts_has_the_rows_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, alone: bool, size: int
) -> None:
    """Where binds are lost, only with one connection."""
    path = tmp_path_factory.mktemp("parts") / "capture"
    frames = traffic(seed, clients=1 if alone else 4, odd=alone)
    known = {flow_of(1, frame) for frame in frames}
    found = spoilt(frames, seed, 0.05 if alone else 0.0)
    # A damaged address or port would make a second connection, without a bind of its own.
    path.write_bytes(pcapng(frame for frame in found if flow_of(1, frame) in known | NO_FLOW))
    is_the_same_in_parts(path, [size])


@settings(max_examples=15)
@given(
    seed=st.integers(0, 1 << 40),
    clients=st.integers(1, 4),
    share=st.integers(2, 60),
    cores=st.integers(1, 5),
    blocks=st.booleans(),
)
def test_flows_that_are_hard_to_follow_are_the_same_in_parts(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    clients: int,
    share: int,
    cores: int,
    blocks: bool,
) -> None:
    path = tmp_path_factory.mktemp("hard") / "capture"
    frames = hard_traffic(seed, clients)
    path.write_bytes(pcapng(frames) if blocks else pcap(frames))
    size = max(60, path.stat().st_size // share)
    is_the_same_in_parts(path, [size], cores)


@pytest.mark.parametrize(
    "kind", ["plain", "QinQ", "VXLAN", "ERSPAN II", "GENEVE with options", "IPv6"]
)
def test_tunnels_in_parts_have_the_rows_of_the_whole(path: Path, kind: str) -> None:
    """What is not read is counted once, whatever ranges there are."""
    frames = traffic(31, clients=3, calls=25, odd=False)
    made = [six(each) if kind == "IPv6" else WRAPS[kind](each[14:]) for each in frames]
    _, unread = UNREAD["Teredo"]
    path.write_bytes(pcapng(frame for each in made for frame in (each, unread)))
    assert is_the_same_in_parts(path, (700, 5000), 2) > 30
    index, parts = index_of(path, 5000, 2)
    told = [
        row for _, batch in followed(index, ("problems",), (), parts) for row in batch.to_pylist()
    ]
    assert [row["reason"] for row in told] == [
        f"{len(frames)} frames hold Teredo, which is not read"
    ]


def six(frame: bytes) -> bytes:
    """The same segment over IPv6."""
    hosts = [f"2001:db8::{frame[at : at + 4].hex()[:4]}:{frame[at + 3]:x}" for at in (26, 30)]
    return ethernet(ipv6(hosts[0], hosts[1], frame[34:]), 0x86DD)


@pytest.mark.parametrize("outside", [False, True])
def test_a_file_with_fragments_is_followed_whole(path: Path, outside: bool) -> None:
    """The fragments of a packet belong to a flow that only the first of them tells."""
    frames = traffic(32, clients=3, calls=15, odd=False)
    parts = broken(frames, 88, outside, random.Random(5))
    path.write_bytes(timed_pcap(parts))
    index, _ = index_of(path, 3000, 2)
    assert {row["kind"] for row in index} == {"file"}
    assert is_the_same_in_parts(path, (3000, 40_000), 2) > 20


def test_ranges_of_any_size_give_the_same_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From shorter than a record to all but one octet of the file; in columns as well."""
    monkeypatch.setattr(consecutive, "SHORTEST_RUN", 2)
    monkeypatch.setattr(template, "LEAST_ROWS", 2)
    path.write_bytes(pcapng(traffic(11, clients=2, calls=14, odd=False)))
    length = path.stat().st_size
    sizes = [50, 97, 150, 333, *range(400, length, length // 12), length - 1]
    assert is_the_same_in_parts(path, sizes) > 10


def test_a_range_has_its_records_in_the_part_of_their_connection(path: Path) -> None:
    """Both directions, and whether the record is looked at in columns or by itself."""
    frames = traffic(5, clients=4)
    path.write_bytes(pcapng([frame for each in frames for frame in (each, tagged(each))]))
    index, parts = index_of(path, 3000, 2)
    of_offset: dict[int, int] = {}
    for row in index:
        if row["kind"] in ("record", "records"):
            of_offset[row["first"]] = row["part"]
    assert len(set(of_offset.values())) > 1
    octets = path.read_bytes()
    for offset, part in of_offset.items():
        captured = int.from_bytes(octets[offset + 20 : offset + 24], "little")
        assert part == part_of(flow_of(1, octets[offset + 28 : offset + 28 + captured]), parts)


def tagged(frame: bytes) -> bytes:
    return frame[:12] + b"\x81\0\0\5" + frame[12:]


@given(
    st.binary(min_size=4, max_size=4),
    st.binary(min_size=4, max_size=4),
    st.tuples(st.integers(1, 65535), st.integers(1, 65535)),
    st.integers(2, 40),
)
def test_both_directions_of_a_connection_are_in_one_part(
    one: bytes, other: bytes, ports: tuple[int, int], parts: int
) -> None:
    hosts = [".".join(map(str, each)) for each in (one, other)]
    there = tcp((hosts[0], ports[0]), (hosts[1], ports[1]), 1, b"x", SYN)
    back = tcp((hosts[1], ports[1]), (hosts[0], ports[0]), 9, b"y", SYN | ACK)
    frames = ethernet(ipv4(hosts[0], hosts[1], there)), ethernet(ipv4(hosts[1], hosts[0], back))
    assert part_of(flow_of(1, frames[0]), parts) == part_of(flow_of(1, frames[1]), parts) < parts
    assert part_of(flow_of(1, tagged(frames[0])), parts) == part_of(flow_of(1, frames[0]), parts)
    wide = [f"2001:db8::{each.hex()[:4]}:{each.hex()[4:]}" for each in (one, other)]
    sixes = (
        ethernet(ipv6(wide[0], wide[1], there), 0x86DD),
        ethernet(ipv6(wide[1], wide[0], back), 0x86DD),
    )
    assert part_of(flow_of(1, sixes[0]), parts) == part_of(flow_of(1, sixes[1]), parts) < parts


def test_forged_blocks_in_a_connection_give_no_calls(path: Path) -> None:
    """The contents of a connection are a capture of other calls."""
    forged = pcapng(traffic(21, clients=1, calls=30))
    frames = [segment(1000 + at, forged[at : at + 1400]) for at in range(0, len(forged), 1400)]
    path.write_bytes(pcapng([*traffic(22, clients=2, calls=10, odd=False), *frames]))
    is_the_same_in_parts(path, (100, 777, 3000))
