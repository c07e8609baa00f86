"""Queue managers that were restored from a backup, on a simulated network (G358, G359)."""

import struct
from collections.abc import Iterator

import pytest

from rpcqm.adm.queue import OutgoingTransferInfo
from rpcqm.binary.connection.new_sequences import LEAP, begin_new_sequences
from rpcqm.binary.connection.sequence_numbers import (
    LAST_SEQUENCE_KEY,
    SEQUENCE_PREFIX,
    last_sequence,
    last_sequence_record,
)
from rpcqm.binary.sequence import identifier_in
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.store.restored import RESTORED_NAME
from tests.support.binary.binary_network import Node
from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging

DAY = 86_400_000
DEAD = "system$;deadxact"
BY_ADDRESS = "DIRECT=TCP:192.0.2.2\\private$\\stream"


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def send(pair: Exchanging, *bodies: bytes, to: str = STREAM, **more: object) -> None:
    for body in bodies:
        pair.alice.send(to, body, transactional=to != ORDERS, **more)


def sequence(node: Node, to: str = STREAM) -> TxSequenceID:
    """The sequence that an outgoing queue sends in."""
    found = node.protocol.transfers.of(node.outgoing(to)).sequence
    assert found is not None
    return found.identifier


def restore_after(pair: Exchanging, *later: bytes) -> None:
    """Two messages wait during the backup; they and others arrive, then it is restored."""
    send(pair, b"first")
    pair.settle()
    pair.bob.kill()
    send(pair, b"one", b"two")
    backup = pair.alice.back_up()
    pair.bob.start()
    pair.settle(60)
    send(pair, *later)
    pair.settle(60)
    pair.alice.restore(backup)


# The sender


@pytest.mark.conformance("MQQB-rule-3.1.1.5", "MQQB-rule-3.1.5.8.6")
@pytest.mark.parametrize("later", [(), (b"later",), (b"later", b"latest")], ids=len)
def test_a_restored_sender_sends_what_waits_and_what_is_new(
    pair: Exchanging, later: tuple[bytes, ...]
) -> None:
    restore_after(pair, *later)
    send(pair, b"back")
    pair.settle(60)
    had = [b"first", b"one", b"two", *later]
    assert pair.bob.bodies("stream") == [*had, b"one", b"two", b"back"]
    assert pair.alice.unsent == 0


def test_messages_that_were_in_flight_are_renumbered_in_order(pair: Exchanging) -> None:
    send(pair, b"first")
    pair.settle()
    with pair.alice.protocol.gathering:
        send(pair, b"one", b"two", b"three")
    kept = pair.alice.engine.protocol_records
    pair.simulation.until(lambda: len(list(kept.records(b"qb stamp:"))) == 3)
    backup = pair.alice.back_up()
    pair.settle(60)
    pair.alice.restore(backup)
    assert list(pair.alice.engine.protocol_records.records(b"qb stamp:")) == []
    send(pair, b"back")
    info = OutgoingTransferInfo(pair.alice.outgoing(STREAM))
    pair.simulation.until(lambda: len(pair.bob.bodies("stream")) == 8)
    found = pair.alice.protocol.transfers.of(pair.alice.outgoing(STREAM)).sequence
    assert found is not None
    found.show(info)
    assert (info.eod_first_non_ack.seq_no, info.eod_last_non_ack.seq_no) == (1, 4)
    pair.settle(60)
    assert pair.bob.bodies("stream")[4:] == [b"one", b"two", b"three", b"back"]
    assert pair.alice.unsent == 0


def test_a_new_sequence_comes_after_all_that_may_have_been_used(pair: Exchanging) -> None:
    """Also if the clock has been set back since, by less than the leap."""
    restore_after(pair)
    begun = sequence(pair.alice)
    backup = pair.alice.back_up()
    pair.simulation.clock.set_ahead(2 * 90 * DAY)
    for to in (STREAM, BY_ADDRESS):
        send(pair, b"later", to=to)
        pair.settle(60)
    used = [sequence(pair.alice, to) for to in (STREAM, BY_ADDRESS)]
    pair.simulation.clock.set_ahead(-91 * DAY)
    pair.alice.restore(backup)
    for to, before in zip((STREAM, BY_ADDRESS), used, strict=True):
        send(pair, b"back", to=to)
        pair.settle(60)
        assert begun <= before < sequence(pair.alice, to)
        assert sequence(pair.alice, to).ordinal == 1
    assert pair.bob.bodies("stream")[-2:] == [b"back", b"back"]


