"""Packets that are taken together are taken as each of them would be ([MS-MQQB] 3.1.5.8)."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rocksdict import WriteBatch

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested, DeliveryGuarantee
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from rpcqm.codec.types.mqvalues import INFINITE, QueueAccessType, QueueShareMode
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.store.database import Database
from rpcqm.store.errors import StoreFormatError
from rpcqm.store.migration import FORMAT_KEY, check_format, read_format
from rpcqm.store.records import Family
from rpcqm.store.settings import StoreSettings
from tests.support.binary.binary_network import Simulation
from tests.support.binary.binary_peer import PEER, ScriptedPeer
from tests.support.queue_manager import MEMORY
from tests.support.shadow.kept import apart

QUEUES = ("orders", "others", "small", "stream", "nowhere")
ADMIN = FormatName.parse("DIRECT=OS:alice\\private$\\admin")
OWN = UUID(int=1)
WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]
"""An example takes long enough that making it smaller would take minutes."""


class Sent(NamedTuple):
    """A packet as the script wants it; `number` is that of the message, `place` in its sequence."""

    queue: str = "orders"
    number: int = 1
    recoverable: bool = True
    place: tuple[int, int, int] | None = None
    label: str = ""
    body: bytes = b""
    extension: bytes = b""
    priority: int = 3
    application_tag: int = 0
    age: int = 0
    limits: tuple[int, int] = (INFINITE, INFINITE)
    acknowledged: int = 0
    source: UUID = PEER
    kind: int = 0
    journaled: bool = False

    def packet(self, now: int) -> bytes:
        attributes = MessageAttributes(
            destination_queue_format_name=FormatName.parse(
                f"DIRECT=OS:bob\\private$\\{self.queue}"
            ),
            identifier=MessageIdentifier(self.source, self.number),
            sent_time=now - self.age,
            label=self.label,
            body=self.body,
            extension=self.extension,
            priority=self.priority,
            application_tag=self.application_tag,
            time_to_reach_queue=self.limits[0],
            time_to_be_received=self.limits[1],
            delivery_guarantee=DeliveryGuarantee(self.recoverable),
        )
        attributes.message_class = self.kind
        attributes.positive_journaling_requested = self.journaled
        if self.kind:
            attributes.correlation_identifier = MessageIdentifier(OWN, self.number)
        if self.acknowledged:
            attributes.administration_queue_format_name = ADMIN
            attributes.acknowledgements_requested = AcknowledgementsRequested(self.acknowledged)
        if self.place is not None:
            sequence, number, previous = self.place
            attributes.delivery_guarantee = DeliveryGuarantee.RECOVERABLE
            attributes.transaction_identifier = number & 0xFFFFF
            attributes.transactional_message_sequence_identifier = TxSequenceID(sequence, 7)
            attributes.transaction_sequence_number = number
            attributes.transaction_previous_sequence_number = previous
        return build_user_message(attributes)


class Half:
    """A queue manager that takes packets together, or one by one."""

    def __init__(self, directory: Path, together: bool) -> None:
        self.together, self.died = together, False
        self.simulation = Simulation(directory / str(together))
        self.bob = self.simulation.node("bob")
        for name in ("orders", "others", "small"):
            self.bob.create(name)
        self.bob.create("stream", transactional=True)
        self.bob.find("small").quota = 1
        self._begin()

    def _begin(self) -> None:
        self.bob.switch(self.together)
        self.peer = ScriptedPeer(self.bob)

    def reconnect(self) -> None:
        self.peer.connection.session.disconnected()
        self.bob.settle()
        self._begin()

    def die(self) -> None:
        self.died = True
        self.bob.kill()
        self.bob.start()
        self._begin()

    def deliver(self, sent: list[Sent], cuts: list[int], header: bool) -> None:
        now = self.simulation.clock.now() // 1000
        packets = [(each.packet(now), each.recoverable or each.place is not None) for each in sent]
        data = self.peer.counting(packets, header)
        places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
        for start, end in pairwise(places):
            if start < end:
                self.peer.feed(data[start:end])

    @property
    def told(self) -> list[bytes]:
        """What has been answered since the last look, whoever this queue manager is."""
        own = self.bob.engine.queue_manager.identifier.bytes_le
        answers, self.peer.answers = self.peer.answers, []
        return [answer.replace(own, OWN.bytes_le) for answer in answers]

    @property
    def kept(self) -> dict[str, Any]:
        """What is in the store and in memory, without numbers that nobody sees."""
        session, store = self.peer.connection.session, self.bob.store
        kept: dict[str, Any] = {
            "closed": self.peer.closed,
            "counts": (
                session.message_received_count,
                session.recoverable_message_received_count,
                session.unacked_received_msg_count,
                session.direct,
                session.session_active,
                session._pending_recoverable,
                session._ack_send is None,
            ),
            "pending": self.peer.connection.pending,
            "streams": self._records,
            "history": self._remembered,
            "told": [each[1:] for each in self.bob.engine.message_trace.told()],
            "total": (store.total.count, store.total.bytes),
            "numbers": store.counters.places(),
            "metrics": {
                name: count
                for name, count in store.metrics.counts.items()
                if count and not name.startswith(("templates.", "store_"))
            },
            "transfers": [
                (each.name, each.encode(), each.encode_rejected(), each.incoming.durable)
                for each in self.bob.protocol.incoming_transfers
            ],
        }
        for queue in self._queues():
            kept[queue.pathname] = [*self._messages(queue)]
        return kept

    @property
    def _records(self) -> dict[bytes, bytes]:
        """Records of protocols; when a message was seen does not matter, only that it was."""
        history, found = self.bob.protocol.history, {}
        for key, value in self.bob.store.records(Family.STREAM):
            for alone, kept in apart(history, key, value):
                is_remembered = alone[len(history.prefix) :] in history
                if alone.startswith(history.prefix):
                    # What is forgotten goes with the next message, and a record of many with all.
                    if is_remembered or (alone == key and alone not in history._stale):
                        found[alone] = b""
                elif kept is not None:
                    found[alone] = kept
        return found

    @property
    def _remembered(self) -> list[tuple[bytes, int]]:
        """What is remembered, in order; a restart tells nothing of those of one millisecond."""
        entries = self.bob.protocol.history._entries.items()
        return sorted(entries) if self.died else list(entries)

    def _queues(self) -> list[Queue]:
        machine = self.bob.engine.queue_manager
        return [*machine.queue_collection.values()]

    def _messages(self, queue: Queue) -> Iterator[tuple[Any, ...]]:
        index, own = (
            self.bob.store.index(queue.queue_id),
            self.bob.engine.queue_manager.identifier.bytes_le,
        )
        yield (index.account.count, index.account.bytes, len(index.pending))
        for key in list(index.keys()):
            position = index.position(key)
            assert position is not None
            packet = self.bob.store.read_packet(position.serial)
            yield (key >> 56, *position[1:], index.state(key), packet.replace(own, OWN.bytes_le))


class Twins:
    """One that takes packets together, and one that does not; what is done is done to both."""

    def __init__(self, directory: Path) -> None:
        self.halves = [Half(directory, together) for together in (True, False)]

    def do(self, method: str, *arguments: Any) -> None:
        for half in self.halves:
            getattr(half, method)(*arguments)
        self.compare()

    def deliver(self, *sent: Sent, cuts: list[int] | None = None, header: bool = False) -> None:
        self.do("deliver", list(sent), cuts or [], header)

    def settle(self, milliseconds: int = 0) -> None:
        for half in self.halves:
            half.simulation.advance(milliseconds)
        self.compare()

    def compare(self) -> None:
        ours, theirs = self.halves
        assert ours.told == theirs.told
        mine, other = ours.kept, theirs.kept
        for name in other:
            assert mine[name] == other[name], name
        assert len(mine) == len(other)

    @property
    def batches(self) -> int:
        """How many messages have been taken together."""
        return self.halves[0].bob.speed.batches.taken

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


def several(count: int, first: int = 1, **more: Any) -> list[Sent]:
    return [Sent(number=first + n, **more) for n in range(count)]


def in_sequence(count: int, first: int = 1, **more: Any) -> list[Sent]:
    return [
        Sent("stream", number, place=(1, number, number - 1), **more)
        for number in range(first, first + count)
    ]


def learn(twins: Twins) -> None:
    """Have all kinds of packets come that later ones are like."""
    twins.deliver(*several(3, 101), *several(3, 201, recoverable=False), *in_sequence(3))
    twins.settle()


@pytest.mark.parametrize("recoverable", [True, False])
def test_packets_of_one_read_are_taken_together(twins: Twins, recoverable: bool) -> None:
    twins.deliver(*several(100, recoverable=recoverable, body=b"content"))
    twins.settle(1000)
    assert twins.batches > 90
    assert len(twins.halves[0].bob.bodies()) == 100


def test_packets_of_a_sequence_are_taken_together(twins: Twins) -> None:
    twins.deliver(*in_sequence(100))
    twins.settle(1000)
    assert twins.batches > 90
    assert len(twins.halves[0].bob.bodies("stream")) == 100


def test_bodies_labels_and_the_like_may_differ(twins: Twins) -> None:
    learn(twins)
    before = twins.batches
    twins.deliver(
        *(
            Sent(
                number=number,
                label="label" * (number % 3),
                body=b"b" * number,
                extension=b"e" * (number % 7),
                application_tag=number,
                age=number,
            )
            for number in range(1, 40)
        )
    )
    twins.settle()
    assert twins.batches == before + 39


@pytest.mark.parametrize("recoverable", [True, False])
def test_a_duplicate_is_dropped_wherever_it_comes(twins: Twins, recoverable: bool) -> None:
    learn(twins)
    once = several(10, recoverable=recoverable)
    twins.deliver(*once, once[0], *once[3:5], *several(3, 20, recoverable=recoverable))
    twins.deliver(*once)
    twins.settle()
    twins.deliver(*once)
    twins.settle()
    assert len(twins.halves[0].bob.bodies()) == 6 + 10 + 3


def test_what_is_not_next_in_its_sequence_is_dropped(twins: Twins) -> None:
    learn(twins)
    following = in_sequence(20, 4)
    twins.deliver(*following[:5], following[2], *following[7:9], *following[5:12], *in_sequence(2))
    twins.settle(1000)
    twins.deliver(
        *[each._replace(place=(2, *each.place[1:])) for each in in_sequence(5) if each.place]
    )
    twins.settle(1000)


def test_a_full_queue_refuses_what_is_beyond_its_quota(twins: Twins) -> None:
    twins.deliver(*several(3, 301, queue="small"))
    twins.deliver(*several(10, queue="small", body=b"b" * 100), *several(5, 50))
    twins.settle(1000)
    assert 0 < len(twins.halves[0].bob.bodies("small")) < 13


@pytest.mark.parametrize("acknowledged", [0, 1])
def test_a_batch_that_has_no_room_takes_no_numbers_and_counts_nothing(
    twins: Twins, acknowledged: int
) -> None:
    """The acknowledgement of a sequence, which has one, tells the peer how far numbers are."""
    with_acknowledgements(twins)
    asking = several(14, 501, queue="small", acknowledged=acknowledged)
    twins.deliver(*asking[:3], *several(3, 401, queue="others"))
    before = twins.batches
    twins.deliver(*several(5, 601, queue="others"), *asking[3:])
    assert twins.batches == before
    twins.deliver(*in_sequence(1, 6))
    twins.settle(1000)
    assert 3 <= len(twins.halves[0].bob.bodies("small")) < 14


def test_a_full_queue_manager_ends_the_session_and_keeps_what_had_room(twins: Twins) -> None:
    learn(twins)
    for half in twins.halves:
        machine = half.bob.engine.queue_manager
        machine.queue_manager_quota = half.bob.store.total.bytes // 1024 + 1
    twins.deliver(*several(10, body=b"b" * 100))
    twins.settle(1000)
    assert twins.halves[0].peer.closed
    assert len(twins.halves[0].bob.bodies()) < 16


def with_acknowledgements(twins: Twins) -> None:
    """Have acknowledgements gone before, so that there is a queue for them."""
    learn(twins)
    twins.deliver(*several(3, 301, acknowledged=1), *in_sequence(2, 4, acknowledged=1))
    twins.settle()


@pytest.mark.parametrize("placed", [False, True])
def test_what_asks_for_acknowledgements_is_taken_together(twins: Twins, placed: bool) -> None:
    with_acknowledgements(twins)
    before, sent = twins.batches, twins.halves[0].bob.unsent
    asking = in_sequence(40, 6, acknowledged=1) if placed else several(40, 501, acknowledged=1)
    twins.deliver(*asking, *several(40, 601, queue="others"))
    twins.settle(1000)
    assert twins.batches > before + 70
    assert twins.halves[0].bob.unsent == sent + 40


def test_nothing_follows_from_what_asks_for_later_or_for_its_source(twins: Twins) -> None:
    learn(twins)
    before = twins.batches
    twins.deliver(*several(20, 501, acknowledged=2), *several(20, 601, acknowledged=12))
    twins.deliver(*several(40, 701, journaled=True))
    twins.settle(1000)
    assert twins.batches > before + 70
    assert twins.halves[0].bob.unsent == 0


def test_acknowledgements_that_arrive_are_taken_together(
    twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MessageTrace, "__len__", lambda trace: 1)
    learn(twins)
    before = twins.batches
    twins.deliver(*several(40, 501, kind=2), *several(40, 601, kind=0x8004, body=b"lost"))
    twins.deliver(*several(40, 701, kind=77))
    twins.settle(1000)
    assert twins.batches > before + 110
    assert len(twins.halves[0].bob.engine.message_trace.told()) == 80


def test_a_full_queue_of_acknowledgements_drops_them(twins: Twins) -> None:
    with_acknowledgements(twins)
    for half in twins.halves:
        half.bob.engine.outgoing.list()[0].quota = 2
    before = twins.batches
    twins.deliver(*several(40, 501, acknowledged=1))
    twins.settle(1000)
    assert twins.batches > before + 30
    assert twins.halves[0].bob.unsent < 40


def deny(half: Half) -> None:
    half.bob.find().security = half.bob.engine.access.default_queue_security(None, b"")


@pytest.mark.parametrize("change", ["trail", "transactional", "deleted", "authentication"])
def test_a_change_of_a_queue_is_seen_at_once(twins: Twins, change: str) -> None:
    learn(twins)
    twins.deliver(*several(5))
    for half in twins.halves:
        queue = half.bob.find()
        if change == "deleted":
            half.bob.settle()
            half.bob.engine.queues.delete_queue(queue)
            half.bob.settle()
        else:
            setattr(queue, change, True)
    twins.deliver(*several(5, 50))
    twins.settle(1000)


def test_a_waiting_reader_gets_the_first_message_of_a_batch(twins: Twins) -> None:
    learn(twins)
    waiting = []
    for half in twins.halves:
        engine = half.bob.engine
        while half.bob.bodies():
            half.bob.receive()
        name = engine.queues.format_name_of(half.bob.find())
        opened = engine.opening.open_queue(
            name, QueueAccessType.RECEIVE_ACCESS, QueueShareMode.DENY_NONE
        )
        waiting.append(engine.messages.dequeue_message(opened))
    twins.deliver(*(each._replace(body=str(each.number).encode()) for each in several(5)))
    twins.settle()
    assert [each.result().attributes.body for each in waiting] == [b"1", b"1"]


def test_what_was_not_written_comes_again_after_a_death(twins: Twins) -> None:
    learn(twins)
    twins.deliver(*several(10), *in_sequence(10, 4))
    twins.do("die")
    twins.deliver(*several(10), *in_sequence(10, 4))
    twins.settle()
    twins.do("die")
    twins.deliver(*several(12), *in_sequence(12, 4))
    twins.settle(1000)
    assert len(twins.halves[0].bob.bodies()) == 3 + 12
    assert len(twins.halves[0].bob.bodies("stream")) == 3 + 12


def test_what_an_older_version_remembers_is_known_and_it_refuses_what_this_one_has_written(
    tmp_path: Path,
) -> None:
    half = Half(tmp_path, together=False)
    half.deliver(several(10), [], False)
    half.bob.kill()
    database = Database(half.bob._directory, StoreSettings(reserve=1))
    batch = WriteBatch(raw_mode=True)
    batch.put(FORMAT_KEY, (1).to_bytes(4, "little"), database.handles[Family.META])
    database.write(batch, sync=True)
    database.close()
    half.together = True
    half.bob.start()
    half._begin()
    half.deliver(several(14), [], False)
    half.bob.settle()
    assert len(half.bob.bodies()) == 14
    half.bob.kill()
    database = Database(half.bob._directory, StoreSettings(reserve=1))
    with pytest.raises(StoreFormatError):
        check_format(database, read_format(database) or 0, target=1)
    database.close()
    half.bob.start()
    half.simulation.stop()


SENT = st.builds(
    Sent,
    queue=st.sampled_from(["orders", "orders", "orders", "others", "small", "nowhere"]),
    number=st.integers(1, 60),
    recoverable=st.booleans(),
    place=st.none(),
    extension=st.sampled_from([b"", b"extension"]),
    application_tag=st.integers(0, 3),
    label=st.sampled_from(["", "label", "other"]),
    body=st.sampled_from([b"", b"body", b"b" * 100]),
    priority=st.sampled_from([3, 3, 3, 5]),
    age=st.sampled_from([0, 0, 1, 100]),
    limits=st.sampled_from([(INFINITE, INFINITE)] * 3 + [(50, INFINITE), (INFINITE, 50)]),
    acknowledged=st.sampled_from([0] * 5 + [1, 3, 15]),
    kind=st.sampled_from([0] * 5 + [1, 2, 0x4000, 0x8004]),
    journaled=st.booleans(),
    source=st.sampled_from([PEER, PEER, UUID(int=9)]),
)
PLACED = st.builds(
    lambda queue, sequence, number, gap, label: Sent(
        queue, number, place=(sequence, number, max(number - gap, 0)), label=label
    ),
    st.sampled_from(["stream", "stream", "stream", "orders"]),
    st.sampled_from([1, 1, 1, 2]),
    st.integers(1, 40),
    st.sampled_from([1, 1, 1, 2, 5]),
    st.sampled_from(["", "label"]),
)
RUN = st.builds(
    lambda sent, count: [sent._replace(number=sent.number + n) for n in range(count)],
    SENT,
    st.integers(1, 20),
)
PLACED_RUN = st.builds(in_sequence, st.integers(1, 12), st.integers(1, 30))
PACKETS = st.lists(
    st.one_of(
        RUN, RUN, PLACED_RUN, PLACED_RUN, st.lists(SENT, max_size=4), st.lists(PLACED, max_size=4)
    ),
    min_size=1,
    max_size=4,
).map(lambda runs: [each for run in runs for each in run])
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("deliver"), PACKETS, st.lists(st.integers(0, 9999), max_size=2), st.booleans()
        ),
        st.tuples(st.just("deliver"), PACKETS, st.just([]), st.just(False)),
        st.tuples(st.just("settle"), st.sampled_from([0, 600, 30_000])),
        st.tuples(st.just("die")),
        st.tuples(st.just("reconnect")),
    ),
    min_size=1,
    max_size=8,
)


FEW = 5
"""Messages that may be remembered where they are few."""


@settings(
    max_examples=60,
    phases=WITHOUT_SHRINKING,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(STEPS, st.sampled_from([FEW, 10_000]))
def test_any_packets_are_taken_as_each_of_them_would_be(
    steps: list[tuple[Any, ...]], remembered: int
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        twins = Twins(Path(directory))
        try:
            for half in twins.halves:
                half.bob.protocol.history._size = remembered
            for name, *arguments in steps:
                if name == "settle":
                    twins.settle(*arguments)
                elif name == "die" and remembered == FEW:  # more are remembered then (G357)
                    continue
                elif name != "deliver" or not twins.halves[0].peer.closed:
                    twins.do(name, *arguments)
                else:
                    twins.do("reconnect")
            twins.settle(1000)
        finally:
            twins.stop()
