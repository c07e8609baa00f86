"""Messages that somebody has chosen are moved, copied, sent again and removed (G613 to G618)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import format_name
from rpcqm.operations.audit import Act, listeners
from rpcqm.operations.dead_letters import Range
from rpcqm.operations.drafts import Draft
from rpcqm.operations.message_orders import LIFE, Doing, Order, UnknownOrderError, Wanted
from rpcqm.operations.operations import Operations
from rpcqm.operations.sent_again import edits_of
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

ORDERS, OTHER = format_name("orders"), format_name("other")
LATE = format_name("orders;late")
AWAY = FormatName.parse(r"DIRECT=OS:elsewhere\private$\far")


@pytest.fixture
def acts() -> Iterator[list[Act]]:
    told: list[Act] = []
    listeners.append(told.append)
    yield told
    listeners.remove(told.append)


@pytest.fixture
def two(qm: RunningQueueManager, operations: Operations) -> RunningQueueManager:
    qm.create()
    qm.create(r"private$\other")
    send(qm, operations, 3)
    return qm


def send(qm: RunningQueueManager, operations: Operations, count: int, **more: object) -> None:
    drafts = [Draft(b"body", str(number), **more) for number in range(count)]  # type: ignore[arg-type]
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), drafts))


def labels(operations: Operations, name: FormatName) -> list[str]:
    page = operations.messages.peek(ADMINISTRATOR, name, limit=2_000)
    return [message.attributes.label for message in page.messages]


def begun(qm: RunningQueueManager, operations: Operations, wanted: Wanted) -> Order:
    order = operations.message_orders.choose_all(ADMINISTRATOR, ORDERS)
    return qm.done(operations.message_orders.begin(ADMINISTRATOR, order.identifier, wanted))


def finished(qm: RunningQueueManager, operations: Operations, wanted: Wanted) -> Order:
    order = begun(qm, operations, wanted)
    while not order.ended:
        step = operations.message_orders.go_on(ADMINISTRATOR, order.identifier, order.step)
        order = qm.done(step)
    return order


def test_a_move_to_another_queue_is_one_commit(
    two: RunningQueueManager, operations: Operations, tmp_path: Path
) -> None:
    chosen = operations.message_orders.choose_all(ADMINISTRATOR, ORDERS)
    wanted = Wanted(Doing.MOVE, OTHER)
    moving = operations.message_orders.begin(ADMINISTRATOR, chosen.identifier, wanted)
    two.crash()
    assert not moving.done
    operations = operations_of(two, tmp_path)
    assert (labels(operations, ORDERS), labels(operations, OTHER)) == (["0", "1", "2"], [])
    done = begun(two, operations, wanted)
    assert (done.done, done.ended, done.staying) == (3, True, {})
    two.crash()
    operations = operations_of(two, tmp_path)
    assert (labels(operations, ORDERS), labels(operations, OTHER)) == ([], ["0", "1", "2"])


def test_messages_move_within_this_queue_manager_during_maintenance(
    two: RunningQueueManager, operations: Operations
) -> None:
    """Copies, and what would go elsewhere, are new messages (G631)."""
    two.engine.begin_maintenance("alice", "a new disk")
    for wanted in (Wanted(Doing.COPY, OTHER), Wanted(Doing.MOVE, AWAY)):
        order = begun(two, operations, wanted)
        assert (order.done, order.staying.total()) == (0, 3)
        assert all("a new disk" in detail for _, detail in order.staying)
    assert begun(two, operations, Wanted(Doing.MOVE, OTHER)).done == 3
    assert (labels(operations, ORDERS), labels(operations, OTHER)) == ([], ["0", "1", "2"])


def test_a_move_sends_anew_and_keeps_what_the_message_says(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    qm.create(r"private$\other")
    more = {"priority": 5, "application_tag": 7, "response_queue": "answers", "ttbr": 900}
    send(qm, operations, 1, **more)
    (old,) = operations.messages.peek(ADMINISTRATOR, ORDERS).messages
    begun(qm, operations, Wanted(Doing.MOVE, OTHER))
    (new,) = operations.messages.peek(ADMINISTRATOR, OTHER).messages
    was, now = old.attributes, new.attributes
    assert now.identifier != was.identifier
    for kept in ("body", "label", "priority", "application_tag", "time_to_be_received"):
        assert getattr(now, kept) == getattr(was, kept), kept
    assert now.response_queue_format_name == was.response_queue_format_name
    assert now.destination_queue_format_name == OTHER


def test_a_move_to_a_subqueue_is_one_commit_and_keeps_all(
    two: RunningQueueManager, operations: Operations
) -> None:
    before = operations.messages.peek(ADMINISTRATOR, ORDERS, limit=9).messages
    assert begun(two, operations, Wanted(Doing.MOVE, LATE)).done == 3
    after = operations.messages.peek(ADMINISTRATOR, LATE, limit=9).messages
    told = [(each.lookup_identifier, each.packet) for each in before]
    assert [(each.lookup_identifier, each.packet) for each in after] == told


def test_a_move_is_received_by_nobody(qm: RunningQueueManager, operations: Operations) -> None:
    """Neither its journal nor its sender hears of a receive, and its trail tells of the move."""
    qm.create(journaling=True)
    qm.create(r"private$\other")
    qm.create(r"private$\acks")
    send(qm, operations, 1, admin_queue="acks", acknowledgements=("receive",))
    done = begun(qm, operations, Wanted(Doing.MOVE, OTHER))
    assert done.done == 1
    assert labels(operations, format_name("acks")) == []
    assert labels(operations, format_name("orders;journal")) == []
    (moved,) = operations.messages.peek(ADMINISTRATOR, OTHER).messages
    assert moved.attributes.acknowledgements_requested, "it asks for them itself"


def test_a_copy_stays_and_asks_for_no_acknowledgement(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    qm.create(r"private$\other")
    qm.create(r"private$\acks")
    send(qm, operations, 2, admin_queue="acks", acknowledgements=("receive", "arrival"))
    arrived = len(labels(operations, format_name("acks")))
    assert begun(qm, operations, Wanted(Doing.COPY, OTHER)).done == 2
    assert labels(operations, ORDERS) == labels(operations, OTHER) == ["0", "1"]
    assert len(labels(operations, format_name("acks"))) == arrived == 2


def test_what_is_sent_again_is_changed(two: RunningQueueManager, operations: Operations) -> None:
    changes = {
        "label": "new",
        "body_base64": "bmV3",
        "body_type": 0,
        "priority": 6,
        "ttbr": 60,
        "ttrq": "forever",
        "response_queue": "answers",
        "correlation_id": "0123456789abcdef0123456789abcdef01020304",
        "application_tag": 9,
        "recoverable": False,
        "journal": True,
        "dead_letter": True,
    }
    wanted = Wanted(Doing.RESEND, OTHER, edits_of(changes), keep=True)
    assert begun(two, operations, wanted).done == 3
    assert len(labels(operations, ORDERS)) == 3
    told = operations.messages.peek(ADMINISTRATOR, OTHER, limit=3).messages[0].attributes
    assert (told.label, told.body, told.priority) == ("new", b"new", 6)
    assert (told.time_to_be_received, told.application_tag) == (60, 9)
    assert str(told.response_queue_format_name).endswith("answers")
    assert told.delivery_guarantee == 0
    assert told.positive_journaling_requested
    assert told.negative_journaling_requested


@pytest.mark.parametrize(
    "changes",
    [
        {"label": 1},
        {"label": "x" * 300},
        {"priority": 8},
        {"priority": True},
        {"ttbr": "soon"},
        {"ttbr": -1},
        {"body_base64": "%"},
        {"admin_queue": "a;b;c"},
        {"acknowledgements": "arrival"},
        {"acknowledgements": ["soon"]},
        {"correlation_id": "x"},
        {"journal": "yes"},
        {"sender": "S-1-1-0"},
    ],
)
def test_a_change_that_no_message_can_have_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(MQError):
        edits_of(changes)


def test_what_is_sent_again_goes_to_where_it_was_for_and_leaves_its_place(
    two: RunningQueueManager, operations: Operations
) -> None:
    begun(two, operations, Wanted(Doing.MOVE, LATE))
    order = operations.message_orders.choose_all(ADMINISTRATOR, LATE)
    again = Wanted(Doing.RESEND)
    two.done(operations.message_orders.begin(ADMINISTRATOR, order.identifier, again))
    assert (labels(operations, LATE), labels(operations, ORDERS)) == ([], ["0", "1", "2"])


@pytest.mark.parametrize("transactional", [False, True])
def test_messages_go_to_a_queue_of_the_other_kind(
    qm: RunningQueueManager, operations: Operations, transactional: bool
) -> None:
    qm.create(transactional=transactional)
    qm.create(r"private$\other", transactional=not transactional)
    send(qm, operations, 2)
    assert begun(qm, operations, Wanted(Doing.MOVE, OTHER)).done == 2
    (first, _) = operations.messages.peek(ADMINISTRATOR, OTHER, limit=2).messages
    assert first.envelope.transactional is not transactional


def test_to_elsewhere_they_are_on_their_way_in_the_same_commit(
    two: RunningQueueManager, operations: Operations, tmp_path: Path
) -> None:
    assert begun(two, operations, Wanted(Doing.MOVE, AWAY)).done == 3
    two.crash()
    operations = operations_of(two, tmp_path)
    assert labels(operations, ORDERS) == []
    assert labels(operations, AWAY) == ["0", "1", "2"]


def test_what_came_later_is_not_touched_and_what_has_gone_is_counted(
    two: RunningQueueManager, operations: Operations
) -> None:
    order = operations.message_orders.choose_all(ADMINISTRATOR, ORDERS)
    first, second, _ = order.keys
    two.done(operations.messages.take(ADMINISTRATOR, ORDERS, first))
    two.engine.leases.hold(ORDERS, ADMINISTRATOR, second, 60_000)
    send(two, operations, 1)
    wanted = Wanted(Doing.MOVE, OTHER)
    done = two.done(operations.message_orders.begin(ADMINISTRATOR, order.identifier, wanted))
    assert (done.chosen, done.done, done.gone, done.staying.total()) == (3, 1, 1, 1)
    assert labels(operations, OTHER) == ["2"]
    assert labels(operations, ORDERS) == ["0"], "the one that came later"
    (reason,) = done.reasons()
    assert reason["code"] == "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"


def test_a_group_that_is_sent_twice_is_done_once(
    two: RunningQueueManager, operations: Operations, acts: list[Act]
) -> None:
    orders = operations.message_orders
    order = orders.choose_all(ADMINISTRATOR, ORDERS)
    wanted = Wanted(Doing.COPY, OTHER)
    both = [orders.begin(ADMINISTRATOR, order.identifier, wanted) for _ in range(2)]
    assert [two.done(each).done for each in both] == [3, 3]
    two.done(orders.begin(ADMINISTRATOR, order.identifier, Wanted(Doing.REMOVE)))
    two.done(orders.go_on(ADMINISTRATOR, order.identifier, order.step))
    assert labels(operations, ORDERS) == labels(operations, OTHER) == ["0", "1", "2"]
    assert [(each.action, each.more) for each in acts] == [
        ("copy messages", {"messages": 3, "to": r"WORKSTATION\private$\other"})
    ]


@pytest.mark.bound("orders.group")
@pytest.mark.bound("orders.group_bytes")
@pytest.mark.parametrize("bound", [("GROUP", 2), ("GROUP_BYTES", 300)])
def test_an_order_goes_on_in_groups_with_one_line(
    two: RunningQueueManager,
    operations: Operations,
    acts: list[Act],
    monkeypatch: pytest.MonkeyPatch,
    bound: tuple[str, int],
) -> None:
    monkeypatch.setattr(f"rpcqm.operations.message_groups.{bound[0]}", bound[1])
    monkeypatch.setattr(f"rpcqm.operations.message_orders.{bound[0]}", bound[1], raising=False)
    order = begun(two, operations, Wanted(Doing.MOVE, OTHER))
    assert (order.step, order.done, order.left, order.ended) == (1, 2, 1, False)
    again = operations.message_orders.go_on(ADMINISTRATOR, order.identifier, 0)
    assert two.done(again).done == 2, "that step was made"
    two.done(operations.message_orders.go_on(ADMINISTRATOR, order.identifier, 1))
    assert (order.done, order.ended) == (3, True)
    assert labels(operations, OTHER) == ["0", "1", "2"]
    assert [each.more["messages"] for each in acts] == [3]


def test_an_order_is_stopped_between_two_groups(
    two: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rpcqm.operations.message_orders.GROUP", 2)
    order = begun(two, operations, Wanted(Doing.REMOVE))
    operations.message_orders.stop(ADMINISTRATOR, order.identifier)
    two.done(operations.message_orders.go_on(ADMINISTRATOR, order.identifier, order.step))
    assert (order.done, order.left) == (2, 1)
    assert labels(operations, ORDERS) == ["2"]


def test_a_queue_that_is_full_in_the_middle_takes_what_fits_and_the_rest_stays(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    qm.create(r"private$\other", quota=1)
    drafts = [Draft(b"x" * 200, str(number)) for number in range(9)]
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), drafts))
    done = finished(qm, operations, Wanted(Doing.MOVE, OTHER))
    assert labels(operations, OTHER) + labels(operations, ORDERS) == list("012345678")
    assert done.done == len(labels(operations, OTHER)) > 0
    assert done.reasons() == [
        {
            "messages": 9 - done.done,
            "code": "MQ_ERROR_INSUFFICIENT_RESOURCES",
            "detail": "`other` is at its quota of 1 KB",
        }
    ]


def test_a_target_that_has_gone_in_the_middle_ends_the_order(
    two: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rpcqm.operations.message_orders.GROUP", 1)
    order = begun(two, operations, Wanted(Doing.COPY, OTHER))
    two.done(two.engine.queues.delete_queue(two.find(r"private$\other")))
    while not order.ended:
        step = operations.message_orders.go_on(ADMINISTRATOR, order.identifier, order.step)
        two.done(step)
    assert (order.done, order.staying.total()) == (1, 2)
    assert order.reasons()[0]["code"] == "MQ_ERROR_QUEUE_NOT_FOUND"


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        (Wanted(Doing.MOVE, ORDERS), HResult.MQ_ERROR_INVALID_PARAMETER),
        (Wanted(Doing.MOVE, format_name("other;late")), NtStatus.STATUS_INVALID_PARAMETER),
        (Wanted(Doing.MOVE, format_name("missing")), HResult.MQ_ERROR_QUEUE_NOT_FOUND),
        (
            Wanted(Doing.COPY, format_name("orders;late")),
            HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
        ),
        (
            Wanted(Doing.MOVE, format_name("orders;journal")),
            HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE,
        ),
    ],
)
def test_what_cannot_be_done_to_any_message_is_refused_at_once(
    two: RunningQueueManager, operations: Operations, wanted: Wanted, status: HResult
) -> None:
    with pytest.raises(MQError) as error:
        begun(two, operations, wanted)
    assert error.value.status is status
    assert labels(operations, ORDERS) == ["0", "1", "2"]


def test_an_order_is_of_its_account_and_is_not_known_after_a_restart(
    two: RunningQueueManager, operations: Operations, tmp_path: Path
) -> None:
    order = operations.message_orders.choose_all(ADMINISTRATOR, ORDERS)
    with pytest.raises(UnknownOrderError):
        operations.message_orders.find(ALICE, order.identifier)
    two.restart()
    later = operations_of(two, tmp_path)
    with pytest.raises(UnknownOrderError):
        later.message_orders.begin(ADMINISTRATOR, order.identifier, Wanted(Doing.COPY, OTHER))
    assert labels(later, OTHER) == []


def test_who_may_not_read_a_queue_chooses_nothing_of_it(
    qm: RunningQueueManager, operations: Operations
) -> None:
    dead = format_name(r".\DeadLetter$")
    orders = operations.message_orders
    with pytest.raises(MQError) as of_all:
        orders.choose_all(ALICE, dead)
    with pytest.raises(MQError) as of_some:
        orders.choose(ALICE, dead, [1])
    for error in (of_all, of_some):
        assert error.value.status is HResult.MQ_ERROR_ACCESS_DENIED


@pytest.mark.bound("orders.chosen")
@pytest.mark.bound("orders.chosen_in_all")
@pytest.mark.bound("orders.of_account")
def test_so_much_is_chosen_and_known_at_once(
    two: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rpcqm.operations.message_orders.MOST_CHOSEN", 2)
    orders = operations.message_orders
    order = orders.choose_all(ADMINISTRATOR, ORDERS)
    assert (order.chosen, order.more) == (2, True)
    send(two, operations, 1)
    rest = orders.choose_all(ADMINISTRATOR, ORDERS, where=Range(order.keys[-1], order.newest))
    assert (rest.chosen, rest.more) == (1, False)
    with pytest.raises(MQError):
        orders.choose(ADMINISTRATOR, ORDERS, [1, 2, 3])
    monkeypatch.setattr("rpcqm.operations.message_orders.MOST_CHOSEN_IN_ALL", 3)
    orders.choose(ADMINISTRATOR, ORDERS, [1])
    with pytest.raises(UnknownOrderError):
        orders.find(ADMINISTRATOR, order.identifier)
    monkeypatch.setattr("rpcqm.operations.message_orders.ORDERS_OF_ACCOUNT", 1)
    orders.choose(ADMINISTRATOR, ORDERS, [1])
    with pytest.raises(UnknownOrderError):
        orders.find(ADMINISTRATOR, rest.identifier)


def test_no_later_message_overtakes_one_for_which_there_was_no_room(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    qm.create(r"private$\other", quota=1)
    drafts = [Draft(b"x" * size, str(number)) for number, size in enumerate((10, 2_000, 10))]
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), drafts))
    done = finished(qm, operations, Wanted(Doing.MOVE, OTHER))
    assert labels(operations, OTHER) == ["0"]
    assert labels(operations, ORDERS) == ["1", "2"]
    assert done.staying.total() == 2


def test_an_order_that_nobody_goes_on_with_is_forgotten(
    two: RunningQueueManager, operations: Operations
) -> None:
    order = operations.message_orders.choose_all(ADMINISTRATOR, ORDERS)
    two.advance(LIFE + 1)
    with pytest.raises(UnknownOrderError):
        operations.message_orders.find(ADMINISTRATOR, order.identifier)


def test_a_copied_choice_stays_as_it_is(two: RunningQueueManager, operations: Operations) -> None:
    orders = operations.message_orders
    choice = orders.choose_all(ADMINISTRATOR, ORDERS)
    first, *others = choice.keys
    copy = orders.copied(ADMINISTRATOR, choice.identifier)
    choice.keys.append(7)
    assert list(copy.keys) == [first, *others]
    orders.rechoose(ADMINISTRATOR, choice.identifier, [first], [])
    assert set(choice.keys) == {*others, 7}
    wanted = Wanted(Doing.REMOVE)
    two.done(orders.begin(ADMINISTRATOR, copy.identifier, wanted))
    with pytest.raises(UnknownOrderError):
        orders.rechoose(ADMINISTRATOR, copy.identifier, [], [1])