def test_a_clock_that_has_lost_its_time_is_behind_the_backup(pair: Exchanging) -> None:
    send(pair, b"first")
    pair.settle()
    pair.simulation.clock.set_ahead(200 * DAY)
    backup = pair.alice.back_up()
    send(pair, b"later", to=BY_ADDRESS)
    pair.settle(60)
    pair.simulation.clock.set_ahead(-10_000 * DAY)
    pair.alice.restore(backup)
    send(pair, b"back", to=BY_ADDRESS)
    pair.settle(60)
    assert pair.bob.bodies("stream") == [b"first", b"later", b"back"]


def test_each_restore_of_one_backup_gives_every_queue_a_greater_sequence(pair: Exchanging) -> None:
    names = [f"DIRECT=OS:bob\\private$\\stream{number}" for number in range(20)]
    for number, name in enumerate(names):
        pair.bob.create(f"stream{number}", transactional=True)
        send(pair, b"first", to=name)
    pair.settle()
    pair.bob.kill()
    for name in names:
        send(pair, b"waits", to=name)
    backup = pair.alice.back_up()
    pair.bob.start()
    pair.settle(60)
    for life in (b"1", b"2", b"3"):
        pair.alice.restore(backup)
        for name in names:
            send(pair, life, to=name)
        pair.settle(2)
        names.reverse()
    pair.settle(60)
    expected = [b"first", b"waits", b"waits", b"1", b"waits", b"2", b"waits", b"3"]
    for number in range(20):
        assert pair.bob.bodies(f"stream{number}") == expected
    assert pair.alice.unsent == 0


def test_a_mark_holds_once_whatever_ends_the_first_start(pair: Exchanging) -> None:
    restore_after(pair)
    begun = sequence(pair.alice)
    pair.alice.kill()
    pair.alice.start()
    assert sequence(pair.alice) == begun
    pair.settle(60)
    assert pair.bob.bodies("stream") == [b"first", b"one", b"two", b"one", b"two"]
    pair.alice.restart()
    send(pair, b"back")
    pair.settle(60)
    assert pair.bob.bodies("stream")[5:] == [b"back"]


def test_an_operator_may_write_the_mark(pair: Exchanging) -> None:
    send(pair, b"first")
    pair.settle()
    pair.bob.kill()
    send(pair, b"waits")
    begun = sequence(pair.alice)
    for content in (b"", b"Mon Nov 23 22:00:00 UTC 2026\n", b"[]", b"\xff" * 10_000):
        pair.alice.stop()
        (pair.alice.store.directory / RESTORED_NAME).write_bytes(content)
        pair.alice.start()
        assert begun < (begun := sequence(pair.alice))
        pair.alice.restart()
        assert sequence(pair.alice) == begun
    pair.bob.start()
    pair.settle(60)
    assert pair.bob.bodies("stream") == [b"first", b"waits"]


def test_a_queue_on_hold_begins_its_new_sequence_when_it_is_resumed(pair: Exchanging) -> None:
    send(pair, b"first")
    pair.settle()
    pair.alice.engine.outgoing.admin_pause_queue(pair.alice.outgoing(STREAM))
    send(pair, b"one")
    backup = pair.alice.back_up()
    pair.alice.engine.outgoing.admin_resume_queue(pair.alice.outgoing(STREAM))
    pair.settle(60)
    send(pair, b"later")
    pair.settle(60)
    pair.alice.restore(backup)
    pair.settle(60)
    assert pair.bob.bodies("stream") == [b"first", b"one", b"later"]
    pair.alice.engine.outgoing.admin_resume_queue(pair.alice.outgoing(STREAM))
    pair.settle(60)
    assert pair.bob.bodies("stream") == [b"first", b"one", b"later", b"one"]
    assert pair.alice.unsent == 0


def test_what_expires_after_a_restore_is_a_dead_letter_and_leaves_no_gap(pair: Exchanging) -> None:
    send(pair, b"first")
    pair.settle()
    pair.bob.kill()
    send(pair, b"old", time_to_reach_queue=60, negative_journaling_requested=True)
    send(pair, b"one")
    backup = pair.alice.back_up()
    pair.bob.start()
    pair.settle(30)
    send(pair, b"later")
    pair.settle(60)
    pair.alice.restore(backup)
    pair.settle(60)
    assert pair.alice.bodies(DEAD) == [b"old"]
    assert pair.bob.bodies("stream") == [b"first", b"old", b"one", b"later", b"one"]
    assert pair.alice.unsent == 0


