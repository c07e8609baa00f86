"""Messages that are sent together leave as each of them would ([MS-MQQB] 3.1.7.1)."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.store.records import Family
from tests.support.binary.binary_acceptor import ScriptedAcceptor
from tests.support.binary.binary_network import Simulation
from tests.support.queue_manager import MEMORY

ORDERS, STREAM = "DIRECT=OS:bob\\private$\\orders", "DIRECT=OS:bob\\private$\\stream"
OWN = UUID(int=1).bytes_le
WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]
"""An example takes long enough that making it smaller would take minutes."""


class Half:
    """A queue manager that sends messages together, or one by one."""

    def __init__(self, directory: Path, together: bool) -> None:
        self.together = together
        self.simulation = Simulation(directory / str(together))
        self.alice = self.simulation.node("alice")
        self.alice.resolve("bob")
        self.peer = ScriptedAcceptor(self.alice)
        self._begin()

    def _begin(self) -> None:
        self.alice.switch(self.together)

    def die(self) -> None:
        self.alice.kill()
        self.peer.connection = None
        self.alice.start()
        self._begin()

    def send(self, to: str, count: int, how: dict[str, Any]) -> None:
        for number in range(count):
            self.alice.send_later(to, b"%d" % number, to == STREAM, **how)
        self.alice.settle()

    def open(self) -> None:
        self.peer.open()

    def acknowledge(self, count: int, persisted: int) -> None:
        self.peer.acknowledge(count, persisted)

    def acknowledge_order(self, all_but: int) -> None:
        self.peer.acknowledge_order(all_but)

    def disconnect(self) -> None:
        self.peer.disconnect()

    def set_ahead(self, milliseconds: int) -> None:
        self.simulation.clock.set_ahead(milliseconds)

    def remove(self, place: int) -> None:
        """Remove a message whatever its state, as an administrator may."""
        (queue,) = self._queues()
        key = list(self.alice.store.index(queue.queue_id).keys())[place]
        with self.alice.store.transaction("removed") as change:
            reason = MessageClass.MQMSG_CLASS_NACK_DELETED
            self.alice.engine.positions.message_position_deleted(change, queue, key, reason)

    def purge(self) -> None:
        for queue in self._queues():
            self.alice.engine.queues.purge_queue(queue)

    def _queues(self) -> list[OutgoingQueue]:
        return self.alice.engine.outgoing.list()

    @property
    def kept(self) -> dict[str, Any]:
        """What has been sent, and what is in the store and in memory."""
        own, store = self.alice.engine.queue_manager.identifier.bytes_le, self.alice.store
        trace = self.alice.engine.message_trace
        kept: dict[str, Any] = {
            "sent": [packet.replace(own, OWN) for packet in self.peer.messages],
            "streams": dict(store.records(Family.STREAM)),
            "total": (store.total.count, store.total.bytes),
            "numbers": store.counters.places(),
            "metrics": {
                name: count
                for name, count in store.metrics.counts.items()
                if count and not name.startswith(("templates.", "store_"))
            },
            "unsynced": self.alice.engine.transfer.unsynced,
            "trace": [
                (place, identifier.replace(own, OWN), to, trace._steps[place])
                for place, (identifier, to) in trace._sent.items()
            ],
        }
        for queue in self._queues():
            index = store.index(queue.queue_id)
            kept[queue.destination_format_name] = [
                (key, index.position(key), index.state(key)) for key in list(index.keys())
            ]
            transfer = self.alice.protocol.transfers.of(queue)
            session = transfer.route.connection and transfer.route.connection.session
            kept[f"session of {queue}"] = session and (
                session.message_sent_count,
                session.recoverable_message_sent_count,
                session.room,
                list(session._sent.unpersisted),
                list(transfer.in_flight),
                session._ack_wait is None,
            )
        return kept


class Twins:
    """One that sends together, and one that does not; what is done is done to both."""

    def __init__(self, directory: Path) -> None:
        self.halves = [Half(directory, together) for together in (True, False)]

    def do(self, method: str, *arguments: Any) -> None:
        for half in self.halves:
            getattr(half, method)(*arguments)
            half.alice.settle()
        self.compare()

    def settle(self, milliseconds: int = 100) -> None:
        for half in self.halves:
            half.simulation.advance(milliseconds)
        self.compare()

    def compare(self) -> None:
        mine, other = (half.kept for half in self.halves)
        for name in other:
            assert mine[name] == other[name], name
        assert len(mine) == len(other)

    @property
    def together(self) -> int:
        return self.halves[0].alice.speed.outgoing_runs.sent

    def stop(self) -> None:
        for half in self.halves:
            half.simulation.stop()


@pytest.fixture
def twins() -> Iterator[Twins]:
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY))
        made = Twins(Path(directory))
        stack.callback(made.stop)
        yield made


def opened(twins: Twins, to: str = ORDERS, **how: Any) -> None:
    """Have a session, over which the first messages have gone."""
    twins.do("send", to, 5, how)
    twins.settle()
    twins.do("open")
    twins.do("acknowledge", 5, 5)
    twins.settle()


@pytest.mark.parametrize("guarantee", [0, 1])
def test_messages_leave_together_and_go_together(twins: Twins, guarantee: int) -> None:
    opened(twins, delivery_guarantee=guarantee)
    before = twins.together
    twins.do("send", ORDERS, 150, {"delivery_guarantee": guarantee})
    for _ in range(8):
        twins.do("acknowledge", 32, 32)
        twins.settle()
    assert twins.together > before + 100
    assert twins.halves[0].alice.unsent == 0


def test_what_was_in_flight_is_sent_again(twins: Twins) -> None:
    opened(twins)
    twins.do("send", ORDERS, 40, {})
    twins.do("acknowledge", 20, 10)
    twins.do("disconnect")
    twins.settle(6_000)
    twins.do("open")
    assert len(twins.halves[0].peer.messages) == 30


def test_what_has_arrived_in_order_goes_together(twins: Twins) -> None:
    opened(twins, STREAM)
    twins.do("acknowledge_order", 0)
    twins.do("send", STREAM, 40, {})
    twins.settle()
    twins.do("acknowledge", 64, 32)
    twins.do("acknowledge_order", 10)
    assert twins.halves[0].alice.unsent == 10
    twins.do("die")
    twins.settle(6_000)
    twins.do("open")
    twins.do("acknowledge_order", 0)
    twins.settle()
    assert twins.halves[0].alice.unsent == 0


def stamped(twins: Twins, **how: Any) -> None:
    """A session over which messages go that get their stamps together."""
    opened(twins, STREAM, **how)
    for _ in range(3):
        twins.do("send", STREAM, 2, how)
        twins.do("acknowledge_order", 0)


def test_messages_of_ours_get_their_stamps_together(twins: Twins) -> None:
    stamped(twins)
    before = twins.together
    for body in (b"%d", b"longer %d"):
        for half in twins.halves:
            half.alice.send_later(STREAM, body % 0, True)
        twins.do("send", STREAM, 20, {})
        twins.settle()
    sent = [PacketMessage(packet) for packet in twins.halves[0].peer.messages[-42:]]
    numbers = [each.transaction_sequence_number for each in sent]
    assert numbers == list(range(numbers[0], numbers[0] + 42))
    assert twins.together == before + 42


def test_what_is_not_acknowledged_keeps_its_stamp(twins: Twins) -> None:
    stamped(twins)
    twins.do("send", STREAM, 20, {})
    twins.do("acknowledge_order", 10)
    twins.do("disconnect")
    twins.do("send", STREAM, 5, {})
    twins.settle(6_000)
    before = twins.together
    twins.do("open")
    twins.settle()
    assert len(twins.halves[0].peer.messages) == 15
    assert twins.together == before + 15


def while_stamps_are_written(twins: Twins, what: Callable[[Half], None], **how: Any) -> None:
    """Send six messages, and do something when they are to leave as soon as that is done."""
    for half in twins.halves:
        transfer = half.alice.protocol.transfers.of(half._queues()[0])
        half.peer.messages.clear()
        for number in range(6):
            half.alice.send_later(STREAM, b"%d" % number, True, **how)
        while not transfer._stamping:
            half.alice.turn.popleft()()
        what(half)
        half.alice.settle()
    twins.compare()


def test_a_message_that_goes_while_stamps_are_written_leaves_a_gap(twins: Twins) -> None:
    stamped(twins)
    while_stamps_are_written(twins, lambda half: half.remove(2))
    sent = [PacketMessage(packet) for packet in twins.halves[0].peer.messages]
    assert [each.body for each in sent] == [b"0", b"1", b"3", b"4", b"5"]


def test_what_is_late_once_its_stamp_is_durable_does_not_leave(twins: Twins) -> None:
    stamped(twins, time_to_reach_queue=20)
    late = {"time_to_reach_queue": 20}
    while_stamps_are_written(twins, lambda half: half.set_ahead(30_000), **late)
    assert [half.peer.messages for half in twins.halves] == [[], []]


def test_what_would_leave_otherwise_by_then_goes_the_careful_way(
    twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamped(twins)
    before, runs = twins.together, twins.halves[0].alice.speed.outgoing_runs

    def otherwise(half: Half) -> None:
        monkeypatch.setattr(runs, "leaves_unchanged", lambda *_: False)

    while_stamps_are_written(twins, otherwise)
    assert len(twins.halves[0].peer.messages) == 6
    assert twins.together == before


def test_what_its_source_keeps_is_kept_though_it_left_with_others(twins: Twins) -> None:
    opened(twins)
    twins.do("send", ORDERS, 10, {})
    twins.do("acknowledge", 10, 0)
    twins.do("send", ORDERS, 3, {"positive_journaling_requested": True})
    twins.do("acknowledge", 3, 13)
    twins.settle()
    kept = [half.alice.bodies("system$;journal") for half in twins.halves]
    assert kept == [[b"0", b"1", b"2"]] * 2


def test_neighbours_of_other_sizes_leave_in_order(twins: Twins) -> None:
    opened(twins)
    twins.do("send", ORDERS, 64, {})
    for label in ("", "label", "", "other label"):
        twins.do("send", ORDERS, 6, {"label": label})
    twins.do("acknowledge", 32, 32)
    sent = [PacketMessage(packet) for packet in twins.halves[0].peer.messages[-24:]]
    assert [each.body for each in sent] == [b"%d" % number for number in range(6)] * 4


def test_only_the_late_ones_of_neighbours_stay(twins: Twins) -> None:
    opened(twins, time_to_reach_queue=20)
    twins.do("disconnect")
    for ahead in (20_000, -20_000, 20_000):
        twins.do("set_ahead", ahead)
        twins.do("send", ORDERS, 6, {"time_to_reach_queue": 20})
    twins.settle(6_000)
    twins.do("open")
    assert len(twins.halves[0].peer.messages) == 12


def test_what_has_been_removed_meanwhile_is_not_acknowledged(twins: Twins) -> None:
    opened(twins)
    twins.do("send", ORDERS, 10, {})
    twins.do("remove", 4)
    twins.do("acknowledge", 10, 10)
    assert [half.alice.unsent for half in twins.halves] == [0, 0]
    for half in twins.halves:
        steps = list(half.alice.engine.message_trace._steps.values())[-10:]
        assert [len(each) for each in steps] == [2, 2, 2, 2, 1, 2, 2, 2, 2, 2]


def test_what_came_from_elsewhere_is_sent_without_what_is_kept_with_it(twins: Twins) -> None:
    """Where a message came from stands behind its packet while it waits."""
    opened(twins)
    stored = []
    for half in twins.halves:
        queue = half.alice.outgoing(ORDERS)
        half.alice.send_later(ORDERS, b"octets")
        half.alice.settle()
        key = queue.message_position_list.last(False)
        assert key is not None
        stored.append(half.alice.engine.positions.message_at(queue, key).packet)
    for half, packet in zip(twins.halves, stored, strict=True):
        with half.alice.store.transaction("forwarded") as change:
            for _ in range(8):
                message = Message(packet)
                message.source_address = "192.0.2.77"
                queue = half.alice.outgoing(ORDERS)
                half.alice.engine.positions.arrive(change, queue, message, message.envelope)
    twins.settle()
    for packet in twins.halves[0].peer.messages[-8:]:
        assert packet == stored[0]


def test_what_is_late_does_not_leave(twins: Twins) -> None:
    opened(twins, time_to_reach_queue=20)
    twins.do("disconnect")
    twins.do("send", ORDERS, 10, {"time_to_reach_queue": 20})
    twins.settle(30_000)
    twins.do("open")
    assert twins.halves[0].peer.messages == []


def test_what_has_become_late_does_not_leave_before_a_timer_removes_it(twins: Twins) -> None:
    opened(twins, time_to_reach_queue=20)
    twins.do("disconnect")
    twins.do("send", ORDERS, 10, {"time_to_reach_queue": 20})
    twins.do("set_ahead", 30_000)
    twins.settle(6_000)
    assert [half.alice.unsent for half in twins.halves] == [10, 10]
    twins.do("open")
    assert [half.alice.unsent for half in twins.halves] == [0, 0]
    assert twins.halves[0].peer.messages == []


STEP = st.one_of(
    st.tuples(
        st.just("send"),
        st.sampled_from([ORDERS, ORDERS, ORDERS, STREAM]),
        st.integers(1, 30),
        st.fixed_dictionaries(
            {},
            optional={
                "delivery_guarantee": st.sampled_from([0, 1]),
                "priority": st.sampled_from([2, 3, 5]),
                "label": st.sampled_from(["", "label"]),
                "time_to_reach_queue": st.sampled_from([3, INFINITE]),
                "positive_journaling_requested": st.booleans(),
                "negative_journaling_requested": st.booleans(),
            },
        ),
    ),
    st.tuples(st.just("open")),
    st.tuples(st.just("acknowledge"), st.integers(0, 64), st.integers(0, 32)),
    st.tuples(st.just("acknowledge"), st.just(64), st.just(32)),
    st.tuples(st.just("acknowledge_order"), st.integers(0, 4)),
    st.tuples(st.just("settle"), st.sampled_from([0, 100, 6_000])),
    st.tuples(st.just("disconnect")),
    st.tuples(st.just("purge")),
    st.tuples(st.just("die")),
)


@settings(
    max_examples=60,
    phases=WITHOUT_SHRINKING,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(STEP, min_size=3, max_size=15))
def test_any_messages_leave_as_each_of_them_would(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        twins = Twins(Path(directory))
        try:
            opened(twins)
            for name, *arguments in steps:
                if name == "settle":
                    twins.settle(*arguments)
                else:
                    twins.do(name, *arguments)
            twins.do("open")
            twins.do("acknowledge", 64, 32)
        finally:
            twins.stop()
