"""The lines of `report.line` for many calls at once."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpcqm.capture import report
from rpcqm.capture.columnar.analysis import Single
from rpcqm.capture.columnar.batch import CallBatch
from rpcqm.capture.columnar.call_queues import QueueTracker
from rpcqm.capture.columnar.record_batch import Array
from rpcqm.capture.columnar.rows import are_far_apart, status_names
from rpcqm.capture.columnar.same_shape import SameShapeCalls
from rpcqm.capture.columnar.template import Leaf, Stubs, Template
from rpcqm.capture.columnar.texts import (
    Text,
    arrow,
    column,
    constant,
    decimal,
    fixed,
    instead,
    is_empty,
    joined,
    named,
    strings,
    truths,
)

_SECOND, _MILLION = 1_000_000_000, 1_000_000
_SHORT = 0xFFFF
"""Larger numbers are shown in hexadecimal."""


class Listing:
    """Takes what a ColumnarAnalysis gives and writes a line for each call, in their order.

    `calls` and `sealed` count by conversation. `visible` makes a text fit for a terminal.
    """

    def __init__(self, write: Callable[[str], object], visible: Callable[[str], str]) -> None:
        self.calls: Counter[int] = Counter()
        self.sealed: Counter[int] = Counter()
        self._write = write
        self._visible = visible
        self._teller = QueueTracker()

    def take(self, singles: list[Single], batch: CallBatch | None) -> None:
        told = self._teller.tell(singles, batch)
        index, lines = [], []
        for _, exchange, _ in told.singles:
            self.calls[exchange.conversation.number] += 1
            self.sealed[exchange.conversation.number] += exchange.sealed
        for group, queues in told.groups:
            self._count(group)
            found = group_lines(group, queues, self._visible)
            rows = np.arange(len(group.rows))
            if found is not None:
                index.append(group.batch.index[group.rows])
                lines.append(found)
                continue
            for row, call in zip(rows, group.batch.chosen(group.rows).calls(), strict=True):
                told.singles.append((*call, queues[int(row)].as_py()))
        alone = [self._visible(report.line(e, queue)) + "\n" for _, e, queue in told.singles]
        index.append(np.array([at for at, _, _ in told.singles], np.int64))
        lines.append(strings(alone))
        order = np.argsort(np.concatenate(index), kind="stable")
        self._write_all(pa.concat_arrays(lines).take(arrow(order)))

    def _count(self, group: SameShapeCalls) -> None:
        counts = np.bincount(group.batch.conversation[group.rows]).tolist()
        for conversation, count in zip(group.batch.conversations, counts, strict=False):
            self.calls[conversation.number] += count

    def _write_all(self, lines: Text) -> None:
        if len(lines):
            whole = pa.ListArray.from_arrays(arrow(np.array([0, len(lines)], np.int32)), lines)
            self._write(pc.binary_join(whole, constant(""))[0].as_py())


def group_lines(group: SameShapeCalls, queues: Text, visible: Callable[[str], str]) -> Text | None:
    """The lines of the calls of a group; None if they must be made one by one."""
    arguments = _arguments(group)
    if arguments is None or are_far_apart(group).any():
        return None
    status = status_names(group, group.status())
    fault = "" if group.response is not None else "fault "
    parts = (
        times(group.batch.time[group.rows]),
        _who(group),
        _each(status, lambda text: f"{fault + text:<28} "),
        milliseconds(group.batch.ended[group.rows] - group.batch.time[group.rows]),
        _each(queues, lambda text: visible(f" queue={text}") if text else ""),
        arguments,
        "\n",
    )
    return joined(*parts)


def _each(texts: Text, change: Callable[[str], str]) -> Text:
    """Texts of which many are alike, with `change` applied once to each different one."""
    encoded = texts.dictionary_encode()
    changed = strings([change(each) for each in encoded.dictionary.to_pylist()])
    return changed.take(encoded.indices)


def _who(group: SameShapeCalls) -> Text:
    method = f"{group.context.name}.{group.operation.name}"
    texts = [f" {c.number:>4} {c.client:<21} {method:<32} " for c in group.batch.conversations]
    return strings(texts).take(arrow(group.batch.conversation[group.rows]))


def times(nanoseconds: Array) -> Text:
    """Moments as `report.utc_time` has them."""
    seconds, rest = np.divmod(nanoseconds, _SECOND)
    return joined(named(seconds, _second), _digits(rest // 1000, 6), "Z")


def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S.")


def _digits(numbers: Array, count: int) -> Text:
    """Numbers with leading zeros."""
    powers = 10 ** np.arange(count - 1, -1, -1)
    return fixed((numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8))


def milliseconds(nanoseconds: Array) -> Text:
    """Durations as `{:9.3f}` has them."""
    rounded = (nanoseconds + 500) // 1000
    text = joined(pc.utf8_lpad(decimal(rounded // 1000), 5), ".", _digits(rounded % 1000, 3))
    # Python rounds a half by the binary fraction that stands for it: it decides itself.
    odd = (nanoseconds % 1000 == 500) | (nanoseconds < 0)
    if not odd.any():
        return text
    exact = [f"{each / _MILLION:9.3f}" for each in nanoseconds[odd].tolist()]
    return pc.replace_with_mask(text, truths(odd), strings(exact))


def _arguments(group: SameShapeCalls) -> Text | None:
    """The parameters that matter, each behind a blank; a single blank for a call without any."""
    count = len(group.rows)
    asked = _side(group.request, group.asked)
    told = [] if group.response is None else _side(group.response, group.told)
    if asked is None or told is None:
        return None
    answer = column(told, count) if told else ""
    if not isinstance(answer, str):
        arrow = instead(is_empty(answer), "", " →")
        answer = joined(arrow, answer)
    both = column([*asked, answer], count)
    return instead(is_empty(both), " ", both)


def _side(template: Template, stubs: Stubs) -> list[Text | str] | None:
    """Texts of the parameters of one side; None if they depend on more than whole numbers."""
    parts: list[Text | str] = []
    for name in report.shown_names(template.value.__slots__):
        if any(leaf.path[0] == name and len(leaf.path) > 1 for leaf in template.counted_leaves):
            return None
        leaf = template.leaf(name)
        if leaf is None or leaf.is_octets:
            text = report.argument_text(name, getattr(template.value, name, None))
            parts.append(f" {text}" if text else "")
        elif leaf.is_number:
            parts.append(_numbers(name, leaf, stubs))
        else:
            parts += [f" {name}=", leaf.text(stubs)]
    return parts


def _numbers(name: str, leaf: Leaf, stubs: Stubs) -> Text | str:
    numbers = stubs.numbers(leaf.offset, leaf.code)

    def text(number: int) -> str:
        found = report.argument_text(name, number)
        return f" {found}" if found else ""

    if (numbers == numbers[0]).all():
        return text(int(numbers[0]))
    plain = ((numbers > 0) & (numbers <= _SHORT)).all()
    if plain and text(1) == f" {name}=1":
        return joined(f" {name}=", decimal(numbers))
    return named(numbers, text)
