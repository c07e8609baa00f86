"""Sequences of transactional messages ([MS-MQQB] 3.1.1.5, 3.1.1.6.2)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo
from rpcqm.base.errors import DecodeError
from rpcqm.binary.sequence import (
    IncomingSequence,
    OrderAckSchedule,
    OutgoingSequence,
    Stamp,
    next_identifier,
)
from rpcqm.binary.settings import BinarySettings
from rpcqm.codec.packet.types import TxSequenceID
from tests.support.clock import SimulatedClock

FIRST = TxSequenceID(1, 1_750_000_000)
SECOND = TxSequenceID(2, 1_750_000_000)
MINUTE = 60_000
HOUR = 60 * MINUTE


class Sender:
    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.resent: list[int] = []
        self.sequence = OutgoingSequence(
            FIRST, self.clock, self.clock.timers, lambda: self.resent.append(self.clock.monotonic())
        )

    def send(self, *keys: int) -> list[Stamp]:
        stamps = [self.sequence.assign(key) for key in keys]
        self.sequence.ladder.wait()
        return stamps


@pytest.mark.conformance("MQQB-rule-3.1.1.5", "MQQB-rule-3.1.7.1.3")
def test_messages_are_numbered_from_one_at_their_first_transmission() -> None:
    assert Sender().send(70, 71) == [Stamp(FIRST, 1, 0), Stamp(FIRST, 2, 1)]


@pytest.mark.conformance("MQQB-rule-3.1.7.1.3")
def test_a_message_sent_again_bridges_the_gap_of_one_that_has_expired() -> None:
    sender = Sender()
    sender.send(70, 71, 72)
    sender.sequence.forget(71)
    assert sender.sequence.stamp_of(72) == Stamp(FIRST, 3, 1)


@pytest.mark.conformance("MQQB-rule-3.1.7.1.3")
def test_the_first_message_that_is_sent_again_has_none_before_it() -> None:
    """A receiver that was restored from a backup may know of none, or of another sequence."""
    sender = Sender()
    sender.send(70, 71, 72)
    sender.sequence.order_ack(FIRST, 1)
    assert sender.sequence.stamp_of(71) == Stamp(FIRST, 2, 0)
    assert sender.sequence.stamp_of(72) == Stamp(FIRST, 3, 2)


@pytest.mark.conformance("MQQB-timer-transactional_ack_wait", "MQQB-rule-3.1.3.1")
def test_the_ladder_climbs_to_six_hours_and_stays_there() -> None:
    sender = Sender()
    sender.send(70)
    sender.clock.advance(24 * HOUR)
    steps = [30_000] * 3 + [5 * MINUTE] * 3 + [30 * MINUTE] * 3 + [6 * HOUR] * 3
    times = [sum(steps[: count + 1]) for count in range(len(steps))]
    assert sender.resent == times[: len(sender.resent)]
    assert len(sender.resent) == 12


@pytest.mark.conformance("MQQB-rule-3.1.5.6")
def test_progress_starts_the_ladder_anew_and_the_end_stops_it() -> None:
    sender = Sender()
    sender.send(70, 71)
    sender.clock.advance(90_000)
    assert sender.sequence.ladder.step == 3
    assert sender.sequence.order_ack(FIRST, 1) == [70]
    assert sender.sequence.ladder.step == 0
    sender.clock.advance(30_000)
    assert sender.resent[-1] == 120_000
    assert sender.sequence.order_ack(FIRST, 2) == [71]
    assert not len(sender.clock.timers)


@pytest.mark.conformance("MQQB-rule-3.1.5.6")
@pytest.mark.parametrize(
    ("sequence", "number"), [(SECOND, 1), (FIRST, 3), (FIRST, 0)], ids=["other", "high", "zero"]
)
def test_an_order_ack_of_something_else_frees_nothing(sequence: TxSequenceID, number: int) -> None:
    sender = Sender()
    sender.send(70, 71)
    assert sender.sequence.order_ack(sequence, number) == []
    assert sender.sequence.keys == [70, 71]


@pytest.mark.conformance("MQQB-rule-3.1.5.6", "MQQB-rule-3.1.1.5")
def test_a_drained_sequence_is_followed_by_that_of_the_next_ordinal() -> None:
    sender = Sender()
    sender.send(70)
    assert sender.sequence.next_stamp == Stamp(FIRST, 2, 1)
    sender.sequence.order_ack(FIRST, 1)
    assert sender.sequence.next_stamp == Stamp(SECOND, 1, 0)
    sender.sequence.restart(SECOND)
    assert sender.send(71) == [Stamp(SECOND, 1, 0)]
    assert sender.sequence.stamp_of(71) == Stamp(SECOND, 1, 0)
    assert sender.sequence.last_ack == Stamp(FIRST, 1, 0)
    assert sender.sequence.order_ack(SECOND, 1) == [71]


@pytest.mark.conformance("MQQB-rule-3.1.3.2")
def test_a_new_session_starts_the_ladder_and_the_count_anew() -> None:
    sender = Sender()
    sender.send(70, 71)
    sender.sequence.order_ack(FIRST, 1)
    sender.clock.advance(HOUR)
    sender.sequence.session_closed()
    assert (sender.sequence.ladder.resend_time, len(sender.clock.timers)) == (None, 0)
    sender.sequence.session_opened()
    assert (sender.sequence.ladder.step, sender.sequence.last_ack_count) == (0, 0)
    assert sender.sequence.last_ack_time == sender.clock.now() // 1000
    assert sender.sequence.last_ack == Stamp(FIRST, 1, 0)


def test_identifiers_of_two_queues_never_have_the_same_timestamp() -> None:
    assert next_identifier(TxSequenceID(), 5) == TxSequenceID(1, 5)
    assert next_identifier(TxSequenceID(1, 5), 5) == TxSequenceID(1, 6)
    assert next_identifier(TxSequenceID(9, 6), 5) == TxSequenceID(1, 7)


@pytest.mark.conformance("MQQB-element-OutgoingTransferSequence")
def test_a_sequence_goes_on_after_a_restart() -> None:
    sender = Sender()
    sender.send(70, 71, 72)
    sender.sequence.order_ack(FIRST, 1)
    kept = sender.sequence.encode()
    again = Sender()
    again.sequence.restore(kept, {72: 3, 71: 2})
    assert again.sequence.keys == [71, 72]
    assert again.sequence.last_ack == Stamp(FIRST, 1, 0)
    assert again.sequence.stamp_of(71) == Stamp(FIRST, 2, 0)
    assert again.send(73) == [Stamp(FIRST, 4, 3)]
    with pytest.raises(DecodeError):
        again.sequence.restore(kept[:-1], {})


@pytest.mark.conformance("MQQB-rule-3.1.5.6")
def test_administrators_see_the_state_of_a_sequence() -> None:
    sender = Sender()
    sender.send(70, 71, 72)
    sender.sequence.order_ack(FIRST, 1)
    info = OutgoingTransferInfo(OutgoingQueue())
    sender.sequence.show(info)
    assert (info.eod_last_ack.seq_no, info.eod_last_ack_count) == (1, 1)
    assert (info.eod_first_non_ack.seq_no, info.eod_last_non_ack.seq_no) == (2, 3)
    assert (info.eod_next_seq.seq_no, info.eod_next_seq.prev_no) == (4, 3)
    assert (info.eod_no_ack_count, info.eod_resend_interval) == (2, 30)
    assert info.eod_last_ack_time == 1_750_000_000
    assert info.eod_resend_time == 1_750_000_030


def test_an_administrator_can_have_everything_sent_again() -> None:
    sender = Sender()
    sender.sequence.ladder.resend_now()
    assert sender.resent == []
    sender.send(70)
    sender.sequence.ladder.resend_now()
    assert sender.resent == [0]


# The receiver


@pytest.mark.conformance("MQQB-rule-3.1.5.8.6")
@pytest.mark.parametrize(
    ("stamp", "accepted"),
    [
        (Stamp(FIRST, 6, 5), True),
        (Stamp(FIRST, 9, 5), True),
        (Stamp(FIRST, 9, 3), True),
        (Stamp(FIRST, 5, 4), False),
        (Stamp(FIRST, 8, 7), False),
        (Stamp(SECOND, 1, 0), True),
        (Stamp(SECOND, 4, 0), True),
        (Stamp(SECOND, 2, 1), False),
        (Stamp(TxSequenceID(9, 1), 1, 0), False),
    ],
    ids=[
        "next",
        "gap bridged",
        "older predecessor",
        "again",
        "gap",
        "new",
        "new after expired",
        "new but not first",
        "older sequence",
    ],
)
def test_messages_are_taken_in_order_and_once(stamp: Stamp, accepted: bool) -> None:
    incoming = IncomingSequence(FIRST, 5, 7)
    assert incoming.accept(stamp) is accepted
    expected = (stamp.sequence, stamp.number, 0) if accepted else (FIRST, 5, 8)
    assert (incoming.sequence, incoming.number, incoming.reject_count) == expected


@pytest.mark.conformance("MQQB-rule-3.1.5.8.6")
def test_the_receivers_sequence_survives_a_restart() -> None:
    incoming = IncomingSequence(FIRST, 5, 7)
    again = IncomingSequence.decode(incoming.encode())
    assert (again.sequence, again.number, again.reject_count) == (FIRST, 5, 7)
    assert again.durable == Stamp(FIRST, 5, 4)
    with pytest.raises(DecodeError):
        IncomingSequence.decode(b"short")


def test_only_what_is_durable_can_be_acknowledged() -> None:
    incoming = IncomingSequence(FIRST, 5)
    incoming.settled(Stamp(FIRST, 4, 3))
    incoming.settled(Stamp(FIRST, 3, 2))
    assert incoming.durable.number == 4
    incoming.settled(Stamp(SECOND, 1, 0))
    assert incoming.durable == Stamp(SECOND, 1, 0)


@given(st.lists(st.integers(0, 30), max_size=200))
def test_whatever_arrives_how_often_is_taken_once_in_order(order: list[int]) -> None:
    incoming = IncomingSequence()
    taken = [
        number for number in order if number and incoming.accept(Stamp(FIRST, number, number - 1))
    ]
    assert taken == list(range(1, len(taken) + 1))


class Acknowledger:
    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.sent: list[int] = []
        self.schedule = OrderAckSchedule(
            self.clock,
            self.clock.timers,
            BinarySettings(),
            lambda: self.sent.append(self.clock.monotonic()),
        )


@pytest.mark.conformance("MQQB-timer-order_ack_send")
def test_order_is_acknowledged_half_a_second_after_the_last_message() -> None:
    acknowledger = Acknowledger()
    for _ in range(3):
        acknowledger.schedule.message_received()
        acknowledger.clock.advance(400)
    acknowledger.clock.advance(1_000)
    assert acknowledger.sent == [800 + 500]


@pytest.mark.conformance("MQQB-timer-order_ack_send")
def test_a_steady_stream_is_acknowledged_every_ten_seconds() -> None:
    acknowledger = Acknowledger()
    for _ in range(1_000):
        acknowledger.schedule.message_received()
        acknowledger.clock.advance(100)
    gaps = [after - before for before, after in itertools.pairwise([0, *acknowledger.sent])]
    assert gaps
    assert max(gaps) <= 10_500
    acknowledger.schedule.stop()
    assert not len(acknowledger.clock.timers)
