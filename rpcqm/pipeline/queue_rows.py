"""Messages of a queue as Arrow batches: what the workers of Spark load, and the driver does not."""

from collections.abc import Iterator

import pyarrow as pa

from rpcqm.base.errors import DecodeError
from rpcqm.capture.arrow_schema import arrow_schema
from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.bodies.described import LONGEST_DECODED
from rpcqm.codec.bodies.extensions import headers_in
from rpcqm.codec.names.format_name import FormatName
from rpcqm.pipeline.queue_columns import SCHEMA

BATCH = 5_000
"""Messages of one Arrow batch."""
OCTETS_OF_BATCH = 16 << 20
"""Octets of messages that go on as one Arrow batch, and those of one more message."""
_SIGN = 1 << 63
_COLUMNS = arrow_schema(SCHEMA)


def _batch(messages: list[ReceivedMessage]) -> pa.RecordBatch:
    """Messages as rows of `SCHEMA`."""
    extensions = [each.extension for each in messages]
    columns = {
        # Spark has no unsigned integers.
        "lookup_id": [_signed(each.lookup_identifier) for each in messages],
        "message_id": [str(each.identifier) for each in messages],
        "arrived": [each.arrival_time * 1_000_000 for each in messages],
        "sent": [each.sent_time * 1_000_000 for each in messages],
        "label": [each.label for each in messages],
        "body": [each.body for each in messages],
        "body_type": [int(each.body_type) for each in messages],
        "priority": [each.priority for each in messages],
        "message_class": [int(each.message_class) for each in messages],
        "correlation_id": [str(each.correlation_identifier) for each in messages],
        "application_tag": [int(each.application_tag) for each in messages],
        "response_queue": [_text(each.response_queue_format_name) for each in messages],
        "soap_envelope": [each.soap_envelope or None for each in messages],
        "extension": [each or None for each in extensions],
        "headers": [_headers(each) for each in extensions],
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in _COLUMNS], schema=_COLUMNS
    )


def _headers(extension: bytes) -> list[tuple[str, str | None]] | None:
    """The headers of NServiceBus or Rebus in an extension, as Arrow has a map; None without any."""
    if not 0 < len(extension) <= LONGEST_DECODED:
        return None
    try:
        found = headers_in(extension, DecodeBudget(len(extension)))
    except DecodeError:
        return None
    return None if found is None else list(found.items())


def _text(name: FormatName | None) -> str | None:
    return None if name is None else str(name)


def batches(messages: Iterator[ReceivedMessage]) -> Iterator[pa.RecordBatch]:
    """Messages in batches; at least one, so that the columns are known."""
    some: list[ReceivedMessage] = []
    octets = 0
    for message in messages:
        some.append(message)
        octets += len(message.buffer)
        if len(some) >= BATCH or octets >= OCTETS_OF_BATCH:
            yield _batch(some)
            some, octets = [], 0
    yield _batch(some)


def _signed(identifier: int) -> int:
    return identifier - 2 * _SIGN if identifier >= _SIGN else identifier
