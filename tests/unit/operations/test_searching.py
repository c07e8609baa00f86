"""Searches: what they find, in bounded pieces between which others are served, for whom it is."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.metrics import Metrics
from rpcqm.codec.bodies.described import LONGEST_DECODED
from rpcqm.codec.names.written import format_name
from rpcqm.codec.packet.enums import SenderIdentifierType
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations import searching
from rpcqm.operations.messages import PAGE_BYTES
from rpcqm.operations.operations import Operations
from rpcqm.operations.pacing import CALM, REST, Pace
from rpcqm.operations.searching import (
    LOOKED_AT_ONCE,
    MOST_SEARCHES,
    NAMED_UNREAD,
    READ_IN_TURN,
    READ_ONCE,
    SEARCHES_OF_ACCOUNT,
    Behind,
    Search,
    SearchPage,
)
from rpcqm.qm import message_scan
from rpcqm.qm.message_counts import ARRIVED
from rpcqm.qm.message_scan import OCTETS_AT_ONCE, PACKETS_AT_ONCE, ROWS_AT_ONCE, look_through
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE, BOB

ORDERS = format_name("orders")


@pytest.fixture
def operations(qm: RunningQueueManager, tmp_path: Path) -> Operations:
    qm.create()
    return operations_of(qm, tmp_path)


def send(qm: RunningQueueManager, *labels: str, queue: Queue | None = None, **more: object) -> None:
    for label in labels:
        more.setdefault("delivery_guarantee", 0)
        qm.enqueue(queue or qm.find(), label=label, **more)  # type: ignore[arg-type]
    qm.settle()


def find(
    operations: Operations,
    after: int | None = None,
    limit: int = 1000,
    who: Identity = ADMINISTRATOR,
    **conditions: str,
) -> SearchPage:
    operation = operations.searching
    search = Search(operation.matcher(who, conditions), limit)
    return asyncio.run(operation.search(who, ORDERS, search, after))


def find_all(
    operations: Operations,
    after: Behind | None = None,
    limit: int = 1000,
    who: Identity = ADMINISTRATOR,
    **conditions: str,
) -> SearchPage:
    operation = operations.searching
    search = Search(operation.matcher(who, conditions), limit)
    return asyncio.run(operation.search_all(who, search, after))


def labels(page: SearchPage) -> list[str]:
    return [each.attributes.label for each in page.messages]


def places(page: SearchPage) -> list[str]:
    return [each.queue.full_name.partition("\\")[2] for each in page.messages if each.queue]


def test_messages_are_found_in_the_order_of_the_queue(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, "order 1", "bill 1", "order 2")
    send(qm, "order 0", priority=7)
    page = find(operations, label="order*")
    assert labels(page) == ["order 0", "order 1", "order 2"]
    assert (page.looked_at, page.next, page.unread) == (4, None, 0)
    assert labels(find(operations, label="order*", priority="7")) == ["order 0"]


def test_a_page_goes_on_behind_the_last_one(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, *(f"order {number}" for number in range(5)))
    first = find(operations, limit=2, label="order*")
    assert (labels(first), first.looked_at) == (["order 0", "order 1"], 2)
    assert first.next is not None
    send(qm, "order 5")
    rest = find(operations, first.next.key, label="order*")
    assert labels(rest) == [f"order {number}" for number in range(2, 6)]
    assert rest.next is None


def test_what_somebody_holds_is_not_found(qm: RunningQueueManager, operations: Operations) -> None:
    send(qm, "order 1", "order 2")
    qm.lock(qm.open(qm.find()))
    page = find(operations, label="order*")
    assert (labels(page), page.looked_at) == (["order 2"], 1)


def test_a_locked_message_that_may_be_peeked_is_found_in_its_place(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, "order 1", "order 2", "order 3")
    opened = qm.open(qm.find())
    first, second = qm.lock(opened), qm.lock(opened)
    qm.find().peekable_when_locked.add(second.lookup_identifier)
    assert labels(find(operations, label="*")) == ["order 2", "order 3"]
    assert labels(find(operations, second.lookup_identifier, label="*")) == ["order 3"]
    assert first.lookup_identifier < second.lookup_identifier


def test_the_class_of_a_dead_letter_tells_why_it_is_one(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, "order 1", negative_journaling_requested=True)
    qm.done(operations.messages.purge(ADMINISTRATOR, ORDERS))
    matcher = operations.searching.matcher(ADMINISTRATOR, {"class": "NACK_Q_PURGED"})
    page = asyncio.run(operations.searching.search_all(ADMINISTRATOR, Search(matcher)))
    assert (labels(page), places(page)) == (["order 1"], ["system$;DEADLETTER"])
    assert qm.engine.dead_letters.unread() == 1, "a search everywhere is no look at dead letters"


def test_a_sender_may_be_named(qm: RunningQueueManager, operations: Operations) -> None:
    sids = [Sid.parse(each.sid).encode() for each in (ALICE, BOB)]
    for name, sid in zip(("a", "b"), sids, strict=True):
        kind = SenderIdentifierType.SID
        send(qm, name, sender_identifier_type=kind, sender_identifier=sid)
    assert labels(find(operations, sender=ALICE.sid)) == ["a"]
    with pytest.raises(MQError, match="`alice` is neither an account here nor a SID"):
        find(operations, sender="alice")
    qm.find().security = b""
    matcher = operations.searching.matcher(ALICE, {"sender": "Alice"})
    assert str(matcher.wanted.sender) == ALICE.sid


# Bounds


class Counted:
    """Counts what pieces look at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pieces: list[message_scan.Piece] = []
        monkeypatch.setattr(searching, "look_through", self._look)

    def _look(self, *arguments: object) -> message_scan.Piece:
        piece = look_through(*arguments)  # type: ignore[arg-type]
        self.pieces.append(piece)
        return piece


