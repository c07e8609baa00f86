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
from rpcqm.store.replay import Replay
from rpcqm.store.replication import LogRecord, RecordKind
from rpcqm.store.settings import StoreSettings
from tests.support.cluster.history import Name, Written
from tests.support.store.kept_log import rows_of
from tests.support.waiting import PATIENCE

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


def brought_up_to_date(data: Path, records: list[bytes]) -> Mapping[tuple[str, bytes], bytes]:
    """The rows of a copy of a database once the records that it has not had are in it."""
    with tempfile.TemporaryDirectory(dir=data.parent.parent) as name:
        copy = Path(name) / "data"
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*.sock", "LOCK"))
        database = Database(copy, StoreSettings())
        try:
            follower = Replay(database)
            first = LogRecord.decode(records[0]).number if records else 1
            for record in records[max(0, follower.end.number + 1 - first) :]:
                follower.feed(record)
        finally:
            database.close()
        return {(str(family), key): value for (family, key), value in rows_of(copy).items()}
