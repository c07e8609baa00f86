"""What templates carry out overtakes nothing, and sees at once what has changed.

Each rule is tried with templates, where it is sure that they take the requests, and without.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.properties import PropVariant, QueueProperty, VarType
from rpcqm.codec.types.mqvalues import QueueAccessType, QueuePrivacyLevel
from rpcqm.codec.types.qmcomm import CACTransferBufferV1_Send
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE, BOB, Caller, Fault, PendingCall
from tests.support.rpc.dependent_client import Client, object_of, served_clients, variants
from tests.support.rpc.remote_reader import (
    PEEK_ACCESS,
    PEEK_CURRENT,
    RECEIVE,
    Reader,
    body_of,
    format_of,
    served_remote_read,
    status_name,
)

SEND = QueueAccessType.SEND_ACCESS
OTHER = r"private$\others"
ELSEWHERE = r"DIRECT=TCP:192.0.2.9\private$\administration"


class Desk:
    """A client that sends what is recognised, and one that reads."""

    def __init__(self, qm: RunningQueueManager, templates: bool) -> None:
        self.qm, self.templates = qm, templates
        qm.speed.turn.is_on = templates
        self.queue = qm.create()
        self.server = served_clients(qm)
        self.sender = self.connect()
        self.handle = self.sender.open(self.queue, SEND)[0]
        self.reader = Reader(served_remote_read(qm).connect(ALICE))
        self.reading = self.reader.open(self.queue)
        self.learn(self.sender, self.handle)

    def connect(self) -> Client:
        return Client(self.server.connect(ALICE, transport=NCALRPC))

    def learn(self, sender: Client, handle: bytes) -> None:
        """Send until the next of the kind is recognised."""
        for _ in range(3):
            assert sender.sent(handle, b"learned") == "MQ_OK"
        self.call_purge()
        self.qm.settle()

    def call_purge(self) -> PendingCall:
        return self.reader.caller.send("R_PurgeQueue", phContext=self.reading)

    def send(self, body: bytes, sender: Client | None = None, handle: bytes = b"") -> PendingCall:
        """One that a template takes, if there are any."""
        call = (sender or self.sender).start_send(handle or self.handle, body)
        assert self.qm.speed.turn.waiting is self.templates
        return call

    def settle(self) -> None:
        self.qm.settle()
        for caller in (self.sender.caller, self.reader.caller):
            caller.protocol()

    def status(self, call: PendingCall) -> str:
        self.settle()
        try:
            return status_name(call.result().result)
        except Fault as fault:
            return str(fault)

    def bodies(self, queue: Queue | None = None) -> list[bytes]:
        self.settle()
        return self.qm.bodies(queue or self.queue)


@pytest.fixture(params=[True, False], ids=["templates", "careful"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    qm = RunningQueueManager(tmp_path)
    yield Desk(qm, request.param)
    qm.stop()


@contextmanager
def one_segment(caller: Caller) -> Iterator[None]:
    """What is sent within comes in one piece."""
    caller.protocol = lambda: None  # type: ignore[method-assign]
    yield
    del caller.protocol
    caller.protocol()


# Order


def test_a_close_behind_sends_in_one_segment_does_not_overtake_them(desk: Desk) -> None:
    with one_segment(desk.sender.caller):
        sends = [desk.sender.start_send(desk.handle, b"%d" % number) for number in range(3)]
        close = desk.sender.caller.send("rpc_ACCloseHandle", phQueue=desk.handle)
        late = desk.sender.start_send(desk.handle, b"late")
    told = [desk.status(call) for call in sends]
    assert desk.status(close) == "MQ_OK"
    assert "fault" in desk.status(late)
    # Without templates a close ends those that wait for another one (G53).
    assert told == ["MQ_OK"] * 3 or not desk.templates
    assert desk.bodies() == [b"%d" % number for number in range(told.count("MQ_OK"))]


def test_a_close_does_not_end_what_came_before_it(desk: Desk) -> None:
    desk.queue.quota = 0
    with one_segment(desk.sender.caller):
        refused = desk.sender.start_send(desk.handle, b"x")
        close = desk.sender.caller.send("rpc_ACCloseHandle", phQueue=desk.handle)
    assert desk.status(refused) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert desk.status(close) == "MQ_OK"


def test_a_purge_behind_sends_does_not_overtake_them(desk: Desk) -> None:
    first = desk.send(b"purged")
    assert desk.status(first) == "MQ_OK"
    second = desk.send(b"purged, too")
    purge = desk.call_purge()
    third = desk.send(b"kept")
    assert {desk.status(call) for call in (purge, second, third)} == {"MQ_OK"}
    assert desk.bodies() == [b"kept"]


def test_a_purge_counts_what_it_has_waited_for_and_leaves_what_others_have_got(desk: Desk) -> None:
    desk.send(b"read")
    read = desk.reader.start(desk.reading, timeout=1000)
    other = desk.connect()
    other.start_send(other.open(desk.queue, SEND)[0], b"purged")
    desk.qm.store.carry_out_first()
    purging = desk.qm.engine.queues.purge_queue(desk.queue)
    desk.settle()
    assert body_of(read.result()) == b"read"
    assert purging.result() == 1


@pytest.mark.parametrize("timeout", [0, 1000])
@pytest.mark.parametrize("action", [RECEIVE, PEEK_CURRENT])
def test_a_read_behind_sends_does_not_overtake_them(desk: Desk, action: int, timeout: int) -> None:
    desk.send(b"first")
    read = desk.reader.start(desk.reading, timeout=timeout, action=action)
    desk.send(b"second")
    desk.settle()
    assert body_of(read.result()) == b"first"


def test_a_read_behind_sends_that_others_get_finds_nothing(desk: Desk) -> None:
    other = Reader(served_remote_read(desk.qm).connect(ALICE))
    reading = other.open(desk.queue)
    waiting = desk.reader.start(desk.reading, timeout=1000)
    desk.send(b"first")
    desk.qm.store.carry_out_first()
    behind = other.start(reading, timeout=0)
    desk.settle()
    other.caller.protocol()
    assert body_of(waiting.result()) == b"first"
    assert status_name(behind.result().result) == "MQ_ERROR_IO_TIMEOUT"


def test_a_careful_send_behind_templated_ones_keeps_its_place(desk: Desk) -> None:
    with one_segment(desk.sender.caller):
        for body, fields in (
            (b"1", {}),
            (b"2", {}),
            (b"3", {"pAuditing": 2}),
            (b"4", {}),
            (b"5", {"pAuditing": 3}),
            (b"6", {}),
        ):
            desk.sender.start_send(desk.handle, body, **fields)
    assert desk.bodies() == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_calls_outstanding_on_one_handle_are_each_answered(desk: Desk) -> None:
    calls = [desk.send(b"%d" % number) for number in range(40)]
    assert not any(call.answered for call in calls)
    assert [desk.status(call) for call in calls] == ["MQ_OK"] * 40
    numbers = [call.result().pMessageID.Uniquifier for call in calls]
    page = desk.queue.message_position_list.page(None, 40)
    kept = [desk.qm.engine.positions.message_at(desk.queue, key).attributes for key in page]
    assert numbers == [each.identifier.ordinal for each in kept]
    assert desk.bodies() == [b"%d" % number for number in range(40)]


def test_messages_of_two_clients_keep_the_order_in_which_they_came(desk: Desk) -> None:
    other = desk.connect()
    handle = other.open(desk.queue, SEND)[0]
    desk.send(b"1")
    desk.send(b"2", other, handle)
    desk.send(b"3")
    assert desk.bodies() == [b"1", b"2", b"3"]


def test_express_and_recoverable_ones_keep_the_order_in_which_they_came(desk: Desk) -> None:
    for _ in range(3):
        desk.sender.sent(desk.handle, b"learned", pDelivery=0)
    desk.call_purge()
    desk.settle()
    for number in range(6):
        desk.sender.start_send(desk.handle, b"%d" % number, pDelivery=number // 2 % 2)
        assert desk.qm.speed.turn.waiting is desk.templates
    assert desk.bodies() == [b"%d" % number for number in range(6)]


def test_waiting_readers_and_peekers_are_woken_in_order(desk: Desk) -> None:
    watching = Reader(served_remote_read(desk.qm).connect(ALICE))
    peek = watching.start(watching.open(desk.queue, PEEK_ACCESS), PEEK_CURRENT, timeout=60_000)
    reads = [desk.reader.start(desk.reading, timeout=60_000) for _ in range(3)]
    for body in (b"1", b"2", b"3"):
        desk.send(body)
    desk.settle()
    watching.caller.protocol()
    assert body_of(peek.result()) == b"1"
    assert [body_of(each.result()) for each in reads] == [b"1", b"2", b"3"]


# Seen at once


def change_quota(desk: Desk) -> None:
    desk.queue.quota = 0


def change_authentication(desk: Desk) -> None:
    desk.queue.authentication = True


def change_privacy(desk: Desk) -> None:
    desk.queue.privacy_level = QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY


def change_transactional(desk: Desk) -> None:
    desk.queue.transactional = True


CHANGES = [
    change_transactional,
    change_quota,
    change_authentication,
    change_privacy,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_a_changed_property_of_a_queue_is_seen_at_once(
    desk: Desk, change: Callable[[Desk], None]
) -> None:
    change(desk)
    desk.send(b"x")
    assert desk.bodies() == []


def test_a_quota_is_exact_to_the_message(desk: Desk) -> None:
    one = len(desk.qm.compose(desk.queue, bytes(400)).packet)
    desk.queue.quota = 2
    room = 2048 // one
    ordinals = desk.qm.store.counters.message_ordinal
    before = ordinals.next
    calls = [desk.send(bytes(400)) for _ in range(room + 2)]
    told = [desk.status(call) for call in calls]
    assert told[:room] == ["MQ_OK"] * room
    assert set(told[room:]) == {"MQ_ERROR_INSUFFICIENT_RESOURCES"}
    assert ordinals.next == before + len(calls)
    assert len(desk.bodies()) == room


def test_sends_ahead_of_a_change_of_their_queue_see_nothing_of_it(desk: Desk) -> None:
    administrator = Client(desk.server.connect(ADMINISTRATOR, transport=NCALRPC))
    with one_segment(desk.sender.caller):
        sends = [desk.sender.start_send(desk.handle, b"%d" % number) for number in range(3)]
    change = administrator.caller.send(
        "R_QMSetObjectProperties",
        pObjectFormat=object_of(desk.queue),
        cp=1,
        aProp=[QueueProperty.PROPID_Q_QUOTA],
        apVar=variants(PropVariant(VarType.VT_UI4, 0)),
    )
    late = desk.sender.start_send(desk.handle, b"late")
    told = [desk.status(call) for call in sends]
    administrator.caller.protocol()
    assert desk.status(change) == "MQ_OK"
    # Without templates those that wait for another one see what has changed meanwhile (G315).
    assert told == ["MQ_OK"] * 3 or not desk.templates
    assert told[0] == "MQ_OK"
    assert desk.status(late) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert desk.bodies() == [b"%d" % number for number in range(told.count("MQ_OK"))]


def test_a_trail_that_begins_notes_the_next_message(desk: Desk) -> None:
    desk.qm.engine.trail.switch(desk.queue, True)
    before = desk.qm.engine.trail._number
    assert desk.status(desk.sender.start_send(desk.handle, b"x")) == "MQ_OK"
    assert desk.qm.engine.trail._number == before + 1


def test_a_journal_that_begins_keeps_the_next_message_that_is_removed(desk: Desk) -> None:
    for _ in range(3):
        desk.send(b"removed")
        desk.settle()
        assert desk.reader.receive(desk.reading) == b"removed"
    desk.send(b"kept")
    desk.settle()
    desk.queue.journaling = True
    assert desk.reader.receive(desk.reading) == b"kept"
    journal = desk.queue.journal_queue_reference
    assert desk.bodies(journal) == [b"kept"]


def test_a_queue_that_was_deleted_takes_nothing_more(desk: Desk) -> None:
    desk.qm.done(desk.qm.engine.queues.delete_queue(desk.queue))
    told = desk.status(desk.sender.start_send(desk.handle, b"x"))
    assert told == "MQ_ERROR_QUEUE_DELETED" or "fault" in told or "QUEUE" in told


def test_a_queue_that_is_deleted_behind_sends_has_had_them(desk: Desk) -> None:
    call = desk.send(b"x")
    desk.qm.engine.queues.delete_queue(desk.queue)
    assert desk.status(call) == "MQ_OK"


def test_the_handle_of_somebody_else_sends_nothing(desk: Desk) -> None:
    bob = Client(desk.server.connect(BOB, transport=NCALRPC, group_id=desk.sender.caller.group_id))
    call = bob.start_send(desk.handle, b"x")
    assert not desk.qm.speed.turn.waiting
    desk.settle()
    bob.caller.protocol()
    with pytest.raises(Fault):
        call.result()
    assert desk.bodies() == []


# Ends


def test_cancelled_and_orphaned_calls_have_sent(desk: Desk) -> None:
    """Who gives up a call that is on its way is not told whether it has been carried out."""
    orphaned, cancelled = desk.send(b"orphaned"), desk.send(b"cancelled")
    desk.sender.caller.cancel(cancelled)
    desk.sender.caller.orphan(orphaned)
    assert desk.status(cancelled) == "MQ_OK"
    assert not orphaned.answered
    assert desk.bodies() == [b"orphaned", b"cancelled"]
    assert desk.status(desk.send(b"next")) == "MQ_OK"
    assert desk.server.dispatcher.pending == 0


def test_a_connection_that_breaks_has_sent_what_came(desk: Desk) -> None:
    desk.send(b"sent")
    desk.sender.caller.lose()
    assert desk.bodies() == [b"sent"]
    assert desk.server.dispatcher.pending == 0


def test_a_queue_manager_that_stops_has_what_came(desk: Desk) -> None:
    desk.send(b"sent")
    desk.qm.restart()
    assert desk.qm.bodies(desk.qm.find()) == [b"sent"]


def test_a_full_disk_refuses_each_and_room_lets_the_next_in(desk: Desk) -> None:
    space = desk.qm.engine.queue_manager
    desk.qm.free = 0
    desk.qm.store.space.keep_free(1)
    calls = [desk.send(b"%d" % number) for number in range(3)]
    assert {desk.status(call) for call in calls} == {"MQ_ERROR_INSUFFICIENT_RESOURCES"}
    assert space.throttled
    assert desk.server.dispatcher.pending == 0
    desk.qm.free = 1 << 40
    assert desk.status(desk.send(b"next")) == "MQ_OK"
    assert desk.bodies() == [b"next"]


def test_a_message_without_time_to_live_is_gone_at_once(desk: Desk) -> None:
    for _ in range(4):
        call = desk.sender.start_send(desk.handle, b"x", ulRelativeTimeToLive=0)
    assert desk.status(call) == "MQ_OK"
    desk.qm.advance(1001)
    assert desk.bodies() == []


def test_a_second_end_of_a_read_in_one_turn_is_refused(desk: Desk) -> None:
    for number in range(6):
        desk.send(b"%d" % number)
    desk.settle()
    for _ in range(4):
        desk.reader.read(desk.reading, request_id=7)
        call = [
            desk.reader.caller.send("R_EndReceive", phContext=desk.reading, dwAck=2, dwRequestId=7)
            for _ in range(2)
        ]
        assert desk.status(call[0]) == "MQ_OK"
        assert desk.status(call[1]) != "MQ_OK"
    assert desk.bodies() == [b"4", b"5"]


def test_a_switch_takes_effect_with_the_next_request(desk: Desk) -> None:
    before = desk.qm.store.metrics.of("templates").get("sent", 0)
    first = desk.send(b"1")
    desk.qm.speed.turn.is_on = False
    second = desk.sender.start_send(desk.handle, b"2")
    assert [desk.status(first), desk.status(second)] == ["MQ_OK"] * 2
    assert desk.qm.store.metrics.of("templates").get("sent", 0) == before + desk.templates
    assert desk.bodies() == [b"1", b"2"]


def test_a_message_that_another_reader_has_locked_stays(desk: Desk) -> None:
    """An end in one turn with a negative end, and another reader's lock."""
    for number in range(5):
        desk.send(b"%d" % number)
    desk.settle()
    for number in range(3):
        desk.reader.read(desk.reading, request_id=number)
        assert desk.reader.end(desk.reading, number) == "MQ_OK"
    other = Reader(desk.reader.caller.server.connect(ALICE))
    reading = other.open(desk.queue)
    desk.reader.read(desk.reading, request_id=7)
    given = desk.reader.caller.send("R_EndReceive", phContext=desk.reading, dwAck=1, dwRequestId=7)
    taken = other.start(reading, request_id=8)
    late = desk.reader.caller.send("R_EndReceive", phContext=desk.reading, dwAck=2, dwRequestId=7)
    assert desk.status(given) == "MQ_OK"
    assert desk.status(late) != "MQ_OK"
    other.caller.protocol()
    assert body_of(taken.result()) == b"3"
    assert desk.bodies() == [b"4"]