def test_a_piece_reads_a_bounded_number_of_packets(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    send(qm, *["order"] * (2 * PACKETS_AT_ONCE + 1))
    assert len(find(operations, label="order").messages) == 2 * PACKETS_AT_ONCE + 1
    sizes = [each.looked_at for each in counted.pieces]
    assert sizes == [PACKETS_AT_ONCE, PACKETS_AT_ONCE, 1]
    assert operations.searching.pace.pieces >= len(sizes)


def test_a_piece_reads_a_bounded_number_of_octets(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    send(qm, *["order"] * 5, body=bytes(OCTETS_AT_ONCE // 2))
    send(qm, *["order"] * 2, body=bytes(2 * OCTETS_AT_ONCE))
    assert len(find(operations, label="order").messages) == 7
    assert [each.looked_at for each in counted.pieces] == [1, 1, 1, 1, 1, 1, 1]


def test_a_piece_looks_at_a_bounded_number_of_rows_without_their_packets(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    send(qm, *["order"] * (ROWS_AT_ONCE + 1))
    page = find(operations, since="1970-01-01", until="1970-01-02")
    assert [each.looked_at for each in counted.pieces] == [ROWS_AT_ONCE, 1]
    assert (page.octets, page.looked_at) == (0, ROWS_AT_ONCE + 1)


@pytest.mark.bound("search.looked_at", "search.octets")
def test_a_page_ends_when_enough_was_looked_at(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (LOOKED_AT_ONCE, READ_ONCE) == (20_000, 64 << 20)
    send(qm, *["order"] * (PACKETS_AT_ONCE + 1), "bill")
    monkeypatch.setattr(searching, "LOOKED_AT_ONCE", PACKETS_AT_ONCE + 1)
    page = find(operations, label="bill")
    assert (labels(page), page.next) == (["bill"], None), "it looked at the rest of the queue"
    for bound, value in (("LOOKED_AT_ONCE", PACKETS_AT_ONCE), ("READ_ONCE", page.octets // 2)):
        monkeypatch.setattr(searching, "LOOKED_AT_ONCE", LOOKED_AT_ONCE)
        monkeypatch.setattr(searching, bound, value)
        first = find(operations, label="bill")
        assert (labels(first), first.looked_at) == ([], PACKETS_AT_ONCE)
        assert first.next is not None
        assert labels(find(operations, first.next.key, label="bill")) == ["bill"]


def test_a_page_ends_when_it_tells_enough(qm: RunningQueueManager, operations: Operations) -> None:
    send(qm, *["order"] * 6, body=bytes(PAGE_BYTES // 4))
    page = find(operations, label="order")
    assert len(page.messages) == 4
    assert page.next is not None
    assert len(find(operations, page.next.key, label="order").messages) == 2


@pytest.mark.bound("search.at_once", "search.of_account")
def test_so_many_searches_are_made_at_a_time(operations: Operations) -> None:
    running = operations.searching._running
    for own, others in ((SEARCHES_OF_ACCOUNT, 0), (0, MOST_SEARCHES)):
        running[:] = [ALICE.sid] * (own - 1) + ["S-1-0-0"] * (others - (others > 0))
        if own:
            find_all(operations, who=ALICE, label="x")
        running += [ALICE.sid if own else "S-1-0-0"]
        with pytest.raises(MQError) as refused:
            find_all(operations, who=ALICE, label="x")
        assert refused.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
        assert len(running) == max(own, others), "a search that was refused leaves nothing"


def test_bodies_are_read_in_the_turn_only_if_they_are_short(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside: list[int] = []
    run = operations.searching._reading.run

    async def count(work: Callable[[], list[object]]) -> list[object]:
        found = await run(work)
        beside.append(len(found))
        return found

    monkeypatch.setattr(operations.searching._reading, "run", count)
    send(qm, "short", body=b"<a>&#77;</a>")
    send(qm, "long", body=b"<a>&#77;</a>" + b" " * READ_IN_TURN)
    assert labels(find(operations, body="M")) == ["short", "long"]
    assert beside == [1]
    assert labels(find(operations, regex="M")) == ["short", "long"]
    assert sum(beside) == 3, "a regular expression is always looked for beside the loop"


def test_what_was_not_read_whole_is_told(qm: RunningQueueManager, operations: Operations) -> None:
    count = NAMED_UNREAD + 1
    send(qm, *["long"] * count, body=b"<a>&#77;</a>" + b" " * LONGEST_DECODED)
    page = find(operations, body="M")
    assert (labels(page), page.unread) == ([], count)
    assert [each.attributes.label for each in page.unread_first] == ["long"] * NAMED_UNREAD


# Whose they are


def test_only_what_the_caller_may_peek_is_searched(
    qm: RunningQueueManager, operations: Operations
) -> None:
    """An administrator without the right is no exception."""
    other = qm.create(r"private$\other")
    send(qm, "order 1")
    send(qm, "order 2", queue=other)
    assert labels(find_all(operations, label="order*")) == ["order 1", "order 2"]
    denied = "O:BAG:BAD:(D;;0x2;;;WD)(A;;0x2003f;;;WD)"
    _permit(qm, other, denied)
    for who in (ADMINISTRATOR, ALICE):
        assert "order 2" not in labels(find_all(operations, who=who, label="order*"))
    _permit(qm, qm.find(), denied)
    with pytest.raises(MQError) as refused:
        find(operations, label="order*")
    assert refused.value.status is HResult.MQ_ERROR_ACCESS_DENIED


@pytest.mark.parametrize("everywhere", [False, True])
def test_whoever_searches_a_queue_that_is_audited_is_written_down(
    qm: RunningQueueManager, operations: Operations, everywhere: bool
) -> None:
    """Once for each page, whether the queue is named or not (G719)."""
    send(qm, "order 1")
    _permit(qm, qm.find(), "O:BAG:BAD:(A;;0x2003f;;;WD)S:(AU;SAFA;0x7;;;WD)")
    with capture_logs() as logs:
        page = (find_all if everywhere else find)(operations, who=ALICE, label="order*")
    assert labels(page) == ["order 1"]
    granted = [(line["event"], line["who"], line["audited"]) for line in logs if "audited" in line]
    assert granted == [("access granted", ALICE.name, True)]


def _permit(qm: RunningQueueManager, queue: Queue, sddl: str) -> None:
    queue.security = parse_sddl(sddl).encode()


def test_all_queues_are_searched_page_by_page(
    qm: RunningQueueManager, operations: Operations
) -> None:
    for name in ("a", "b", "c"):
        queue = qm.create(rf"private$\{name}")
        send(qm, f"{name} 1", f"{name} 2", queue=queue)
    seen: list[str] = []
    after: Behind | None = None
    while True:
        page = find_all(operations, after, limit=1, label="*")
        seen += labels(page)
        if page.next is None:
            break
        after = Behind.read(str(page.next))
    assert seen == ["a 1", "a 2", "b 1", "b 2", "c 1", "c 2"]


def test_a_queue_that_is_deleted_between_two_pages_is_passed_by(
    qm: RunningQueueManager, operations: Operations
) -> None:
    for name in ("a", "b"):
        send(qm, f"{name} 1", f"{name} 2", queue=qm.create(rf"private$\{name}"))
    page = find_all(operations, limit=1, label="*")
    qm.done(operations.queues.delete(ADMINISTRATOR, format_name("a")))
    assert labels(find_all(operations, page.next, label="*")) == ["b 1", "b 2"]


@pytest.mark.parametrize("text", ["", "1", "-", "x-1", "1-x", "1-99999999999999999999", "1-1-1"])
def test_a_wrong_place_has_one_sentence(text: str) -> None:
    with pytest.raises(MQError, match="is not where a search goes on: give `next` of the last"):
        Behind.read(text)


def meanwhile(
    operations: Operations, search: Callable[[], Awaitable[SearchPage]], act: Callable[[], object]
) -> SearchPage:
    """Do something after the first piece of a search."""

    async def run() -> SearchPage:
        task = asyncio.ensure_future(search())
        while not operations.searching.pace.pieces:
            await asyncio.sleep(0)
        act()
        return await task

    return asyncio.run(run())


def test_a_queue_that_is_deleted_meanwhile_ends_its_search(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, *["order"] * (2 * PACKETS_AT_ONCE))
    matcher = operations.searching.matcher(ADMINISTRATOR, {"label": "x"})

    def delete() -> None:
        qm.done(operations.queues.delete(ADMINISTRATOR, ORDERS))

    with pytest.raises(MQError) as refused:
        meanwhile(
            operations,
            lambda: operations.searching.search(ADMINISTRATOR, ORDERS, Search(matcher)),
            delete,
        )
    assert refused.value.status is HResult.MQ_ERROR_QUEUE_DELETED
    assert operations.searching._running == []


def test_a_search_everywhere_goes_on_behind_a_queue_that_is_deleted_meanwhile(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, *["order"] * (2 * PACKETS_AT_ONCE))
    send(qm, "other", queue=qm.create(r"private$\other"))
    matcher = operations.searching.matcher(ADMINISTRATOR, {"label": "*"})
    page = meanwhile(
        operations,
        lambda: operations.searching.search_all(ADMINISTRATOR, Search(matcher, 1000)),
        lambda: qm.done(operations.queues.delete(ADMINISTRATOR, ORDERS)),
    )
    assert labels(page) == ["order"] * PACKETS_AT_ONCE + ["other"]


def test_two_searches_at_once_find_the_same(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, *["order"] * (3 * PACKETS_AT_ONCE))
    operation = operations.searching
    search = Search(operation.matcher(ADMINISTRATOR, {"label": "order"}), 1000)

    async def both() -> list[SearchPage]:
        one = operation.search(ADMINISTRATOR, ORDERS, search)
        return list(await asyncio.gather(one, operation.search_all(ADMINISTRATOR, search)))

    for page in asyncio.run(both()):
        assert len(page.messages) == 3 * PACKETS_AT_ONCE


def test_a_search_that_is_given_up_ends_and_leaves_room_for_others(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, *["order"] * (3 * PACKETS_AT_ONCE))
    operation = operations.searching
    search = Search(operation.matcher(ADMINISTRATOR, {"label": "x"}))

    async def give_up() -> None:
        task = asyncio.ensure_future(operation.search(ADMINISTRATOR, ORDERS, search))
        while not operation.pace.pieces:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert operation.pace.pieces < 3
    assert operation._running == []
    assert qm.engine.opening.descriptors == {}


def test_many_queues_are_passed_by_in_pieces(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "PASSED_AT_ONCE", 2)
    for number in range(6):
        qm.create(rf"private$\empty{number}")
    send(qm, "order", queue=qm.create(r"private$\last"))
    before = operations.searching.pace.pieces
    assert labels(find_all(operations, label="order")) == ["order"]
    assert operations.searching.pace.pieces - before > 3
    monkeypatch.setattr(searching, "LOOKED_AT_ONCE", 3)
    pages = [find_all(operations, label="order")]
    while pages[-1].next is not None:
        pages.append(find_all(operations, pages[-1].next, label="order"))
    assert [labels(page) for page in pages if page.messages] == [["order"]]
    assert len(pages) > 2


def test_who_may_not_log_on_any_more_is_told_nothing(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, "order")
    matcher = operations.searching.matcher(ADMINISTRATOR, {"label": "*"})
    with pytest.raises(MQError) as refused:
        asyncio.run(
            operations.searching.search(ADMINISTRATOR, ORDERS, Search(matcher, still=lambda: False))
        )
    assert refused.value.status is HResult.MQ_ERROR_ACCESS_DENIED


def test_a_search_leaves_nothing_open(qm: RunningQueueManager, operations: Operations) -> None:
    send(qm, "order")
    find(operations, label="*")
    assert qm.engine.opening.descriptors == {}
    qm.open(qm.find(), QueueAccessType.RECEIVE_ACCESS)


# Others are served between two pieces


class Watched:
    """A pace whose time stands still but for pieces, and what it sleeps."""

    def __init__(self) -> None:
        self.now, self.metrics = 0, Metrics()
        self.rests: list[float] = []
        self.pace = Pace(self.metrics, lambda: self.now, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.rests.append(seconds)

    def piece(self) -> None:
        self.now += 2_000_000

    def work(self) -> list[float]:
        self.rests.clear()
        asyncio.run(self.pace.work(self.piece))
        return [each for each in self.rests if each]


def test_others_come_between_two_pieces_and_nobody_waits_for_nobody() -> None:
    watched = Watched()
    for _ in range(3):
        assert watched.work() == []
        assert watched.rests == [0, 0]


def test_while_others_are_at_work_a_piece_is_followed_by_a_long_rest() -> None:
    watched = Watched()
    watched.work()
    watched.metrics.count(ARRIVED)
    assert watched.work() == [REST * 0.002]
    assert watched.work() == [REST * 0.002], "they come again soon"
    watched.now += CALM
    assert watched.work() == []
