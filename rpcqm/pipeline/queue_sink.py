"""The sink `msmq`: rows of a frame or of a stream become messages of a queue.

A row's `body` (binary or string) is the body; where they are there, `label`, `priority` and
`idempotency_key` count too, and the key becomes the correlation identifier. Other columns are left
out, so that what was read from a queue can be written to one.
"""

import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    IntegralType,
    NumericType,
    StringType,
    StructType,
)

from rpcqm.pipeline.errors import SourceError
from rpcqm.pipeline.queue_options import QueueOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from rpcqm.client.blocking import BlockingSender
    from rpcqm.client.outgoing import OutgoingMessage
    from rpcqm.codec.packet.types import MessageIdentifier

_KINDS: dict[str, tuple[type[DataType], ...]] = {
    "body": (BinaryType, StringType),
    "label": (StringType,),
    "priority": (IntegralType,),
    "idempotency_key": (BinaryType, StringType, NumericType, DateType),
}
"""The columns that become part of a message, and what they may hold."""
_KIND_NAMES: dict[type[DataType], str] = {
    BinaryType: "binary",
    StringType: "string",
    IntegralType: "a whole number",
    NumericType: "a number",
    DateType: "a date",
}


def check_columns(schema: StructType) -> None:
    """Raise SourceError for rows of which no messages can be made; asked on the driver."""
    if "body" not in schema.names:
        names = ", ".join(schema.names) or "none"
        raise SourceError(
            f"The sink msmq needs a column body, and the rows have {names}: give one that name."
        )
    for field in schema.fields:
        kinds = _KINDS.get(field.name)
        if kinds and not isinstance(field.dataType, kinds):
            wanted = " or ".join(_KIND_NAMES[each] for each in kinds)
            found = field.dataType.simpleString()
            raise SourceError(
                f"The column {field.name} of a message is {wanted}, not {found}: convert it."
            )


def correlation_of(key: str) -> "MessageIdentifier":
    """The correlation identifier that stands for an idempotency key: the same for the same key."""
    from rpcqm.codec.packet.types import MessageIdentifier

    digest = hashlib.sha256(key.encode()).digest()
    return MessageIdentifier(uuid.UUID(bytes=digest[:16]), int.from_bytes(digest[16:20], "big"))


def messages_of(batch: "pa.RecordBatch") -> "Iterator[OutgoingMessage]":
    """A message for each row."""
    names = [name for name in batch.schema.names if name in _KINDS]
    columns = [batch.column(name).to_pylist() for name in names]
    for values in zip(*columns, strict=True):
        yield _message(dict(zip(names, values, strict=True)))


def _message(row: dict[str, Any]) -> "OutgoingMessage":
    # Only now, because the processes of Spark that plan do not need it.
    from rpcqm.client.outgoing import OutgoingMessage

    body = row["body"]
    settings: dict[str, Any] = {
        "body": body.encode() if isinstance(body, str) else body or b"",
        "label": row.get("label") or "",
    }
    if row.get("priority") is not None:
        settings["priority"] = row["priority"]
    if (key := row.get("idempotency_key")) is not None:
        settings["correlation_identifier"] = correlation_of(str(key))
    return OutgoingMessage(**settings)


def send(sender: "BlockingSender", batches: "Iterator[pa.RecordBatch]") -> int:
    """Send each row, in their order, many on their way at once; how many."""
    return sum(1 for batch in batches for _ in sender.send_all(messages_of(batch)))


@dataclass
class Sent(WriterCommitMessage):
    """How many messages a task has sent."""

    count: int


class _Sender:
    """Sends every row; a task that is repeated sends again, with the same idempotency keys."""

    def __init__(self, options: QueueOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Send rows; they are durable when this returns."""
        options = self._options
        with (
            options.in_a_sentence(),
            options.client() as client,
            client.open_sender(options.name) as sender,
        ):
            return Sent(send(sender, iterator))

    def commit(self, messages: object, batchId: int = 0) -> None:
        """Everything is sent by now."""

    def abort(self, messages: object, batchId: int = 0) -> None:
        """What was sent stays sent: delivery is at least once."""


class QueueWriter(_Sender, DataSourceArrowWriter):
    """Sends the rows of a data frame."""


class QueueStreamWriter(_Sender, DataSourceStreamArrowWriter):
    """Sends the rows of a stream, batch by batch."""
