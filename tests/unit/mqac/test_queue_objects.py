"""MSMQQueueInfo and MSMQQueue by themselves ([MC-MQAC] 3.10, 3.11)."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from structlog.testing import capture_logs

from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import MISSING, Variant
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.mqac.coclasses import coclasses
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.message import MSMQMessage
from rpcqm.mqac.notifications import AT_MOST, EventTarget
from rpcqm.mqac.queue import MSMQQueue
from rpcqm.mqac.queue_info import MSMQQueueInfo
from rpcqm.mqac.transaction import MSMQTransactionDispenser
from rpcqm.service import interfaces
from tests.support.dcom.fake_com import FakeCall, call_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB

T = TypeVar("T")

CALL = call_of()
NAME = r".\private$\objects"
FULL_NAME = r"WORKSTATION\private$\objects"
NOW = Variant(VARENUM.VT_I4, 0)
RECEIVE, SEND, PEEK = 1, 2, 32


class Objects:
    """The classes of one queue manager, and their methods called to their end."""

    def __init__(self, qm: RunningQueueManager) -> None:
        self.qm = qm
        self.machine: Machine = interfaces.machine(qm.engine)
        coclasses(self.machine)

    def done(self, method: "Coroutine[Completion[Any], None, T]") -> T:
        outcome = start(method)
        self.qm.settle()
        return outcome.result()

    def status(self, method: "Coroutine[Completion[Any], None, T]") -> str:
        with pytest.raises(MQError) as refused:
            self.done(method)
        return refused.value.status.name

    def named(self, name: str = NAME) -> MSMQQueueInfo:
        info = MSMQQueueInfo(self.machine)
        info.put_PathName(CALL, name)
        return info

    def created(self, name: str = NAME, *, transactional: bool = False) -> MSMQQueueInfo:
        info = self.named(name)
        self.done(info.Create(CALL, Variant(VARENUM.VT_BOOL, transactional), None))
        return info

    def opened(self, info: MSMQQueueInfo, access: int = RECEIVE, share: int = 0) -> MSMQQueue:
        return self.done(info.Open(CALL, access, share))

    def send(self, info: MSMQQueueInfo, *labels: str) -> None:
        queue = self.opened(info, SEND)
        for label in labels:
            message = MSMQMessage(self.machine)
            message.put_Label(CALL, label)
            sending = message.Send(
                CALL, queue, Variant(VARENUM.VT_I4, 3 if self._is_transactional(info) else 0)
            )
            self.qm.settle()
            sending.result()
        queue.Close(CALL)

    def _is_transactional(self, info: MSMQQueueInfo) -> bool:
        return info.get_IsTransactional2(CALL)

    def receive(self, queue: MSMQQueue, timeout: Variant = NOW) -> str:
        return label(self.done(queue.Receive(CALL, MISSING, MISSING, MISSING, timeout, MISSING)))


def label(message: MSMQMessage | None) -> str:
    assert message is not None
    return message.get_Label(CALL)


@pytest.fixture
def objects(qm: RunningQueueManager) -> Objects:
    return Objects(qm)


def test_a_new_object_names_nothing(objects: Objects) -> None:
    info = MSMQQueueInfo(objects.machine)
    assert info.get_FormatName(CALL) is None
    for refused in (info.get_Label, info.get_PathName, info.Refresh):
        with pytest.raises(MQError):
            refused(CALL)
    assert objects.status(info.Open(CALL, 1, 0)) == "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"
    assert objects.status(info.Create(CALL, None, None)) == "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"


def test_before_create_only_the_path_name_is_told(objects: Objects) -> None:
    info = objects.named()
    assert info.get_PathName(CALL) == NAME
    with pytest.raises(MQError) as refused:
        info.get_Label(CALL)
    assert refused.value.status is HResult.MQ_ERROR_QUEUE_NOT_FOUND


def test_a_created_queue_has_the_properties_that_were_set(objects: Objects) -> None:
    info = objects.named()
    info.put_Label(CALL, "objects")
    info.put_Journal(CALL, 1)
    info.put_Quota(CALL, 100)
    objects.done(info.Create(CALL, Variant(VARENUM.VT_BOOL, True), None))
    assert info.get_IsTransactional(CALL) == 1
    assert info.get_PathName(CALL) == FULL_NAME
    assert info.get_FormatName(CALL) == f"DIRECT=OS:{FULL_NAME}"
    assert (info.get_Label(CALL), info.get_Journal(CALL), info.get_Quota(CALL)) == (
        "objects",
        1,
        100,
    )
    assert info.get_JournalQuota(CALL) == -1
    assert objects.status(objects.named().Create(CALL, None, None)) == "MQ_ERROR_QUEUE_EXISTS"


def test_only_who_may_sees_and_deletes(objects: Objects) -> None:
    info = objects.created()
    bob = call_of(BOB)
    objects.named().Refresh(bob)  # everyone sees properties
    assert objects.status(objects.named().Delete(bob)) == "MQ_ERROR_ACCESS_DENIED"
    assert objects.status(objects.named().Open(bob, RECEIVE, 0)) == "MQ_ERROR_ACCESS_DENIED"
    objects.done(info.Delete(CALL))
    assert info.get_FormatName(CALL) is None
    assert objects.status(objects.named().Open(CALL, RECEIVE, 0)) == "MQ_ERROR_QUEUE_NOT_FOUND"


@pytest.mark.parametrize("readable", [False, True])
def test_a_world_readable_queue_is_read_by_everyone(objects: Objects, readable: bool) -> None:
    info = objects.named()
    objects.done(info.Create(CALL, None, Variant(VARENUM.VT_BOOL, readable)))
    assert info.get_IsWorldReadable2(CALL) is readable
    assert info.get_IsWorldReadable(CALL) == int(readable)
    opening = start(objects.named().Open(call_of(BOB), RECEIVE, 0))
    assert (opening.error is None) is readable


def test_update_changes_the_queue(objects: Objects) -> None:
    info = objects.created()
    info.Refresh(CALL)
    info.put_Label(CALL, "other")
    objects.done(info.Update(CALL))
    other = objects.named()
    assert other.get_Label(CALL) == "other"
    info.put_PrivLevel(CALL, 9)
    assert objects.status(info.Update(CALL)) == "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"


def test_receiving_takes_the_first_message(objects: Objects) -> None:
    info = objects.created()
    objects.send(info, "one", "two")
    queue = objects.opened(info)
    assert objects.receive(queue) == "one"
    assert objects.receive(queue) == "two"
    empty = queue.Receive(CALL, MISSING, MISSING, MISSING, NOW, MISSING)
    assert objects.status(empty) == "MQ_ERROR_MESSAGE_NOT_FOUND"


def test_a_wait_ends_with_a_message_or_its_time(objects: Objects) -> None:
    info = objects.created()
    queue = objects.opened(info)
    wait = Variant(VARENUM.VT_I2, 500)
    waiting = start(queue.Receive(CALL, None, None, None, wait, None))
    assert not waiting.done
    objects.qm.clock.advance(500)
    objects.qm.settle()
    assert isinstance(waiting.error, MQError)
    assert waiting.error.status is HResult.MQ_ERROR_IO_TIMEOUT
    waiting = start(queue.Receive(CALL, None, None, None, None, None))
    objects.send(info, "late")
    assert label(waiting.result()) == "late"


def test_an_empty_queue_is_nothing_where_that_is_chosen(objects: Objects) -> None:
    queue = objects.opened(objects.created())
    objects.machine.empty_is_nothing = lambda: True
    assert objects.done(queue.Peek(CALL, None, None, NOW, None)) is None


def test_a_cursor_goes_through_the_queue(objects: Objects) -> None:
    info = objects.created()
    objects.send(info, "one", "two", "three")
    queue = objects.opened(info)
    before = queue.PeekNext(CALL, None, None, NOW, None)
    assert objects.status(before) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    assert label(objects.done(queue.PeekCurrent(CALL, None, None, NOW, None))) == "one"
    assert label(objects.done(queue.PeekNext(CALL, None, None, NOW, None))) == "two"
    assert label(objects.done(queue.ReceiveCurrent(CALL, None, None, None, NOW, None))) == "two"
    assert label(objects.done(queue.PeekCurrent(CALL, None, None, NOW, None))) == "three"
    objects.done(queue.Reset(CALL))
    assert label(objects.done(queue.PeekCurrent(CALL, None, None, NOW, None))) == "one"


def test_what_a_transaction_received_comes_back(objects: Objects) -> None:
    info = objects.created(transactional=True)
    objects.send(info, "one")
    queue = objects.opened(info)
    transaction = MSMQTransactionDispenser(objects.machine).BeginTransaction(CALL)
    given = Variant(VARENUM.VT_DISPATCH, transaction)
    assert label(objects.done(queue.Receive(CALL, given, None, None, NOW, None))) == "one"
    empty = queue.Peek(CALL, None, None, NOW, None)
    assert objects.status(empty) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    transaction.Abort(CALL, None, None)
    objects.qm.settle()
    single = Variant(VARENUM.VT_I4, 3)
    assert label(objects.done(queue.Receive(CALL, single, None, None, NOW, None))) == "one"


def test_peeks_find_what_is_received_for_them_to_find(objects: Objects) -> None:
    info = objects.created(transactional=True)
    objects.send(info, "one")
    queue = objects.opened(info)
    transaction = MSMQTransactionDispenser(objects.machine).BeginTransaction(CALL)
    given = Variant(VARENUM.VT_DISPATCH, transaction)
    first = objects.done(queue.Peek(CALL, None, None, NOW, None))
    assert first is not None
    identifier = first.get_LookupId(CALL)
    taking = queue.ReceiveByLookupIdAllowPeek(CALL, identifier, given, None, None, None)
    assert label(objects.done(taking)) == "one"
    assert label(objects.done(queue.PeekByLookupId(CALL, identifier, None, None, None))) == "one"
    again = queue.ReceiveByLookupId(CALL, identifier, None, None, None, None)
    assert objects.status(again) == "MQ_ERROR_MESSAGE_NOT_FOUND"


def test_lookups_go_in_the_direction_of_their_names(objects: Objects) -> None:
    info = objects.created()
    objects.send(info, "one", "two", "three")
    queue = objects.opened(info)
    middle = objects.done(queue.PeekLastByLookupId(CALL, None, None, None))
    assert label(middle) == "three"
    middle = objects.done(queue.PeekFirstByLookupId(CALL, None, None, None))
    assert middle is not None
    first = middle.get_LookupId(CALL)
    middle = objects.done(queue.PeekNextByLookupId(CALL, first, None, None, None))
    assert label(middle) == "two"
    assert middle is not None
    two = middle.get_LookupId(CALL)
    assert label(objects.done(queue.PeekPreviousByLookupId(CALL, two, None, None, None))) == "one"
    for method, expected in (
        (queue.ReceiveNextByLookupId, "three"),
        (queue.ReceivePreviousByLookupId, "one"),
        (queue.ReceiveByLookupId, "two"),
    ):
        assert label(objects.done(method(CALL, two, None, None, None, None))) == expected
    gone = queue.ReceiveByLookupId(CALL, two, None, None, None, None)
    assert objects.status(gone) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    none = queue.ReceiveByLookupId(CALL, Variant(VARENUM.VT_BSTR, "0"), None, None, None, None)
    assert objects.status(none) == "MQ_ERROR_INVALID_PARAMETER"


def test_closing_ends_waits_and_everything_else(objects: Objects) -> None:
    queue = objects.opened(objects.created())
    waiting = start(queue.Receive(CALL, None, None, None, None, None))
    queue.Close(CALL)
    assert isinstance(waiting.error, MQError)
    assert waiting.error.status is HResult.MQ_ERROR_OPERATION_CANCELLED
    assert queue.get_IsOpen(CALL) == 0
    for method in (queue.Close, queue.get_Access, queue.get_Handle, queue.get_QueueInfo):
        with pytest.raises(MQError) as refused:
            method(CALL)
        assert refused.value.status is HResult.MQ_ERROR_INVALID_HANDLE
    assert not objects.qm.engine.opening.descriptors


def test_an_object_that_was_never_opened_is_blank(objects: Objects) -> None:
    queue = MSMQQueue(objects.machine)
    for method in (queue.get_IsOpen, queue.get_IsOpen2, queue.Close, queue.get_Access):
        with pytest.raises(MQError) as refused:
            method(CALL)
        assert refused.value.status is HResult.OLE_E_BLANK


def test_who_vanishes_in_a_wait_takes_no_message(objects: Objects) -> None:
    info = objects.created()
    queue = objects.opened(info)
    gone = FakeCall(ALICE)
    waiting = start(queue.Receive(gone, None, None, None, None, None))  # type: ignore[arg-type]
    gone.abandon()
    assert waiting.done
    objects.send(info, "kept")
    assert objects.receive(queue) == "kept"


def test_receiving_needs_a_queue_that_is_open_for_it(objects: Objects) -> None:
    info = objects.created()
    objects.send(info, "one")
    peeking, sending = objects.opened(info, PEEK), objects.opened(info, SEND)
    assert label(objects.done(peeking.Peek(CALL, None, None, NOW, None))) == "one"
    for refused in (
        peeking.Receive(CALL, None, None, None, NOW, None),
        peeking.Purge(CALL),
        sending.Peek(CALL, None, None, NOW, None),
    ):
        assert objects.status(refused) == "MQ_ERROR_ACCESS_DENIED"
    receiving = objects.opened(info)
    objects.done(receiving.Purge(CALL))
    empty = receiving.Peek(CALL, None, None, NOW, None)
    assert objects.status(empty) == "MQ_ERROR_MESSAGE_NOT_FOUND"


class Listener(EventTarget):
    """An event that remembers what was raised."""

    def __init__(self) -> None:
        self.raised: list[str | int] = []

    def arrived(self, queue: MSMQQueue, cursor: int) -> None:
        self.raised.append(f"arrived {cursor}")

    def arrived_error(self, queue: MSMQQueue, error: int, cursor: int) -> None:
        self.raised.append(error)


def test_a_notification_comes_once(objects: Objects) -> None:
    info = objects.created()
    queue, listener = objects.opened(info), Listener()
    queue.EnableNotification(CALL, listener, None, None)
    assert listener.raised == []
    objects.send(info, "one", "two")
    assert listener.raised == ["arrived 0"]


def test_a_notification_tells_why_there_is_no_message(objects: Objects) -> None:
    queue, listener = objects.opened(objects.created()), Listener()
    queue.EnableNotification(CALL, listener, None, NOW)
    queue.EnableNotification(CALL, listener, None, Variant(VARENUM.VT_I4, 100))
    objects.qm.clock.advance(100)
    assert listener.raised == [HResult.MQ_ERROR_MESSAGE_NOT_FOUND, HResult.MQ_ERROR_IO_TIMEOUT]
    queue.EnableNotification(CALL, listener, None, None)
    queue.Close(CALL)
    assert len(listener.raised) == 2


@pytest.mark.bound("dcom.notifications_of_an_open_queue")
def test_notifications_are_bounded(objects: Objects) -> None:
    queue = objects.opened(objects.created())
    for _ in range(AT_MOST):
        queue.EnableNotification(CALL, Listener(), None, None)
    with pytest.raises(MQError) as refused:
        queue.EnableNotification(CALL, Listener(), None, None)
    assert refused.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


def test_an_object_of_somebody_else_is_no_event(objects: Objects) -> None:
    queue = objects.opened(objects.created())
    for cursor, event in ((None, None), (None, queue), (Variant(VARENUM.VT_I4, 7), Listener())):
        with pytest.raises(MQError) as refused:
            queue.EnableNotification(CALL, event, cursor, None)
        assert refused.value.status is HResult.E_INVALIDARG


def test_what_is_ordered_by_objects_is_told(
    qm: RunningQueueManager,
) -> None:
    objects = Objects(qm)
    info = objects.named()
    with capture_logs() as lines:
        objects.done(info.Create(CALL, None, None))
        objects.done(info.Update(CALL))
        queue = objects.done(info.Open(CALL, RECEIVE, 0))
        objects.done(queue.Purge(CALL))
        queue.Close(CALL)
        objects.done(info.Delete(CALL))
    acts = [line for line in lines if line["event"] == "an operator acts"]
    actions = ["create queue", "set properties", "purge", "delete queue"]
    assert [act["action"] for act in acts] == actions
    assert {act["object"] for act in acts} <= {NAME, FULL_NAME}
    assert {(act["who"], act["origin"], act["protocol"]) for act in acts} == {
        (ALICE.name, "192.0.2.7", "com")
    }
