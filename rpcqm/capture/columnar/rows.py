"""The rows of calls and of messages as columns; the same as `export.row` has one by one."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpcqm.capture.columnar.record_batch import Array
from rpcqm.capture.columnar.same_shape import SameShapeCalls
from rpcqm.capture.columnar.texts import Text, arrow, constant, instead, is_empty, named
from rpcqm.capture.conversation.call import NCACN_IP_TCP, name_of_status

Columns = dict[str, Any]

_MILLION = 1_000_000


def _same(text: str, count: int) -> Text:
    return pa.repeat(constant(text), count)


def status_names(group: SameShapeCalls, status: Array) -> Text:
    """The names of how calls ended."""
    mapper = group.response is not None and group.context.name in ("ept", "mgmt")

    def name(status: int) -> str:
        return "rpc_s_ok" if mapper and not status else name_of_status(status)

    return named(status, name)


def are_far_apart(group: SameShapeCalls) -> Array:
    """Which calls have moments between which arrays cannot count exactly, as forged ones may."""
    time, ended = group.batch.time[group.rows], group.batch.ended[group.rows]
    far = (abs(time // 2) >= 1 << 61) | (abs(ended // 2) >= 1 << 61)
    return np.asarray(far | (abs(ended // 2 - time // 2) >= 1 << 49))


def durations(group: SameShapeCalls) -> Array:
    """Milliseconds from the requests to the end of the answers."""
    time, ended = group.batch.time[group.rows], group.batch.ended[group.rows]
    found = np.round((ended - time) / _MILLION, 6)
    for row in np.flatnonzero(are_far_apart(group)).tolist():
        found[row] = round((int(ended[row]) - int(time[row])) / _MILLION, 6)
    return found


def call_columns(group: SameShapeCalls, queues: Text) -> Columns:
    """The columns of `export.COLUMNS`, and `record`, for the calls of a group."""
    batch, rows, count = group.batch, group.rows, len(group.rows)
    status = group.status()
    return {
        "time": arrow(batch.time[rows] // 1000).cast(pa.timestamp("us", "UTC")),
        **_ends(group),
        "protocol": _same(NCACN_IP_TCP, count),
        "interface": _same(group.context.name, count),
        "opnum": pa.repeat(pa.scalar(group.operation.opnum, pa.int32()), count),
        "name": _same(group.operation.name, count),
        "object": pa.nulls(count, pa.string()),  # calls of objects go one by one
        "status": arrow(status),
        "status_name": status_names(group, status),
        "duration_ms": arrow(durations(group)),
        "sealed": pa.repeat(pa.scalar(False), count),
        "request": group.json(response=False),
        "response": group.json(response=True),
        "conversation": _numbers(group),
        "queue": instead(is_empty(queues), None, queues),
        "message_ids": lists(group.identifiers(), count),
        "request_size": arrow(batch.request_size[rows]),
        "response_size": arrow(batch.response_size[rows]),
        "record": arrow(batch.offset[rows]),
    }


def _ends(group: SameShapeCalls) -> Columns:
    owners = arrow(group.batch.conversation[group.rows])
    every = group.batch.conversations
    return {
        "client": pa.array([each.client for each in every]).take(owners),
        "server": pa.array([each.server for each in every]).take(owners),
    }


def _numbers(group: SameShapeCalls) -> Any:
    numbers = np.array([each.number for each in group.batch.conversations])
    return arrow(numbers[group.batch.conversation[group.rows]])


def lists(columns: list[Text], count: int) -> Any:
    """For each row the list of the values that the columns have there, each value once."""
    if not columns:
        return pa.ListArray.from_arrays(
            arrow(np.zeros(count + 1, np.int32)), pa.array([], pa.string())
        )
    if len(columns) == 1:
        there = np.asarray(columns[0].is_valid())
        ends = np.concatenate(([0], np.cumsum(there))).astype(np.int32)
        return pa.ListArray.from_arrays(arrow(ends), columns[0].drop_null())
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    found = [list(dict.fromkeys(text for text in row if text)) for row in rows]
    return pa.array(found, pa.list_(pa.string()))


MESSAGE_COLUMNS = (
    *("file", "time", "queue", "client", "server", "protocol", "interface", "name"),
    *("status_name", "conversation", "record"),
)
"""What a row of a message has of its call's."""


def message_columns(calls: Columns) -> Columns:
    """The columns of the messages: a row for each message that the calls carry."""
    lists = calls["message_ids"]
    owners = pc.list_parent_indices(lists)
    kept = {name: calls[name].take(owners) for name in MESSAGE_COLUMNS}
    return kept | {"message_id": lists.flatten()}
