"""What is found when all is over: the records of the log, and the databases of both nodes."""

import asyncio
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rpcqm.replica.following import Writer
from rpcqm.replica.nats import NatsLog
from rpcqm.store.database import Database
from rpcqm.store.errors import ReplicationError
from rpcqm.store.migration import enter_cluster
from rpcqm.store.replication import LogRecord, Place, RecordKind
from rpcqm.store.settings import StoreSettings
from tests.support.cluster.history import Name, Written
from tests.support.store.kept_log import replay, rows_of
from tests.support.waiting import PATIENCE

Rows = Mapping[tuple[str, bytes], bytes]
_NAME = re.compile(rb"<([a-z][a-z0-9-]*):([0-9]+)>")


async def records_of(log: NatsLog) -> list[bytes]:
    """All records that the log has, from the first one that it still keeps."""
    async with asyncio.timeout(PATIENCE):
        bounds = await log.state()
    records: list[bytes] = []
    over = asyncio.get_running_loop().create_future()

    def deliver(record: bytes) -> None:
        records.append(record)
        if bounds.first + len(records) > bounds.last and not over.done():
            over.set_result(None)

    def failed(error: ReplicationError) -> None:
        if not over.done():
            over.set_exception(error)

    if bounds.last < bounds.first:
        return []
    reading = log.read(bounds.first - 1, deliver, failed)
    async with asyncio.timeout(PATIENCE):
        await over
    reading.stop()
    return records


def written(records: list[bytes]) -> list[Written]:
    """What the checker needs of them; a name is in the record of its sending first."""
    found, writers = [], {0: ""}
    for octets in records:
        record = LogRecord.decode(octets)
        if record.kind is RecordKind.TAKEOVER:
            writers[record.epoch] = Writer.decode(record.body).name
        names: tuple[Name, ...] = ()
        if record.kind is RecordKind.ROWS:
            names = tuple(
                Name(sender.decode(), int(number)) for sender, number in _NAME.findall(record.body)
            )
        writer = writers.get(record.epoch, "")
        found.append(Written(record.number, record.epoch, writer, names))
    return found


def brought_up_to_date(data: Path, records: list[bytes]) -> Rows:
    """The rows of a copy of a database once the records that it has not had are in it."""
    with tempfile.TemporaryDirectory(dir=data.parent.parent) as name:
        copy = Path(name) / "data"
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*.sock", "LOCK"))
        return _rows_after(copy, records)


def from_nothing(place: Path, records: list[bytes]) -> Rows:
    """The rows that the records make in an empty database."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        data = Path(name) / "data"
        database = Database(data, StoreSettings())
        first = LogRecord.decode(records[0])
        enter_cluster(database, Place.beginning(first.incarnation))
        database.close()
        return _rows_after(data, records)


def _rows_after(data: Path, records: list[bytes]) -> Rows:
    place = replay(data, [])
    first = LogRecord.decode(records[0]).number
    replay(data, records[place.number + 1 - first :])
    return {(str(family), key): value for (family, key), value in rows_of(data).items()}
