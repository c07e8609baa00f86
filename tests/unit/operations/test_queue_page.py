"""The list of queues is told in pieces, while queues come and go."""

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.api import queues as api_queues
from rpcqm.base.errors import MQError
from rpcqm.operations import queue_order, queues
from rpcqm.operations.operations import Operations
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

NAMES = [f"q{number:02}" for number in range(10)]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_order, "PIECE", 3)
    monkeypatch.setattr(queues, "_PIECE", 3)


@pytest.fixture
def made(qm: RunningQueueManager) -> list[Queue]:
    return [qm.create(rf"private$\{name}") for name in reversed(NAMES)]


def names(operations: Operations, after: str | None = None, limit: int = 1000) -> list[object]:
    page = operations.queues.page(ADMINISTRATOR, after, limit)
    return [facts[0] for piece in page for _, facts in piece]


def test_it_is_for_administrators_before_anything_is_told(operations: Operations) -> None:
    with pytest.raises(MQError, match="ACCESS_DENIED"):
        operations.queues.page(ALICE, None, 10)


def test_pages_follow_each_other(operations: Operations, made: list[Queue]) -> None:
    found: list[object] = []
    after: str | None = None
    while True:
        page = operations.queues.page(ADMINISTRATOR, after, 4)
        piece = [facts[0] for piece in page for _, facts in piece]
        assert len(piece) == min(4, 10 - len(found))
        found += piece
        after = page.next
        if after is None:
            break
    assert found == NAMES


def test_no_piece_is_long(operations: Operations, made: list[Queue]) -> None:
    pieces = list(operations.queues.page(ADMINISTRATOR, None, 1000))
    assert max(map(len, pieces)) == 3
    assert sum(map(len, pieces)) == 10


def test_a_queue_that_is_deleted_meanwhile_is_left_out(
    qm: RunningQueueManager, operations: Operations, made: list[Queue]
) -> None:
    pieces = iter(operations.queues.page(ADMINISTRATOR, None, 1000))
    told = [facts[0] for _, facts in next(piece for piece in pieces if piece)]
    qm.done(qm.engine.queues.delete_queue(made[0], identity=ADMINISTRATOR))
    told += [facts[0] for piece in pieces for _, facts in piece]
    assert told == NAMES[:-1]


def test_a_queue_that_comes_while_others_are_put_in_order_is_in_the_next_list(
    qm: RunningQueueManager, operations: Operations, made: list[Queue]
) -> None:
    pieces = iter(operations.queues.page(ADMINISTRATOR, None, 1000))
    assert not next(pieces)
    qm.create(r"private$\q05a")
    assert [facts[0] for piece in pieces for _, facts in piece] == NAMES
    assert names(operations) == sorted([*NAMES, "q05a"])


def test_putting_in_order_is_done_once_for_all_pages(
    operations: Operations, made: list[Queue]
) -> None:
    assert names(operations)
    pieces = list(operations.queues.page(ADMINISTRATOR, NAMES[3], 2))
    assert [len(piece) for piece in pieces] == [2]


@pytest.mark.bound("program.queue_texts")
def test_texts_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_queues, "MOST_TEXTS", 2)
    monkeypatch.setattr(api_queues, "described_queue", lambda facts: {"name": facts[0]})
    texts = api_queues._Texts()
    for number, name in enumerate("abca"):
        assert texts.of(number, (name,)) == b'{"name":"%s"}' % name.encode()
        assert len(texts._known) <= 2
    assert texts.of(3, ("d",)) == b'{"name":"d"}'
