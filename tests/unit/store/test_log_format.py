"""Records of RocksDB's logs, read back."""

from hypothesis import given
from hypothesis import strategies as st

from rpcqm.store.log_format import BLOCK, whole_records
from rpcqm.store.store import Store
from tests.support.store.logs import write_records
from tests.support.store.stores import Turns

sizes = st.one_of(st.integers(0, 50), st.integers(BLOCK - 40, BLOCK + 40), st.just(3 * BLOCK))
logs = st.lists(sizes.map(lambda size: b"x" * size), max_size=6)
numbers = st.one_of(st.none(), st.integers(0, 0xFFFF_FFFF))


@given(logs, numbers)
def test_records_are_read_as_they_were_written(records: list[bytes], number: int | None) -> None:
    data = write_records(records, number)
    read = list(whole_records(data, number))
    assert [record for record, _ in read] == records
    assert read == [] or read[-1][1] == len(data)


@given(logs, numbers, st.data())
def test_reading_ends_at_the_first_record_that_is_not_whole(
    records: list[bytes], number: int | None, draw: st.DataObject
) -> None:
    data = bytearray(write_records(records, number))
    ends = [end for _, end in whole_records(bytes(data), number)]
    damaged = draw.draw(st.integers(0, max(len(data) - 1, 0)))
    whole = [end for end in ends if end <= damaged]
    assert [end for _, end in whole_records(bytes(data[:damaged]), number)] == whole
    if data:
        data[damaged] ^= 0x40
        read = [end for _, end in whole_records(bytes(data), number)]
        # A damaged byte of the padding at the end of a block harms nobody.
        assert read in (whole, ends)


def test_what_another_log_left_is_not_read() -> None:
    data = write_records([b"new"], 8)
    data += write_records([b"old"], 7, len(data))
    assert [record for record, _ in whole_records(data, 8)] == [b"new"]
    assert list(whole_records(data, 7)) == []


def test_what_rocksdb_writes_is_read_to_the_end(turns: Turns, store: Store) -> None:
    for number in range(40):
        with store.transaction("insert") as txn:
            txn.insert(1, number, bytes([number]) * 5_000, arrival=0)
        turns.end()
    database = turns.directory / "messages"
    manifest = database / (database / "CURRENT").read_text().strip()
    *_, (_, end) = whole_records(manifest.read_bytes())
    assert end == manifest.stat().st_size
    log = max(database.glob("*.log"))
    read = list(whole_records(log.read_bytes(), int(log.stem)))
    assert read[-1][1] == log.stat().st_size
    assert sum(b"\x27" * 5_000 in record for record, _ in read) == 1