def test_a_negative_end_gives_back(desk: Desk) -> None:
    for number in range(5):
        desk.send(b"%d" % number)
    desk.settle()
    for number in range(3):
        desk.reader.read(desk.reading, request_id=number)
        assert desk.reader.end(desk.reading, number) == "MQ_OK"
    desk.reader.read(desk.reading, request_id=7)
    assert desk.reader.end(desk.reading, 7, acknowledgement=1) == "MQ_OK"
    assert desk.bodies() == [b"3", b"4"]


def test_a_trail_that_begins_notes_the_next_removal(desk: Desk) -> None:
    for number in range(5):
        desk.send(b"%d" % number)
    desk.settle()
    for number in range(4):
        desk.reader.read(desk.reading, request_id=number)
        if number == 3:
            desk.qm.engine.trail.switch(desk.queue, True)
            before = desk.qm.engine.trail._number
        assert desk.reader.end(desk.reading, number) == "MQ_OK"
    assert desk.qm.engine.trail._number == before + 1


def test_a_change_from_elsewhere_does_not_overtake_sends(desk: Desk) -> None:
    desk.send(b"1")
    with desk.qm.store.transaction("elsewhere"):
        assert not desk.qm.speed.turn.waiting
    assert desk.bodies() == [b"1"]


def test_a_priority_out_of_range_is_refused(desk: Desk) -> None:
    for priority in (0, 3, 7, 5):
        assert desk.sender.sent(desk.handle, b"learned", pPriority=priority) == "MQ_OK"
    desk.call_purge()
    assert desk.sender.sent(desk.handle, b"learned", pPriority=8) != "MQ_OK"
    assert desk.bodies() == []