@pytest.mark.parametrize("end", ["receive", "purge"])
def test_what_is_sent_again_is_decided_about(pair: Exchanging, end: str) -> None:
    """Its final acknowledgement counts, by the sequence that it was sent in."""
    pair.bob.kill()
    send(pair, b"one", negative_journaling_requested=True)
    backup = pair.alice.back_up()
    pair.bob.start()
    pair.settle(60)
    assert pair.bob.receive("stream") == b"one"
    pair.settle(60)
    assert pair.alice.unsent == 0
    pair.alice.restore(backup)
    pair.settle(60)
    if end == "receive":
        assert pair.bob.receive("stream") == b"one"
    else:
        pair.bob.engine.queues.purge_queue(pair.bob.find("stream"))
    pair.settle(60)
    assert pair.alice.unsent == 0
    assert pair.alice.bodies(DEAD) == ([] if end == "receive" else [b"one"])


def test_what_has_arrived_and_waits_for_its_end_is_not_sent_again(pair: Exchanging) -> None:
    send(pair, b"one", negative_journaling_requested=True)
    pair.settle(60)
    backup = pair.alice.back_up()
    pair.alice.restore(backup)
    send(pair, b"back")
    pair.settle(60)
    assert pair.bob.bodies("stream") == [b"one", b"back"]
    pair.bob.engine.queues.purge_queue(pair.bob.find("stream"))
    pair.settle(60)
    assert pair.alice.bodies(DEAD) == [b"one"]
    assert pair.alice.unsent == 0


@pytest.mark.parametrize("purged", ["now", "before the backup", "after a restart"])
def test_what_may_have_met_its_end_since_the_backup_can_be_purged(
    pair: Exchanging, purged: str
) -> None:
    send(pair, b"one", negative_journaling_requested=True)
    pair.settle(60)

    def purge() -> None:
        pair.alice.engine.queues.purge_queue(pair.alice.outgoing(STREAM))
        pair.alice.settle()

    if purged == "before the backup":
        purge()
    assert pair.alice.unsent == 1
    backup = pair.alice.back_up()
    pair.bob.receive("stream")
    pair.settle(60)
    assert pair.alice.unsent == 0
    pair.alice.restore(backup)
    send(pair, b"back", negative_journaling_requested=True)
    pair.settle(60)
    if purged == "after a restart":
        pair.alice.restart()
    assert pair.alice.unsent == 2
    purge()
    assert pair.alice.unsent == 1
    assert pair.alice.bodies(DEAD) == [b"one"]
    assert list(pair.alice.engine.protocol_records.records(b"final in doubt:")) == []
    pair.alice.restart()
    assert pair.bob.receive("stream") == b"back"
    pair.settle(60)
    assert pair.alice.unsent == 0
    assert pair.alice.bodies(DEAD) == [b"one"]


def test_identifiers_that_may_have_been_given_since_are_left_out(pair: Exchanging) -> None:
    send(pair, b"first", to=ORDERS)
    pair.settle()
    backup = pair.alice.back_up()
    pair.alice.restart()
    given = pair.alice.send(ORDERS, b"later")
    pair.settle()
    pair.alice.restore(backup)
    new = pair.alice.send(ORDERS, b"back")
    pair.settle()
    assert pair.bob.bodies() == [b"first", b"later", b"back"]
    assert new.ordinal - given.ordinal > 1 << 27
    again = pair.alice.send(ORDERS, b"again")
    assert again.ordinal == new.ordinal + 1
    pair.alice.restore(backup)
    assert abs(pair.alice.send(ORDERS, b"once more").ordinal - new.ordinal) > 4096
    pair.settle()
    assert pair.bob.bodies()[-2:] == [b"again", b"once more"]


def test_lookup_identifiers_that_may_have_been_given_since_are_left_out(pair: Exchanging) -> None:
    backup = pair.bob.back_up()
    send(pair, b"later", to=ORDERS)
    pair.settle()
    given = pair.bob.find().message_position_list.page(None, 9)
    pair.bob.restore(backup)
    send(pair, b"back", to=ORDERS)
    pair.settle(60)
    new = pair.bob.find().message_position_list.page(None, 9)
    assert new[-1] - given[-1] >= 1 << 32


