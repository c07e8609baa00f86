"""Public queues in a real directory: its identifiers, and changes that are lost on the way."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult
from rpcqm.codec.names.format_name import FormatName
from rpcqm.qm.publications import LONGEST_WAIT
from tests.support.qm.real_directory import Entry, RealDirectory
from tests.support.queue_manager import MEMORY, SETTINGS, RunningQueueManager, refusal

OFFERS = r"workstation\offers"
GENERIC = DirectoryOperationResult.GENERIC_ERROR


@pytest.fixture
def real() -> RealDirectory:
    return RealDirectory()


@pytest.fixture
def qm(real: RealDirectory) -> Iterator[RunningQueueManager]:
    settings = replace(SETTINGS, directory=real, directory_writer=real)
    with TemporaryDirectory(prefix="rpcqm-publications-", dir=MEMORY) as directory:
        running = RunningQueueManager(Path(directory), settings)
        yield running
        running.stop()


def create(qm: RunningQueueManager, **attributes: Any) -> Completion[Queue]:
    queues = qm.engine.queues
    created = queues.create_queue(queues.new_queue(r".\offers", **attributes))
    qm.settle()
    return created


def made(qm: RunningQueueManager, real: RealDirectory) -> Queue:
    created = create(qm, label="first")
    real.answer()
    return qm.done(created)


def here(qm: RunningQueueManager) -> Queue | None:
    return qm.engine.registry.find_by_path(r".\offers")


def changed(qm: RunningQueueManager, queue: Queue, label: str) -> Completion[None]:
    changed = qm.engine.queues.set_properties(queue, {"label": label})
    qm.settle()
    return changed


def code(completion: Completion[Any]) -> str:
    return refusal(lambda: completion)


def waits(qm: RunningQueueManager) -> int:
    return len(qm.engine.directory.publications)


def answer_all(qm: RunningQueueManager, real: RealDirectory) -> None:
    """Let time pass until nothing waits for the directory."""
    for _ in range(10):
        qm.advance(LONGEST_WAIT)
        while real.orders:
            real.answer()
            qm.settle()


@pytest.mark.conformance(
    "MQDMPR-event-create_queue", "MQDMPR-event-create_directory_object", "MQDSSM-event-create"
)
def test_a_public_queue_has_the_identifier_that_the_directory_gave_it(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    created = create(qm, label="first")
    assert not created.done
    assert here(qm) is None
    real.answer()
    queue = qm.done(created)
    assert real.objects[OFFERS] == Entry(queue.identifier, {"label": "first"})
    name = FormatName.parse(f"PUBLIC={queue.identifier}")
    assert qm.engine.registry.find_by_format_name(name) is queue
    assert qm.engine.directory.find_path(r"WORKSTATION\offers") == name
    assert waits(qm) == 0
    qm.restart()
    answer_all(qm, real)
    again = here(qm)
    assert again is not None
    assert (again.identifier, real.adds) == (queue.identifier, 1)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (DirectoryAnswer(GENERIC, denied=True), HResult.MQ_ERROR_ACCESS_DENIED),
        (DirectoryAnswer(GENERIC), HResult.MQ_ERROR_DS_ERROR),
        (
            DirectoryAnswer(DirectoryOperationResult.OBJECT_ALREADY_EXISTS),
            HResult.MQ_ERROR_QUEUE_EXISTS,
        ),
        (
            DirectoryAnswer(DirectoryOperationResult.DIRECTORY_NOT_CONNECTED),
            HResult.MQ_ERROR_NO_DS,
        ),
    ],
)
def test_a_queue_that_the_directory_refuses_is_not_made_here(
    qm: RunningQueueManager, real: RealDirectory, answer: DirectoryAnswer, expected: HResult
) -> None:
    created, real.refuses = create(qm), answer
    real.answer()
    assert code(created) == expected.name
    assert here(qm) is None
    real.refuses = None
    doubtful = expected is HResult.MQ_ERROR_NO_DS
    assert waits(qm) == doubtful
    answer_all(qm, real)
    assert waits(qm) == 0


def test_a_queue_whose_answer_was_lost_does_not_stay_in_the_directory(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    created, real.lost = create(qm), True
    real.answer()
    assert code(created) == "MQ_ERROR_NO_DS"
    assert OFFERS in real.objects
    real.lost = False
    answer_all(qm, real)
    assert real.objects == {}
    assert waits(qm) == 0


def test_what_somebody_else_has_made_stays(qm: RunningQueueManager, real: RealDirectory) -> None:
    created = create(qm)
    theirs = real.objects[OFFERS] = Entry(real.machine, {}, ours=False)
    real.answer()
    assert code(created) == "MQ_ERROR_QUEUE_EXISTS"
    answer_all(qm, real)
    assert real.objects == {OFFERS: theirs}
    assert waits(qm) == 0


def test_two_who_make_the_same_queue_make_it_once(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    first, second = create(qm), create(qm)
    assert code(second) == "MQ_ERROR_QUEUE_EXISTS"
    real.answer()
    assert qm.done(first) is here(qm)
    assert real.adds == 1


@pytest.mark.parametrize("carried_out", [False, True], ids=["not sent", "sent"])
def test_a_crash_while_a_queue_is_made_leaves_nothing(
    qm: RunningQueueManager, real: RealDirectory, carried_out: bool
) -> None:
    create(qm)
    if carried_out:
        real.answer()  # and the queue manager dies before it is durable here
    real.orders.clear()
    qm.crash()
    assert here(qm) is None
    answer_all(qm, real)
    assert real.objects == {}
    assert waits(qm) == 0


def test_a_crash_before_the_record_is_durable_has_asked_nobody(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    queues = qm.engine.queues
    queues.create_queue(queues.new_queue(r".\offers"))
    assert real.orders == []
    qm.crash()
    answer_all(qm, real)
    assert (real.objects, waits(qm)) == ({}, 0)


@pytest.mark.conformance("MQDMPR-event-delete_queue", "MQDSSM-event-delete")
def test_a_queue_is_deleted_there_before_it_is_here(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    queue = made(qm, real)
    deleted = qm.engine.queues.delete_queue(queue)
    qm.settle()
    assert here(qm) is queue
    real.answer()
    qm.done(deleted)
    assert here(qm) is None
    assert real.objects == {}
    assert waits(qm) == 0
    name = FormatName.parse(f"PUBLIC={queue.identifier}")
    assert qm.engine.directory.public_queue(name) is None


def test_a_queue_that_the_directory_keeps_is_kept_here(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    queue = made(qm, real)
    deleted, real.refuses = (
        qm.engine.queues.delete_queue(queue),
        DirectoryAnswer(GENERIC, None, True),
    )
    qm.settle()
    real.answer()
    qm.settle()
    assert code(deleted) == "MQ_ERROR_ACCESS_DENIED"
    assert here(qm) is queue


@pytest.mark.parametrize("carried_out", [False, True], ids=["not sent", "sent"])
def test_a_queue_whose_deletion_was_cut_off_can_be_deleted_again(
    qm: RunningQueueManager, real: RealDirectory, carried_out: bool
) -> None:
    queue = made(qm, real)
    qm.engine.queues.delete_queue(queue)
    qm.settle()
    if carried_out:
        real.answer()
    real.orders.clear()
    qm.crash()
    answer_all(qm, real)
    again = here(qm)
    assert again is not None
    deleted = qm.engine.queues.delete_queue(again)
    qm.settle()
    real.answer()
    qm.done(deleted)
    assert (here(qm), real.objects, waits(qm)) == (None, {}, 0)


@pytest.mark.conformance("MQDMPR-event-write_directory")
def test_a_change_is_made_there_before_it_is_here(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    queue = made(qm, real)
    change = changed(qm, queue, "second")
    assert queue.label == "first"
    real.answer()
    qm.done(change)
    assert (queue.label, real.objects[OFFERS].values["label"]) == ("second", "second")
    assert waits(qm) == 0


def lost_answer(qm: RunningQueueManager, real: RealDirectory, change: Completion[None]) -> None:
    real.lost = True
    real.answer()
    assert code(change) == "MQ_ERROR_NO_DS"
    real.lost = False


def crash(qm: RunningQueueManager, real: RealDirectory, change: Completion[None]) -> None:
    real.answer()
    qm.crash()
    assert not change.done


@pytest.mark.parametrize("accident", [lost_answer, crash])
def test_a_change_that_was_lost_on_the_way_is_made_as_it_is_here(
    qm: RunningQueueManager,
    real: RealDirectory,
    accident: Callable[[RunningQueueManager, RealDirectory, Completion[None]], None],
) -> None:
    change = changed(qm, made(qm, real), "second")
    accident(qm, real, change)
    assert real.objects[OFFERS].values["label"] == "second"
    answer_all(qm, real)
    queue = here(qm)
    assert queue is not None
    assert (queue.label, real.objects[OFFERS].values["label"]) == ("first", "first")
    assert waits(qm) == 0


def test_a_later_change_does_not_hide_that_an_earlier_one_was_lost(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    queue = made(qm, real)
    lost_answer(qm, real, changed(qm, queue, "second"))
    change = qm.engine.queues.set_properties(queue, {"quota": 7})
    qm.settle()
    real.answer()
    qm.done(change)
    answer_all(qm, real)
    assert (real.objects[OFFERS].values["label"], queue.label) == ("first", "first")
    assert (real.objects[OFFERS].values["quota"], queue.quota) == (7, 7)


def test_a_directory_that_does_not_answer_is_asked_ever_more_rarely(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    created = create(qm)
    real.refuses = DirectoryAnswer(DirectoryOperationResult.DIRECTORY_NOT_CONNECTED)
    real.answer()
    assert code(created) == "MQ_ERROR_NO_DS"
    asked = []
    for _ in range(300):
        qm.advance(1_000)
        asked.append(len(real.orders))
        while real.orders:
            real.answer()
            qm.settle()
    assert 5 <= sum(asked) <= 12


def test_nobody_waits_for_a_directory_that_is_away(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    queue = made(qm, real)
    real.offline = True
    queues = qm.engine.queues
    for order in (
        queues.create_queue(queues.new_queue(r".\more")),
        queues.set_properties(queue, {"label": "second"}),
        queues.delete_queue(queue),
    ):
        assert code(order) == "MQ_ERROR_NO_DS"
    assert (real.orders, waits(qm)) == ([], 0)


@pytest.mark.conformance("MQDSSM-event-write")
def test_the_queue_managers_own_object_is_written_until_it_was(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    real.publishes_machine = True
    qm.restart()
    qm.advance(0)
    assert real.names() == ["write"]
    real.lost = True
    real.answer()
    real.lost = False
    qm.advance(1_000)
    assert real.names() == []
    qm.advance(1_000)
    assert real.names() == ["write"]
    real.objects["machine"] = Entry(qm.engine.queue_manager.identifier, {})
    real.answer()
    qm.advance(LONGEST_WAIT)
    assert real.names() == []


def shown(queue: Queue, **attributes: Any) -> Queue:
    """The queue as the directory shows it."""
    made = Queue(queue.identifier, pathname=r"WORKSTATION\offers", label=queue.label)
    made.queue_type = queue.queue_type
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def test_who_changes_the_object_there_is_heard_once_it_was_shown_as_it_was_published(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    queue = made(qm, real)
    look = qm.engine.directory.check_directory_online
    qm.engine.queue_manager.identifier = real.machine
    real.shown = [shown(queue, label="older")]  # a round that began before
    look()
    assert queue.label == "first"
    real.shown = [shown(queue, label="first")]
    look()
    real.shown = [shown(queue, label="theirs")]
    look()
    assert queue.label == "theirs"


def test_a_queue_that_is_being_published_or_withdrawn_is_not_made_because_it_is_shown(
    qm: RunningQueueManager, real: RealDirectory
) -> None:
    qm.engine.queue_manager.identifier = real.machine
    created, real.lost = create(qm), True
    real.answer()
    assert code(created) == "MQ_ERROR_NO_DS"
    real.shown = [shown(Queue(real.objects[OFFERS].identifier))]
    qm.engine.directory.check_directory_online()
    assert here(qm) is None
    real.lost = False
    answer_all(qm, real)
    qm.engine.directory.check_directory_online()
    assert real.objects == {}