def test_a_destination_that_was_added_is_sent_to_at_once(desk: Desk) -> None:
    other = desk.qm.create(OTHER)
    handle, number = desk.sender.open(desk.queue, SEND)
    assert desk.sender.sent(handle, b"one") == "MQ_OK"
    added = desk.sender.status(
        "R_AddDestination", dwQMContext=number, pQueueFormat=format_of(other)
    )
    assert added == "MQ_OK"
    assert desk.sender.sent(handle, b"two") == "MQ_OK"
    assert desk.bodies(other) == [b"two"]


def test_a_dead_letter_queue_that_was_named_is_kept_at_once(desk: Desk) -> None:
    chosen = desk.qm.create(OTHER)
    handle, number = desk.sender.open(desk.queue, SEND)
    fields = {"pAuditing": 1, "ulRelativeTimeToLive": 1}
    for _ in range(4):
        desk.sender.sent(handle, b"before", **fields)
    named = desk.sender.status(
        "R_SetDeadLetterQueue", dwQMContext=number, pDeadLetterQueue=format_of(chosen)
    )
    assert named == "MQ_OK"
    assert desk.sender.sent(handle, b"one", **fields) == "MQ_OK"
    desk.qm.advance(2_000)
    assert desk.bodies(chosen) == [b"one"]


