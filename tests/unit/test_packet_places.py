"""Where a field of a packet lies is written in rpcqm/codec/packet, and nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rpcqm

PACKAGE = Path(rpcqm.__file__).parent
TABLE = PACKAGE / "codec" / "packet"

PACKETS = frozenset({"packet", "octets", "buffer", "plain", "stored", "head"})
FLAGS = frozenset({"user_flags", "base_flags"})
READERS = frozenset({"unpack_from", "pack_into"})


def name_of(node: ast.AST) -> str:
    return getattr(node, "attr", "") or getattr(node, "id", "")


def has_number(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Constant) and type(each.value) is int for each in ast.walk(node)
    )


def is_literal_place(node: ast.AST) -> bool:
    """Whether a place or a mask of a packet's field is written as a number here."""
    match node:
        case ast.Subscript(value=holder, slice=place):
            return name_of(holder) in PACKETS and has_number(place)
        case ast.Call(func=ast.Name("slice"), args=places):
            return any(has_number(place) for place in places)
        case ast.Call(func=ast.Attribute(attr=reader), args=[*values]) if reader in READERS:
            return any(name_of(value) in PACKETS for value in values) and has_number(values[-1])
        case ast.BinOp(left=flags, op=ast.BitAnd() | ast.RShift(), right=mask):
            return name_of(flags) in FLAGS and has_number(mask)
    return False


def literal_places(source: str) -> Iterator[int]:
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr))
    yield from (node.lineno for node in nodes if is_literal_place(node))


def reads_packets(path: Path) -> bool:
    return TABLE not in path.parents and "rpcqm.codec.packet" in path.read_text("utf-8")


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if reads_packets(path))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_place_in_a_packet_is_no_number_outside_the_table(path: Path) -> None:
    assert list(literal_places(path.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "packet[32:48]",
        "message.packet[at + 4 : at + 8]",
        "octets[2] & mask",
        "SOURCE = slice(16, 32)",
        "START.unpack_from(packet, 8)",
        "message.user_flags >> 10 & QUEUE_TYPE",
        "envelope.user_flags & 0x60",
    ],
)
def test_a_number_is_noticed(source: str) -> None:
    assert list(literal_places(source)) == [1]


@pytest.mark.parametrize(
    "source", ["packet[MESSAGE_ID]", "packet[start:]", "FLAGS.unpack_from(packet, AT)", "rows[1:]"]
)
def test_a_named_place_is_fine(source: str) -> None:
    assert list(literal_places(source)) == []
