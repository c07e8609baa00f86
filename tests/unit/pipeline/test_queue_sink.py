"""What rows become messages, and which frames are refused before anything is sent."""

from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.pipeline.errors import SourceError
from rpcqm.pipeline.queue_sink import check_columns, correlation_of, messages_of


def columns(**kinds: str) -> StructType:
    made = StructType()
    for name, kind in kinds.items():
        made.add(name, kind)
    return made


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ({"text": "string", "label": "string"}, "needs a column body, and the rows have text, l"),
        ({"body": "integer"}, "column body of a message is binary or string, not int"),
        ({"body": "binary", "label": "long"}, "column label of a message is string, not bigint"),
        ({"body": "string", "priority": "string"}, "priority of a message is a whole number, not"),
        ({"body": "string", "priority": "double"}, "priority of a message is a whole number, not"),
        ({"body": "string", "idempotency_key": "timestamp"}, "column idempotency_key of a message"),
    ],
)
def test_frames_that_are_no_messages_are_refused(found: dict[str, str], sentence: str) -> None:
    with pytest.raises(SourceError, match=sentence):
        check_columns(columns(**found))


@pytest.mark.parametrize(
    "found",
    [
        {"body": "binary"},
        {"body": "string", "label": "string", "priority": "byte", "idempotency_key": "date"},
        {"lookup_id": "long", "body": "binary", "priority": "integer", "arrived": "timestamp"},
    ],
)
def test_frames_of_messages_are_taken(found: dict[str, str]) -> None:
    check_columns(columns(**found))


@pytest.mark.parametrize("binary", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_each_row_is_a_message(binary: pa.DataType) -> None:
    text = pa.types.is_string(binary) or pa.types.is_large_string(binary)
    bodies = ["é", None] if text else ["é".encode(), None]
    batch = pa.record_batch(
        {
            "other": [1, 2],
            "body": pa.array(bodies, binary),
            "label": pa.array(["one", None]),
            "priority": pa.array([7, None], pa.int8()),
            "idempotency_key": pa.array([Decimal("1.50"), None]),
        }
    )
    keyed = correlation_of("1.50")
    one = OutgoingMessage("é".encode(), label="one", priority=7, correlation_identifier=keyed)
    assert list(messages_of(batch)) == [one, OutgoingMessage()]
