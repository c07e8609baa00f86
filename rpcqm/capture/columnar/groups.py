"""Calls of a batch that look alike: same method, same shape of request and of response."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpcqm.capture.binary_conversation import SIGNATURE
from rpcqm.capture.call import returns_status
from rpcqm.capture.columnar.batch import CallBatch
from rpcqm.capture.columnar.stretch import Array, Buffer
from rpcqm.capture.columnar.template import FieldPath, Leaf, Template, Templates
from rpcqm.capture.columnar.texts import Text, column, decimal, guid_text, numbers_at, octets_at
from rpcqm.capture.interfaces import Context
from rpcqm.capture.subjects import handles_used, identifier_of
from rpcqm.codec.interface import Operation
from rpcqm.codec.packet_types import NULL_IDENTIFIER
from rpcqm.codec.types.mqmq import OBJECTID

_NAME_END = 64
"""A packet that is shorter has no identifier."""
_NO_MESSAGE = str(NULL_IDENTIFIER)


@dataclass(slots=True)
class Group:
    """Some calls of a batch; `response` is None for calls that ended in a fault."""

    batch: CallBatch
    rows: Array
    context: Context
    operation: Operation
    request: Template
    response: Template | None

    @property
    def asked_at(self) -> Array:
        """Where the requests' stub data begin."""
        return self.batch.request[self.rows]

    @property
    def told_at(self) -> Array:
        """Where the responses' stub data begin."""
        return self.batch.response[self.rows]

    def json(self, response: bool) -> Text:
        """The parameters of requests or responses as JSON."""
        template = self.response if response else self.request
        if template is None:
            return pa.nulls(len(self.rows), pa.string())
        return template.json(self.batch.buffer, self.told_at if response else self.asked_at)

    def status(self) -> Array:
        """How the calls ended."""
        if self.response is None:
            return self.batch.fault[self.rows]
        name = "result" if returns_status(self.operation) else "status"
        leaf = self.response.leaf(name)
        if leaf is None or not leaf.is_number:
            value = int(getattr(self.response.value, name, 0)) & 0xFFFFFFFF
            return np.full(len(self.rows), value, np.int64)
        found = numbers_at(self.batch.buffer, self.told_at + leaf.offset, leaf.code)
        return found.astype(np.int64) & 0xFFFFFFFF

    def handle(self, name: str) -> Array:
        """The octets of a context handle of the requests, as rows."""
        leaf = self.request.leaf(name)
        if leaf is not None:
            return octets_at(self.batch.buffer, self.asked_at + leaf.offset, leaf.size)
        octets = getattr(self.request.value, name)
        return np.tile(np.frombuffer(octets, np.uint8), (len(self.rows), 1))

    def identifiers(self) -> list[Text]:
        """The identifiers of the messages that the calls carry: columns, null where is none."""
        found: list[Text] = []
        for template, places in ((self.request, self.asked_at), (self.response, self.told_at)):
            if template is not None:
                reader = _Identifiers(template, self.batch.buffer, places)
                columns = [reader.column(*carrier) for carrier in template.carriers]
                found += [column for column in columns if column is not None]
        return found


class _Identifiers:
    """Identifiers of messages in stubs of one shape."""

    def __init__(self, template: Template, buffer: Buffer, places: Array) -> None:
        self._template = template
        self._buffer = buffer
        self._places = places

    def column(self, path: FieldPath, value: Any) -> Text | None:
        """Those in one value; None when there is none in any of the stubs."""
        if isinstance(value, OBJECTID):
            lineage, number = (self._part(path, name, value) for name in ("Lineage", "Uniquifier"))
            found = column(("{", lineage, "}\\", number), len(self._places))
            return pc.if_else(pc.equal(found, _NO_MESSAGE), pa.scalar(None, pa.string()), found)
        leaf = self._template.leaf(*path)
        if leaf is not None:
            return self._in_packets(leaf)
        text = identifier_of(value)
        return pa.repeat(pa.scalar(text), len(self._places)) if text else None

    def _part(self, path: FieldPath, name: str, value: Any) -> Text | str:
        leaf = self._template.leaf(*path, name)
        return leaf.text(self._buffer, self._places) if leaf else str(getattr(value, name))

    def _in_packets(self, leaf: Leaf) -> Text | None:
        if leaf.size < _NAME_END:
            return None
        head = octets_at(self._buffer, self._places + leaf.offset, _NAME_END)
        packets = (head[:, 4:8] == np.frombuffer(SIGNATURE, np.uint8)).all(axis=1)
        if not packets.any():
            return None
        ordinal = np.ascontiguousarray(head[:, 56:60]).view("<u4")[:, 0]
        text = column(("{", guid_text(head[:, 16:32]), "}\\", decimal(ordinal)), len(head))
        return text if packets.all() else pa.array(text.to_pylist(), mask=~packets)


class Grouper:
    """Finds the groups of batches; keeps what it has learnt of their shapes.

    In no group are calls that cannot be decoded, that are like few others, or that tell what
    handles stand for: they must be looked at in their order.
    """

    def __init__(self) -> None:
        self._templates = Templates()

    def groups(self, batch: CallBatch) -> Iterator[Group]:
        """The groups of a batch; calls that are in none of them are decoded by themselves."""
        both = batch.context << 16 | batch.opnum
        for each in np.unique(both).tolist():
            context = batch.contexts[each >> 16]
            operation = context.operation(each & 0xFFFF)
            if operation is None or context.syntax is None:
                continue
            if handles_used(operation) is not None:
                rows = np.flatnonzero(both == each)
                yield from self._of_method(batch, rows, context, operation)

    def _of_method(
        self, batch: CallBatch, rows: Array, context: Context, operation: Operation
    ) -> Iterator[Group]:
        assert context.syntax is not None
        asked: list[tuple[Template, Array]] = list(
            self._templates.matched(
                *(operation, context.syntax, False, batch.buffer),
                *(batch.request[rows], batch.request_size[rows]),
            )
        )
        told: list[tuple[Template | None, Array]] = []
        answered = np.flatnonzero(batch.fault[rows] < 0)
        for template, where in self._templates.matched(
            *(operation, context.syntax, True, batch.buffer),
            *(batch.response[rows[answered]], batch.response_size[rows[answered]]),
        ):
            told.append((template, answered[where]))
        told.append((None, np.flatnonzero(batch.fault[rows] >= 0)))
        shape = np.full(len(rows), -1)
        for number, (_, where) in enumerate(told):
            shape[where] = number
        for request, where in asked:
            for number in np.unique(shape[where]).tolist():
                if number >= 0:
                    mine = rows[where[shape[where] == number]]
                    yield Group(batch, mine, context, operation, request, told[number][0])