def test_a_handle_for_reading_sends_nothing(desk: Desk) -> None:
    handle = desk.sender.open(desk.queue)[0]
    assert desk.sender.sent(handle, b"x") == "MQ_ERROR_ACCESS_DENIED"
    assert desk.bodies() == []


def test_the_number_of_a_read_that_has_ended_can_be_used_again(desk: Desk) -> None:
    for number in range(5):
        desk.send(b"%d" % number)
    desk.settle()
    for _ in range(5):
        assert desk.reader.read(desk.reading, request_id=7).result == 0
        assert desk.reader.end(desk.reading, 7) == "MQ_OK"
    assert desk.bodies() == []


def test_the_way_to_an_administration_queue_is_made_once(desk: Desk) -> None:
    """Also where the messages that need it first have not all room."""
    name = FormatName.parse(ELSEWHERE)
    asked = CACTransferBufferV1_Send(pAdminQueueFormat=queue_format_of(name))
    asking: dict[str, Any] = {"send": asked, "pAcknowledge": 1}
    desk.queue.quota = 0
    for _ in range(3):
        told = desk.sender.sent(desk.handle, bytes(400), **asking)
        assert told == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert desk.qm.engine.outgoing.find(name) is None
    desk.queue.quota = 2
    calls = [desk.sender.start_send(desk.handle, bytes(400), **asking) for _ in range(6)]
    assert desk.qm.speed.turn.waiting is desk.templates
    taken = [desk.status(call) for call in calls].count("MQ_OK")
    assert 0 < taken < len(calls)
    assert len(desk.qm.engine.acknowledgement_queues) == 1
    desk.qm.restart()
    queue = desk.qm.engine.outgoing.find(name)
    assert queue is not None
    assert queue.message_count == taken
