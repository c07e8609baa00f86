"""The data source `msmq`: a queue as a table, as a stream, and as a sink.

    spark.readStream.format("msmq").option("socket", S).option("queue", "orders").load()

Options: `queue`; `server` (HOST[:PORT] of the endpoint mapper) with `user`, `domain` and
`passwordFile` (or `password`), or `socket` of a local queue manager; `maxMessagesPerBatch`
(10,000), `maxBytesPerBatch` (1 GiB), `partitions` (of a batch, 1), `failOnDataLoss` (true).
`queue_sink` has what a sink takes.

An offset of the stream is a batch with the explicit list of its lookup identifiers, because
identifiers become visible out of order (aborts, priorities): what a batch holds is decided on the
driver, kept in Spark's log before the batch runs, and peeked by the tasks that read it, however
often. The batch's messages are removed when the next one is planned, because Spark plans only
behind a batch that its log of commits has, also at the end of a query with `availableNow`; it
calls `commit` later or never (G472). Messages that become visible later are in a later batch,
whatever their identifiers.

Spark starts five processes for a query, of which two speak to the queue manager: what only these
need is imported where it is used.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.hresult import HResult
from rpcqm.pipeline.errors import DataLossError, SourceError, in_a_sentence
from rpcqm.pipeline.queue_columns import SCHEMA
from rpcqm.pipeline.queue_offsets import Origin, from_ranges, ranges_text
from rpcqm.pipeline.queue_options import DEFAULT_BYTES, QueueOptions
from rpcqm.pipeline.queue_sink import QueueStreamWriter, QueueWriter, check_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from rpcqm.client.blocking import BlockingBulk
    from rpcqm.client.bulk_session import Failure
    from rpcqm.client.message import ReceivedMessage

SIZES_AT_ONCE = 2_048
MOST_GONE = 10_000
"""Identifiers that an offset carries because the messages were not there to be removed."""
_GONE = HResult.MQ_ERROR_MESSAGE_NOT_FOUND


class QueueSource(DataSource):
    """A queue of a queue manager."""

    @classmethod
    def name(cls) -> str:
        return "msmq"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: object) -> DataSourceReader:
        return QueueSourceReader(QueueOptions.of(self.options))

    def streamReader(self, schema: object) -> DataSourceStreamReader:
        return QueueStreamReader(QueueOptions.of(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise SourceError("A queue can only be appended to: write with mode append.")
        check_columns(schema)
        return QueueWriter(QueueOptions.of(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        check_columns(schema)
        return QueueStreamWriter(QueueOptions.of(self.options))


class IdentifierPartition(InputPartition):
    """The identifiers of the messages that one task reads; all messages if it is None."""

    def __init__(self, identifiers: list[int] | None) -> None:
        super().__init__(None if identifiers is None else ranges_text(identifiers))
        self.identifiers = identifiers


class QueueSourceReader(DataSourceReader):
    """What is in the queue now; nothing is removed."""

    def __init__(self, options: QueueOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """One partition lists the messages itself; for several the driver does."""
        if self._options.partitions == 1:
            return [IdentifierPartition(None)]
        with self._options.in_a_sentence():
            parts = divided(list(visible(self._options)), self._options.partitions)
        return parts or [IdentifierPartition([])]  # where there are none Spark makes one of its own

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from rpcqm.pipeline.queue_rows import batches

        assert isinstance(partition, IdentifierPartition)
        return batches(self._messages(partition.identifiers))

    def _messages(self, identifiers: list[int] | None) -> "Iterator[ReceivedMessage]":
        options = self._options
        with (
            options.in_a_sentence(),
            options.client() as client,
            client.open_bulk_reader(options.name, peek_only=True) as reader,
        ):
            if identifiers is None:
                yield from reader.browse()
                return
            for _, found in reader.peek(identifiers):
                if not isinstance(found, MQError | DecodeError):
                    yield found
                elif not isinstance(found, MQError) or found.status != _GONE:
                    raise found


def visible(options: QueueOptions) -> Iterator[int]:
    """The lookup identifiers of the messages that can be seen, in the queue's order."""
    with (
        options.client() as client,
        client.open_bulk_reader(options.name, peek_only=True) as reader,
    ):
        yield from reader.visible()


