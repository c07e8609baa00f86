"""Which queues calls are about: the calls that open and close handles are taken in order."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rpcqm.capture.analysis import Exchange
from rpcqm.capture.columnar.analysis import Single
from rpcqm.capture.columnar.batch import CallBatch
from rpcqm.capture.columnar.record_batch import Array
from rpcqm.capture.columnar.same_shape import SameShapeCalls, ShapeGrouper
from rpcqm.capture.columnar.texts import Text, arrow, numbered, strings
from rpcqm.capture.conversation.subjects import Subjects, handles_used

_HANDLE_WORDS = 5
"""A context handle as numbers of 32 bits."""


@dataclass(slots=True)
class _Change:
    """At the record `index` a handle began to stand for another queue than `before`."""

    index: int
    server: str
    handle: bytes
    before: str


@dataclass(slots=True)
class CallQueues:
    """The calls of a batch in groups with their queues, and the exchanges one by one."""

    groups: list[tuple[SameShapeCalls, Text]]
    singles: list[tuple[int, Exchange, str]]


class QueueTracker:
    """Takes what a ColumnarAnalysis gives; tells groups and single exchanges with their queues."""

    def __init__(self) -> None:
        self._grouper = ShapeGrouper()
        self._subjects = Subjects()
        self._subjects.changed = self._changed
        self._changes: list[_Change] = []
        self._index = 0

    def _changed(self, server: str, handle: bytes, before: str) -> None:
        self._changes.append(_Change(self._index, server, handle, before))

    def tell(self, singles: list[Single], batch: CallBatch | None) -> CallQueues:
        groups = list(self._grouper.groups(batch)) if batch is not None else []
        alone = sorted([*singles, *_left(batch, groups)], key=lambda single: single[0])
        self._changes.clear()
        told = []
        for self._index, exchange in alone:
            told.append((self._index, exchange, self._subjects.queue(exchange)))
        return CallQueues([(group, self._queues(group)) for group in groups], told)

    def _queues(self, group: SameShapeCalls) -> Text:
        """The queue of each call of a group; empty where it is not known."""
        names = handles_used(group.operation) or ()
        owners = group.batch.conversation[group.rows]
        known = np.full(len(group.rows), -1)
        texts: list[str] = []
        for name in names:
            words = np.ascontiguousarray(group.handle(name)).view("<u4")
            code, first = numbered(owners, *(words[:, n] for n in range(_HANDLE_WORDS)))
            servers = [group.batch.conversations[each].server for each in owners[first].tolist()]
            handles = [words[each].tobytes() for each in first.tolist()]
            keys = list(zip(servers, handles, strict=True))
            found, code = self._looked_up(keys, code, group.batch.index[group.rows])
            wanted = np.array([bool(text) for text in found])[code]
            known = np.where(wanted, code + len(texts), known)
            texts += found
        texts.append("")
        return strings(texts).take(arrow(known % len(texts)))

    def _looked_up(
        self, keys: list[tuple[str, bytes]], code: Array, index: Array
    ) -> tuple[list[str], Array]:
        """What handles stand for, at the time of each call."""
        found = [self._subjects.queue_of(*key) for key in keys]
        for change in reversed(self._changes):
            changed = change.server, change.handle
            # Several connections may use one handle.
            same = [number for number, key in enumerate(keys) if key == changed]
            if same:
                early = np.isin(code, same) & (index < change.index)
                code = np.where(early, len(found), code)
                found.append(change.before)
                keys.append(changed)
        return found, code


def _left(batch: CallBatch | None, groups: Iterable[SameShapeCalls]) -> list[Single]:
    """The calls of a batch that are in no group."""
    if batch is None:
        return []
    left = np.ones(len(batch), bool)
    for group in groups:
        left[group.rows] = False
    return list(batch.chosen(np.flatnonzero(left)).calls())
