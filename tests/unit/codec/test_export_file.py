"""The file of exported messages: what is written is read, and nothing damaged is taken."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.export_file import ExportReader, ExportWriter

MESSAGES: list[tuple[bytes, dict[str, Any]]] = [
    (b"\0packet", {"lookup_id": "1"}),
    (bytes(100), {"label": "ünï"}),
]


def exported(messages: list[tuple[bytes, dict[str, Any]]]) -> bytes:
    file = io.BytesIO()
    writer = ExportWriter(file, {"queue": "orders"})
    for packet, note in messages:
        writer.write(packet, note)
    writer.finish()
    return file.getvalue()


def imported(data: bytes) -> list[tuple[bytes, dict[str, Any]]]:
    return list(ExportReader(io.BytesIO(data)))


@given(st.lists(st.tuples(st.binary(max_size=50), st.dictionaries(st.text(), st.integers()))))
def test_what_was_written_is_read(messages: list[tuple[bytes, dict[str, Any]]]) -> None:
    reader = ExportReader(io.BytesIO(exported(messages)))
    assert reader.note == {"queue": "orders"}
    assert list(reader) == messages


def test_a_file_that_was_cut_off_is_told_wherever_that_was() -> None:
    whole = exported(MESSAGES)
    for end in range(len(whole)):
        with pytest.raises(DecodeError, match="the file ends within"):
            imported(whole[:end])


def test_a_damaged_message_is_not_taken() -> None:
    whole = exported(MESSAGES)
    for position in range(whole.index(b'{"lookup') - 12, len(whole) - 12):
        damaged = bytearray(whole)
        damaged[position] ^= 0x40
        with pytest.raises(DecodeError):
            imported(bytes(damaged))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\3\4" + bytes(100), "holds no exported messages"),
        (b"RPCQMEXP\2\0\0\0" + bytes(100), "format 2; this rpcqm reads format 1"),
        (b"RPCQMEXP\1\0\0\0\xff\xff\xff\xff" + bytes(100), "the beginning of the file is damaged"),
    ],
)
def test_other_files_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        ExportReader(io.BytesIO(data))


def test_a_large_size_is_refused_before_anything_is_read() -> None:
    start = exported([])[:-16]
    with pytest.raises(DecodeError, match="message 1 is damaged"):
        imported(start + (5).to_bytes(4, "little") + b"\xff\xff\xff\x7f" + bytes(4))
