"""Sources that strangers invent cost a bounded number of records (docs/decisions.md, G510)."""

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.binary.connection import incoming_transfers
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import DeliveryGuarantee
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from tests.support.binary.binary_network import Simulation
from tests.support.binary.binary_peer import ScriptedPeer
from tests.support.queue_manager import MEMORY

REAL, OTHER = UUID(int=0x9001), UUID(int=0x9002)
HERE, FLOODER, ELSEWHERE = "192.0.2.50", "203.0.113.66", "198.51.100.7"
ROUTER = UUID(int=0x7777)
STREAM, NOWHERE = "DIRECT=OS:bob\\private$\\stream", "DIRECT=OS:bob\\private$\\nowhere"


class World:
    """A queue manager with a transactional queue, and those who send to it over routers."""

    def __init__(self, directory: Path) -> None:
        self.simulation = Simulation(directory)
        self.bob = self.simulation.node("bob")
        self.bob.create("stream", transactional=True)
        self._peers: dict[str, ScriptedPeer] = {}
        self._ordinals = count(1)

    def deliver(
        self,
        source: UUID,
        number: int = 1,
        *,
        to: str = STREAM,
        address: str = HERE,
        previous: int | None = None,
    ) -> None:
        """A message of a source, which is its number in the sequence of that source."""
        attributes = MessageAttributes(
            destination_queue_format_name=FormatName.parse(to),
            identifier=MessageIdentifier(source, next(self._ordinals)),
            sent_time=self.simulation.clock.now() // 1000,
            body=f"{source.int:x} {number}".encode(),
            delivery_guarantee=DeliveryGuarantee.RECOVERABLE,
            transaction_identifier=number,
            transactional_message_sequence_identifier=TxSequenceID(1, 7),
            transaction_sequence_number=number,
            transaction_previous_sequence_number=number - 1 if previous is None else previous,
        )
        peer = self._peers.get(address)
        if peer is None or peer.closed:
            router = UUID(int=ROUTER.int + len(self._peers))
            peer = self._peers[address] = ScriptedPeer(self.bob, router, address)
        peer.feed(peer.counting([(build_user_message(attributes), True)], header=True))
        self.simulation.advance(2_000)

    def flood(self, sources: range, **more: Any) -> None:
        for each in sources:
            self.deliver(UUID(int=each), address=FLOODER, **more)

    def restart(self) -> None:
        self._peers.clear()
        self.bob.kill()
        self.bob.start()

    def sources(self, prefix: bytes = incoming_transfers.PREFIX) -> list[int]:
        """Of which there are records."""
        found = self.bob.engine.protocol_records.records(prefix)
        return sorted(UUID(bytes_le=key[len(prefix) :][:16]).int for key, _ in found)

    @property
    def shown(self) -> list[int]:
        """Of which administrators are shown how far they have come."""
        infos = self.bob.find("stream").incoming_transactional_transfer_info_collection
        return sorted(info.sender_identifier.int for info in infos)

    def taken(self, source: UUID) -> int:
        """How many messages of a source there are."""
        return sum(body.startswith(b"%x " % source.int) for body in self.bob.bodies("stream"))


@pytest.fixture
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        world = World(Path(name))
        yield world
        world.simulation.stop()


def bound(monkeypatch: pytest.MonkeyPatch, kept: int, cached: int = 1) -> None:
    monkeypatch.setattr(incoming_transfers, "KEPT", kept)
    monkeypatch.setattr(incoming_transfers, "CACHED", cached)


