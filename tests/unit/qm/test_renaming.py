"""Private queues get other names, and keep all else (G653)."""

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.qm.renaming import MOST_FORMER_NAMES
from rpcqm.store.transaction import StoreTransaction
from tests.support.queue_manager import COMPUTER, RunningQueueManager, refusal

ORDERS = rf"{COMPUTER}\private$\orders"


def path(name: str) -> str:
    return rf".\private$\{name}"


def rename(qm: RunningQueueManager, queue: Queue, name: str) -> None:
    qm.done(qm.engine.renaming.rename(queue, path(name)))


def formerly(qm: RunningQueueManager, name: str) -> Queue | None:
    return qm.engine.registry.formerly(PathName.parse(path(name)))


@pytest.mark.parametrize("restarted", [False, True])
def test_a_queue_is_found_by_its_new_name_with_all_its_parts(
    qm: RunningQueueManager, restarted: bool
) -> None:
    queue = qm.create(r"private$\orders", journaling=True)
    number, identifier = queue.private_queue_number, queue.identifier
    late = qm.engine.queues.create_subqueue(queue, "late")
    qm.done(qm.engine.messages.enqueue_message(queue, qm.compose(queue, b"a")))
    qm.done(qm.engine.messages.enqueue_message(late, qm.compose(queue, b"b")))
    rename(qm, queue, "bills")
    if restarted:
        qm.restart()
    registry = qm.engine.registry
    assert registry.find_by_path(ORDERS) is None
    bills = registry.find_by_path(path("bills"))
    assert bills is not None
    assert (bills.private_queue_number, bills.identifier) == (number, identifier)
    assert bills.pathname == rf"{COMPUTER}\private$\bills"
    assert qm.bodies(bills) == [b"a"]
    assert qm.bodies(registry.find_by_path(path("bills;late"))) == [b"b"]
    journal = registry.find_by_path(path("bills;JOURNAL"))
    assert journal is bills.journal_queue_reference
    assert journal is not None
    assert journal.pathname == rf"{COMPUTER}\private$\bills;JOURNAL"
    assert bills.subqueue_collection["late"].qualified_pathname.endswith(r"\bills;late")
    assert formerly(qm, "ORDERS") is bills
    assert formerly(qm, "orders;late") is bills.subqueue_collection["late"]
    private = FormatName.parse(f"PRIVATE={qm.engine.queue_manager.identifier}\\{number:08x}")
    assert registry.find_by_format_name(private) is bills


def test_a_rename_that_is_not_durable_has_not_been(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\orders")
    qm.engine.renaming.rename(queue, path("bills"))
    qm.crash()
    assert qm.engine.registry.find_by_path(ORDERS) is not None
    assert qm.engine.registry.find_by_path(path("bills")) is None


def test_a_rename_that_fails_changes_nothing(qm: RunningQueueManager) -> None:
    queue, other = qm.create(r"private$\orders"), qm.create(r"private$\other")
    rename(qm, other, "bills")
    rename(qm, queue, "other")
    rename(qm, queue, "orders")

    def fail(change: StoreTransaction, queue: Queue, before: str, after: str) -> None:
        raise OSError("no")

    qm.engine.renaming.hooks.append(fail)
    with pytest.raises(OSError, match="no"):
        qm.engine.renaming.rename(queue, path("third"))
    assert qm.engine.registry.find_by_path(ORDERS) is queue
    assert queue.pathname == ORDERS
    assert queue.former_names == ("other",)
    assert formerly(qm, "orders") is None


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("taken", "MQ_ERROR_QUEUE_EXISTS"),
        ("TAKEN", "MQ_ERROR_QUEUE_EXISTS"),
        ("order_queue$", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("mine$", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("a;b", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("x" * 125, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
    ],
)
def test_names_that_a_queue_cannot_get(qm: RunningQueueManager, name: str, status: str) -> None:
    queue = qm.create(r"private$\orders")
    qm.create(r"private$\taken")
    assert refusal(lambda: qm.engine.renaming.rename(queue, path(name))) == status
    assert qm.engine.registry.find_by_path(ORDERS) is queue


def test_only_whole_private_queues_of_applications_are_renamed(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\orders", journaling=True)
    machine, rename_ = qm.engine.queue_manager, qm.engine.renaming.rename
    assert machine.system_deadletter_queue is not None
    assert queue.journal_queue_reference is not None
    for other in (machine.system_deadletter_queue, queue.journal_queue_reference):
        with pytest.raises(Exception, match="whole private queues"):
            rename_(other, path("x"))
    told = refusal(lambda: rename_(queue, r"elsewhere\private$\x"))
    assert told == "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"


def test_a_name_changes_only_its_case(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\orders")
    rename(qm, queue, "Orders")
    assert queue.pathname == rf"{COMPUTER}\private$\Orders"
    assert queue.former_names == ()


@pytest.mark.parametrize("restarted", [False, True])
def test_the_last_queue_of_a_name_is_what_has_become_of_it(
    qm: RunningQueueManager, restarted: bool
) -> None:
    second = qm.create(r"private$\n0")
    first = qm.create(r"private$\orders")
    rename(qm, first, "first")
    rename(qm, second, "orders")
    rename(qm, second, "second")
    if restarted:
        qm.restart()
    found = formerly(qm, "orders")
    assert found is not None
    assert found.pathname.endswith(r"\second")
    qm.done(qm.engine.queues.delete_queue(found))
    assert formerly(qm, "orders") is None


def test_a_queue_remembers_so_many_names(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\n0")
    for number in range(1, MOST_FORMER_NAMES + 2):
        rename(qm, queue, f"n{number}")
    assert len(queue.former_names) == MOST_FORMER_NAMES
    assert formerly(qm, "n0") is None
    assert formerly(qm, "n1") is queue


def test_dead_letters_find_the_queue_that_their_messages_named_before(
    qm: RunningQueueManager,
) -> None:
    queue, chosen = qm.create(), qm.create(r"private$\chosen")
    message = qm.compose(queue, b"a", negative_journaling_requested=True, time_to_be_received=1)
    message.application_deadletter_queue = path("chosen")
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    rename(qm, chosen, "kept")
    qm.restart()
    qm.advance(2_000)
    assert qm.bodies(qm.find(r"private$\kept")) == [b"a"]
