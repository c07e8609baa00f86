"""Columns in Spark's notation as an Arrow schema; apart from the rest, which takes time to load."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_BETWEEN = re.compile(r",\s*(?![^<]*>)")


def arrow_schema(columns: str) -> "pa.Schema":
    """The Arrow schema for columns in Spark's notation."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "timestamp": pa.timestamp("us", "UTC"),
        "int": pa.int32(),
        "long": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
        "array<string>": pa.list_(pa.string()),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
    }
    pairs = (column.strip().rsplit(" ", 1) for column in _BETWEEN.split(columns))
    return pa.schema([(name, types[kind]) for name, kind in pairs])
