"""How much of a queue a stream takes at once, by messages, octets and partitions."""

import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rpcqm.pipeline import queue_rows, queue_source
from rpcqm.pipeline.queue_options import QueueOptions
from rpcqm.pipeline.queue_source import IdentifierPartition, divided, fitting


class Sizes:
    """A reader that knows how large messages are; `asked` counts its calls."""

    def __init__(self, *sizes: int) -> None:
        self._sizes = sizes
        self.asked = 0

    def sizes(self, identifiers: Sequence[int]) -> list[int]:
        self.asked += 1
        return [self._sizes[each] for each in identifiers]


@pytest.mark.parametrize(
    ("sizes", "room", "taken", "asked"),
    [
        ((), 10, 0, 0),
        ((5, 5, 5), 100, 3, 2),
        ((5, 5, 5), 10, 2, 2),
        ((5, 5, 5), 9, 1, 1),
        ((500, 5, 5), 10, 1, 1),
        ((0, 500, 5), 10, 1, 1),
    ],
)
def test_a_batch_ends_where_the_octets_do(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], room: int, taken: int, asked: int
) -> None:
    """At least one message is taken, and no more sizes are asked for than it needs."""
    monkeypatch.setattr(queue_source, "SIZES_AT_ONCE", 2)
    reader = Sizes(*sizes)
    found = fitting(cast(Any, reader), list(range(len(sizes))), room)
    assert (found, reader.asked) == (list(range(taken)), asked)


@pytest.mark.parametrize(("count", "most", "sizes"), [(5, 2, [3, 2]), (2, 9, [1, 1]), (0, 3, [])])
def test_partitions_are_of_one_size(count: int, most: int, sizes: list[int]) -> None:
    parts = divided(list(range(count)), most)
    found = [each.identifiers for each in parts if isinstance(each, IdentifierPartition)]
    assert [len(each or ()) for each in found] == sizes
    assert [key for each in found for key in each or ()] == list(range(count))


def test_large_messages_go_on_in_batches_of_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_rows, "_batch", list)
    monkeypatch.setattr(queue_rows, "OCTETS_OF_BATCH", 10)
    monkeypatch.setattr(queue_rows, "BATCH", 3)
    messages = [SimpleNamespace(buffer=bytes(size)) for size in (12, 4, 5, 1, 1, 1, 1)]
    batches = [
        [len(each.buffer) for each in some]
        for some in queue_rows.batches(cast(Any, iter(messages)))
    ]
    assert batches == [[12], [4, 5, 1], [1, 1, 1], []]


@pytest.mark.parametrize("name", ["maxMessagesPerBatch", "maxBytesPerBatch", "partitions"])
@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", ""])
def test_options_that_are_no_numbers_are_refused(name: str, text: str) -> None:
    options = {"queue": "orders", "socket": "s", name.lower(): text}
    with pytest.raises(ValueError, match=f"the option {name} is a whole number"):
        QueueOptions.of(options)


def test_what_only_plans_loads_neither_the_client_nor_arrow() -> None:
    """Spark starts five processes for a query, and three of them only ask what there is."""
    program = """
import sys
from rpcqm.pipeline.queue_source import QueueSource
source = QueueSource({"queue": "orders", "socket": "s"})
source.schema(), source.reader(None), source.streamReader(None).getDefaultReadLimit()
heavy = ("pyarrow", "rpcqm.client", "rpcqm.capture")
print([name for name in sys.modules if name.startswith(heavy)])
"""
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"
