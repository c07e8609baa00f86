"""Calls of a batch that look alike: same method, same shape of request and of response."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpcqm.capture.columnar.batch import CallBatch
from rpcqm.capture.columnar.record_batch import Array, distinct
from rpcqm.capture.columnar.template import FieldPath, Leaf, Stubs, Template, Templates
from rpcqm.capture.columnar.texts import Text, column, constant, decimal, guid_text, instead
from rpcqm.capture.conversation.call import returns_status
from rpcqm.capture.conversation.interfaces import Context
from rpcqm.capture.conversation.subjects import handles_used, identifier_of
from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.codec.packet.base import SIGNATURE_OCTETS
from rpcqm.codec.packet.fields import MESSAGE_ID, NAMES_OFFSET, SIGNATURE, SOURCE_QUEUE_MANAGER
from rpcqm.codec.packet.types import NULL_IDENTIFIER
from rpcqm.codec.types.mqmq import OBJECTID

_NO_MESSAGE = constant(str(NULL_IDENTIFIER))


@dataclass(slots=True)
class SameShapeCalls:
    """Some calls of a batch; `response` is None for calls that ended in a fault."""

    batch: CallBatch
    rows: Array
    context: Context
    operation: Operation
    request: Template
    response: Template | None
    asked: Stubs
    told: Stubs

    def json(self, response: bool) -> Text:
        """The parameters of requests or responses as JSON."""
        if not response:
            return self.request.json(self.asked)
        if self.response is None:
            return pa.nulls(len(self.rows), pa.string())
        return self.response.json(self.told)

    def status(self) -> Array:
        """How the calls ended."""
        if self.response is None:
            return self.batch.fault[self.rows]
        name = "result" if returns_status(self.operation) else "status"
        leaf = self.response.leaf(name)
        if leaf is None or not leaf.is_number:
            value = int(getattr(self.response.value, name, 0)) & 0xFFFFFFFF
            return np.full(len(self.rows), value, np.int64)
        return self.told.numbers(leaf.offset, leaf.code).astype(np.int64) & 0xFFFFFFFF

    def handle(self, name: str) -> Array:
        """The octets of a context handle of the requests, as rows."""
        leaf = self.request.leaf(name)
        if leaf is not None:
            return self.asked.octets(leaf.offset, leaf.size)
        octets = getattr(self.request.value, name)
        return np.tile(np.frombuffer(octets, np.uint8), (len(self.rows), 1))

    def identifiers(self) -> list[Text]:
        """The identifiers of the messages that the calls carry: columns, null where is none."""
        found: list[Text] = []
        for template, stubs in ((self.request, self.asked), (self.response, self.told)):
            for path, value in template.carriers if template is not None else ():
                assert template is not None
                text = _identifiers(template, stubs, path, value)
                if text is not None:
                    found.append(text)
        return found


def _identifiers(template: Template, stubs: Stubs, path: FieldPath, value: object) -> Text | None:
    """The identifiers in one value of some stubs; None if no stub has one."""
    if isinstance(value, OBJECTID):
        leaves = ((template.leaf(*path, name), name) for name in ("Lineage", "Uniquifier"))
        lineage, number = (
            leaf.text(stubs) if leaf else str(getattr(value, name)) for leaf, name in leaves
        )
        found = column(("{", lineage, "}\\", number), len(stubs))
        return instead(pc.equal(found, _NO_MESSAGE), None, found)
    leaf = template.leaf(*path)
    if leaf is not None:
        return _in_packets(stubs, leaf)
    text = identifier_of(value)
    return pa.repeat(constant(text), len(stubs)) if text else None


def _in_packets(stubs: Stubs, leaf: Leaf) -> Text | None:
    if leaf.size < NAMES_OFFSET:
        return None
    head = stubs.octets(leaf.offset, NAMES_OFFSET)
    packets = (head[:, SIGNATURE] == np.frombuffer(SIGNATURE_OCTETS, np.uint8)).all(axis=1)
    if not packets.any():
        return None
    ordinal = stubs.numbers(leaf.offset + MESSAGE_ID.start, "<u4")
    text = column(
        ("{", guid_text(head[:, SOURCE_QUEUE_MANAGER]), "}\\", decimal(ordinal)), len(head)
    )
    return text if packets.all() else pa.array(text.to_pylist(), mask=~packets)


class ShapeGrouper:
    """Finds the groups of batches; keeps what it has learnt of their shapes.

    In no group are calls that cannot be decoded, that are like few others, or that tell what
    handles stand for: they must be looked at in their order.
    """

    def __init__(self) -> None:
        self._templates = Templates()

    def groups(self, batch: CallBatch) -> Iterator[SameShapeCalls]:
        """The groups of a batch; calls that are in none of them are decoded by themselves."""
        both = batch.context << 16 | batch.opnum
        for each in distinct(both):
            context = batch.contexts[each >> 16]
            operation = context.operation(each & 0xFFFF)
            if operation is None or context.syntax is None:
                continue
            if handles_used(operation) is not None:
                rows = np.flatnonzero(both == each)
                yield from self._of_method(batch, rows, context, operation)

    def _of_method(
        self, batch: CallBatch, rows: Array, context: Context, operation: Operation
    ) -> Iterator[SameShapeCalls]:
        assert context.syntax is not None
        asked = self._templates.matched(
            *(operation, context.syntax, False, batch.buffer),
            *(batch.request[rows], batch.request_size[rows]),
        )
        told = list(self._answers(batch, rows, operation, context.syntax))
        shape, place = np.full(len(rows), -1), np.zeros(len(rows), np.int64)
        for number, (_, where, _) in enumerate(told):
            shape[where], place[where] = number, np.arange(len(where))
        for request, where, stubs in asked:
            for number in distinct(shape[where]):
                mine = np.flatnonzero(shape[where] == number)
                if number >= 0:
                    response, _, answers = told[number]
                    of_both = where[mine]
                    ours, theirs = stubs.chosen(mine), answers.chosen(place[of_both])
                    yield SameShapeCalls(
                        *(batch, rows[of_both], context, operation),
                        *(request, response, ours, theirs),
                    )

    def _answers(
        self, batch: CallBatch, rows: Array, operation: Operation, syntax: TransferSyntax
    ) -> Iterator[tuple[Template | None, Array, Stubs]]:
        faults = batch.fault[rows] >= 0
        answered = np.flatnonzero(~faults)
        for template, where, stubs in self._templates.matched(
            *(operation, syntax, True, batch.buffer),
            *(batch.response[rows[answered]], batch.response_size[rows[answered]]),
        ):
            yield template, answered[where], stubs
        if faults.any():
            where = np.flatnonzero(faults)
            yield None, where, Stubs(batch.buffer, batch.response[rows[where]], 0)