@pytest.mark.bound("binary.kept_transfers")
def test_a_flood_of_sources_makes_no_duplicates_of_anybody_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a restart, and though all of them come by routers that say who they are."""
    bound(monkeypatch, 3)
    world.deliver(REAL)
    world.flood(range(1, 3))
    assert world.sources() == world.shown == [1, 2, REAL.int]
    world.flood(range(3, 8))
    assert world.sources() == world.shown == [6, 7, REAL.int]
    world.restart()
    assert world.shown == [6, 7, REAL.int]
    world.flood(range(8, 12))
    assert world.sources() == world.shown == [10, 11, REAL.int]
    world.deliver(REAL, previous=0)
    assert world.taken(REAL) == 1
    world.deliver(REAL, 2)
    assert world.taken(REAL) == 2


def test_what_no_queue_has_had_anything_of_is_forgotten_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever it came from: what comes again is refused again, and is no duplicate."""
    bound(monkeypatch, 4)
    world.flood(range(1, 3))
    world.deliver(REAL, to=NOWHERE)
    world.deliver(OTHER, to=NOWHERE, address=ELSEWHERE)
    assert world.sources() == [1, 2, REAL.int, OTHER.int]
    assert world.shown == [1, 2]
    world.flood(range(3, 5))
    assert world.sources() == world.shown == [1, 2, 3, 4]
    world.flood(range(5, 6))
    assert world.sources() == world.shown == [2, 3, 4, 5]


def test_many_that_were_refused_after_each_other_are_few_records(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(monkeypatch, 3)
    world.deliver(REAL)
    world.flood(range(1, 9), to=NOWHERE)
    assert world.sources() == [7, 8, REAL.int]


def test_what_is_in_memory_goes_on_though_its_record_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written about what was not accepted of it, which nobody would remove again."""
    bound(monkeypatch, 2, cached=100)
    world.deliver(REAL, address=FLOODER)
    world.flood(range(1, 4))
    assert world.sources() == [2, 3]
    world.deliver(REAL, previous=0, address=FLOODER)
    assert world.sources(incoming_transfers._REJECTED_PREFIX) == []
    assert world.shown == [2, 3]
    assert world.taken(REAL) == 1
    world.deliver(REAL, 2, address=FLOODER)
    assert world.sources() == world.shown == [3, REAL.int]


def test_with_a_transfer_goes_what_is_kept_of_messages_that_were_not_accepted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(monkeypatch, 2)
    world.flood(range(1, 2))
    world.flood(range(1, 2))
    assert world.sources(incoming_transfers._REJECTED_PREFIX) == [1]
    world.flood(range(2, 4))
    assert world.sources() == [2, 3]
    assert world.sources(incoming_transfers._REJECTED_PREFIX) == []


def test_nothing_is_forgotten_for_a_message_that_has_no_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(monkeypatch, 2)
    world.deliver(REAL)
    world.deliver(OTHER, address=ELSEWHERE)
    machine, store = world.bob.engine.queue_manager, world.bob.store
    before = machine.queue_manager_quota
    machine.queue_manager_quota = store.total.bytes // 1024
    world.flood(range(1, 9))
    assert world.sources() == world.shown == [REAL.int, OTHER.int]
    machine.queue_manager_quota = before
    world.flood(range(1, 9))
    assert len(world.sources()) == len(world.shown) == 2


@pytest.mark.bound("binary.transfer_name")
def test_names_of_any_length_take_little_room(world: World) -> None:
    """The query of a URL may be as long as a packet."""
    names = [f"DIRECT=HTTP://bob/msmq/private$/stream?{'q' * 20_000}{each}" for each in "ab"]
    for each in (*names, *names):
        world.deliver(REAL, to=each)
    taken = world.taken(REAL)
    keys = [key for key, _ in world.bob.engine.protocol_records.records(incoming_transfers.PREFIX)]
    assert len(keys) == len(names)
    assert max(map(len, keys)) < 1_000
    world.restart()
    world.deliver(REAL, to=names[0])
    assert world.taken(REAL) == taken
    assert not world.bob.protocol.incoming_transfers._keys


def test_more_than_there_is_room_for_goes_little_by_little(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version may have kept any number; no commit becomes long by that."""
    world.flood(range(1, 9))
    bound(monkeypatch, 2)
    monkeypatch.setattr(incoming_transfers, "FORGOTTEN_AT_ONCE", 3)
    world.restart()
    left = []
    for number in range(2, 5):
        world.deliver(UUID(int=8), number, address=FLOODER)
        left.append(len(world.sources()))
    assert left == [5, 2, 2]