# The receiver


@pytest.mark.conformance("MQQB-rule-3.1.7.1.3", "MQQB-rule-3.1.5.8.6")
@pytest.mark.parametrize("known", [False, True], ids=["nothing", "an earlier sequence"])
def test_a_restored_receiver_takes_what_has_not_been_acknowledged(
    pair: Exchanging, known: bool
) -> None:
    """Part of a sequence was acknowledged after the backup, the rest was under way."""
    if known:
        send(pair, b"before")
        pair.settle()
    backup = pair.bob.back_up()
    with pair.alice.protocol.gathering:
        send(pair, b"one", b"two", b"three")
    pair.simulation.until(lambda: len(pair.bob.bodies("stream")) == 3 + known)
    transfer = pair.alice.protocol.transfers.of(pair.alice.outgoing(STREAM))
    assert transfer.sequence is not None
    transfer.order_ack(transfer.sequence.identifier, 1)
    pair.bob.restore(backup)
    pair.settle(120)
    assert pair.bob.bodies("stream") == [b"before"] * known + [b"two", b"three"]
    send(pair, b"four")
    pair.settle(60)
    assert pair.bob.bodies("stream")[-1] == b"four"
    assert pair.alice.unsent == 0


def test_both_may_be_restored(pair: Exchanging) -> None:
    send(pair, b"first")
    pair.settle()
    of_bob = pair.bob.back_up()
    pair.bob.kill()
    send(pair, b"one")
    of_alice = pair.alice.back_up()
    pair.bob.start()
    pair.settle(60)
    send(pair, b"later")
    pair.settle(60)
    pair.bob.restore(of_bob)
    pair.alice.restore(of_alice)
    send(pair, b"back")
    pair.settle(60)
    assert pair.bob.bodies("stream") == [b"first", b"one", b"back"]
    assert pair.alice.unsent == 0


# The records


def test_without_any_sequence_the_next_ones_are_later() -> None:
    changes = begin_new_sequences(lambda prefix: iter(()), 5)
    assert changes == {LAST_SEQUENCE_KEY: last_sequence_record(TxSequenceID(1, 5 + LEAP))}


def test_every_queue_has_its_place_among_new_sequences() -> None:
    """So each restore of a backup gives all of them greater ones, in whichever order they send."""
    kept = {
        SEQUENCE_PREFIX + bytes([each]): struct.pack("<QIQIQ", each, 1, 0, 0, 0) for each in (7, 3)
    }

    def records(prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        yield from (each for each in kept.items() if each[0].startswith(prefix))

    first, second = (begin_new_sequences(records, now) for now in (50, 51))
    for key in kept:
        before, after = first[key], second[key]
        assert before is not None
        assert after is not None
        assert identifier_in(before) < identifier_in(after)


def test_a_damaged_sequence_is_forgotten() -> None:
    whole = struct.pack("<QIQIQ", TxSequenceID(9, 7).value, 4, 3, 2, TxSequenceID(8, 7).value)
    old = whole[:24]
    kept = {b"1": whole, b"2": old, b"3": whole[:5]}

    def records(prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        if prefix == SEQUENCE_PREFIX:
            yield from ((prefix + key, value) for key, value in kept.items())

    changes = begin_new_sequences(records, 5)
    first, second = (changes[SEQUENCE_PREFIX + key] for key in (b"1", b"2"))
    assert first is not None
    assert second is not None
    assert identifier_in(first) == TxSequenceID(1, 8 + LEAP)
    assert first[8:] == struct.pack("<IQIQ", 1, 3, 2, TxSequenceID(8, 7).value)
    assert second[8:] == struct.pack("<IQIQ", 1, 3, 2, TxSequenceID(9, 7).value)
    assert changes[SEQUENCE_PREFIX + b"3"] is None
    assert last_sequence(changes[LAST_SEQUENCE_KEY]) == TxSequenceID(1, 10 + LEAP)


def test_timestamps_stay_within_their_bits() -> None:
    last = last_sequence_record(TxSequenceID(1, 0xFFFF_FFF0))

    def records(prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        if prefix == LAST_SEQUENCE_KEY:
            yield prefix, last

    kept = last_sequence(begin_new_sequences(records, 5)[LAST_SEQUENCE_KEY])
    assert kept.timestamp < 1 << 32