def divided(identifiers: list[int], most: int) -> list[InputPartition]:
    """Messages in so many parts of one size at most; no part is empty."""
    count = max(1, min(most, len(identifiers)))
    size = -(-len(identifiers) // count) or 1
    pieces = range(0, len(identifiers), size)
    return [IdentifierPartition(identifiers[at : at + size]) for at in pieces]


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Batches of messages, removed from the queue once they are committed."""

    def __init__(self, options: QueueOptions) -> None:
        self._options = options
        self._available: frozenset[int] | None = None
        self._origin: Origin | None = None
        self._removed = ""
        """The identifiers that were removed last."""
        self._waiting: int | None = None
        """Messages behind the batch that was planned last."""
        self._gone: set[int] = set()
        """Those of them that were not there, or that somebody else had locked."""

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on only what is there now is planned."""
        with self._options.in_a_sentence():
            self._available = frozenset(visible(self._options))

    def origin(self) -> Origin:
        """The queue that offsets name."""
        if self._origin is None:
            options = self._options
            with options.client() as client:
                self._origin = Origin.of(client, options.address, options.name)
        return self._origin

    def initialOffset(self) -> dict[str, Any]:
        with self._options.in_a_sentence():
            return self.origin().offset(0, [])

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Remove the batch before, which is committed, and plan the next of what is there."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        assert most is not None or isinstance(limit, ReadAllAvailable)
        with self._options.in_a_sentence():
            self.origin().check(start)
            self._remove_batch(start)
            return self._planned(start, most)

    def _planned(self, start: dict[str, Any], most: int | None) -> dict[str, Any]:
        gone = self._gone.union(from_ranges(start.get("gone", "")))
        found: list[int] = []
        again: list[int] = []
        options = self._options
        with (
            options.client() as client,
            client.open_bulk_reader(options.name, peek_only=True) as reader,
        ):
            for identifier in reader.visible():
                if most is not None and len(found) >= most:
                    break
                if identifier in gone:
                    again.append(identifier)
                elif self._available is None or identifier in self._available:
                    found.append(identifier)
            self._waiting = reader.count()
            room = options.most_octets or (self._waiting is not None and DEFAULT_BYTES)
            if room and most is not None:
                found = fitting(reader, found, room)
        self._remove(again)
        if self._waiting is not None:
            self._waiting = max(0, self._waiting - len(found) - len(again))
        if not found:
            return start
        return self.origin().offset(start["batch"] + 1, found, sorted(gone)[-MOST_GONE:])

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """What is waiting behind the batch that was planned last, for Spark's progress.

        None where only a walk through the queue could tell.
        """
        return None if self._waiting is None else {"waiting": self._waiting}

    def _remove_batch(self, start: dict[str, Any]) -> None:
        """Remove what is committed, once: a query without new messages asks each second."""
        if start["identifiers"] != self._removed:
            self._gone = self._remove(from_ranges(start["identifiers"]))
            self._removed = start["identifiers"]

    def _remove(self, identifiers: list[int]) -> set[int]:
        """Remove kept messages; which of them were not there, or locked by somebody else.

        Raises SourceError if others stay, after all that can be removed is.
        """
        options = self._options
        gone: set[int] = set()
        if not identifiers:
            return gone
        with (
            in_a_sentence(f"Messages of {options.queue} are kept, but cannot be removed"),
            options.client() as client,
            client.open_bulk_reader(options.name) as reader,
        ):
            failed: Failure | None = None
            for identifier, error in reader.remove(identifiers):
                if isinstance(error, MQError) and error.status == _GONE:
                    gone.add(identifier)
                else:
                    failed = failed or error
            if failed is not None:
                raise failed
        return gone

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with self._options.in_a_sentence():
            self.origin().check(end)
        identifiers = [] if start == end else from_ranges(end["identifiers"])
        return divided(identifiers, self._options.partitions)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from rpcqm.pipeline.queue_rows import batches

        assert isinstance(partition, IdentifierPartition)
        return batches(self._messages(partition.identifiers or []))

    def _messages(self, identifiers: list[int]) -> "Iterator[ReceivedMessage]":
        options = self._options
        with (
            options.in_a_sentence(),
            options.client() as client,
            client.open_bulk_reader(options.name, peek_only=True) as reader,
        ):
            for identifier, found in reader.peek(identifiers):
                if isinstance(found, MQError):
                    self._lost(identifier, found)
                elif isinstance(found, DecodeError):
                    raise found
                else:
                    yield found

    def _lost(self, identifier: int, error: MQError) -> None:
        if error.status != _GONE:
            raise error
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"message {identifier} of {self._options.queue} is gone before it was read; "
                "set failOnDataLoss to false to go on without it"
            )

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: `latestOffset` removes a batch, because this may never be called (G472)."""


def fitting(reader: "BlockingBulk", identifiers: list[int], room: int) -> list[int]:
    """The first messages that together have room, and at least one."""
    for at in range(0, len(identifiers), SIZES_AT_ONCE):
        sizes = reader.sizes(identifiers[at : at + SIZES_AT_ONCE])
        for number, size in enumerate(sizes, at):
            room -= size
            if room < 0:
                return identifiers[: max(1, number)]
    return identifiers
