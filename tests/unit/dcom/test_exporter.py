"""What clients hold, and when it ends ([MS-DCOM] 3.1.1, 3.1.2), with simulated time."""

import gc
import tracemalloc
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.objref import StdObjRef
from rpcqm.dcom.com_object import ComObject
from rpcqm.dcom.exporter import MOST_REFERENCES, ExporterLimits, ObjectExporter
from rpcqm.dcom.ping_sets import (
    BATCH,
    EXPIRY,
    LOOK,
    MOST_SETS,
    OR_INVALID_OID,
    OR_INVALID_SET,
    PING_PERIOD,
    PingSets,
)
from tests.support.clock import SimulatedClock

FIRST, SECOND, FOREIGN = (UUID(int=number) for number in (1, 2, 3))
ALICE, BOB = "S-1-5-21-1", "S-1-5-21-2"


class Thing(ComObject):
    """An object with two interfaces that knows when it was given up."""

    def __init__(self) -> None:
        self.ends = 0

    def released(self) -> None:
        self.ends += 1


class World:
    """An exporter and its ping sets over a clock that stands still."""

    def __init__(self, limits: ExporterLimits | None = None) -> None:
        self.clock = SimulatedClock()
        self.exporter = ObjectExporter(self.clock, lambda _, iid: iid != FOREIGN, limits)
        self.pings = PingSets(self.exporter, self.clock.timers)

    def thing(self, caller: str = ALICE) -> tuple[Thing, StdObjRef]:
        thing = Thing()
        return thing, self.exporter.marshal(thing, FIRST, caller)

    def ping(self, set_id: int, sequence: int, *add: StdObjRef) -> tuple[int, int]:
        return self.pings.complex_ping(set_id, sequence, [each.oid for each in add], (), ALICE)


@pytest.fixture
def world() -> World:
    return World()


def refusal(error: "pytest.ExceptionInfo[MQError]") -> HResult:
    status = error.value.status
    assert isinstance(status, HResult)
    return status


# References.


def test_an_object_comes_with_five_references_and_ends_with_them(world: World) -> None:
    thing, std = world.thing()
    assert std.public_refs == 5
    assert std.flags == 0
    assert std.oxid == world.exporter.oxid
    world.exporter.release(std.ipid, 4, 0, ALICE)
    assert world.exporter.find(std.ipid) is not None
    assert thing.ends == 0
    world.exporter.release(std.ipid, 1, 0, ALICE)
    assert world.exporter.find(std.ipid) is None
    assert thing.ends == 1
    assert len(world.exporter) == 0
    assert ALICE not in world.exporter._owned


def test_an_object_has_one_ipid_for_each_interface_and_one_oid(world: World) -> None:
    thing, first = world.thing()
    again = world.exporter.marshal(thing, FIRST, BOB)
    other = world.exporter.query(first.ipid, SECOND, 1)
    assert again.ipid == first.ipid != other.ipid
    assert again.oid == first.oid == other.oid
    world.exporter.release(first.ipid, 10, 0, ALICE)
    assert thing.ends == 0, "the second interface is still held"
    world.exporter.release(other.ipid, 1, 0, ALICE)
    assert thing.ends == 1


def test_an_interface_that_the_object_lacks_is_refused(world: World) -> None:
    thing, std = world.thing()
    with pytest.raises(MQError) as error:
        world.exporter.query(std.ipid, FOREIGN, 1)
    assert refusal(error) is HResult.E_NOINTERFACE
    for asked in (thing, Thing()):
        with pytest.raises(MQError) as error:
            world.exporter.marshal(asked, FOREIGN, ALICE)
        assert refusal(error) is HResult.E_NOINTERFACE
    assert len(world.exporter) == 1


def test_more_releases_than_references_take_what_there_is(world: World) -> None:
    thing, std = world.thing()
    world.exporter.release(std.ipid, 1_000_000, 0, ALICE)
    assert thing.ends == 1
    world.exporter.release(std.ipid, 1, 1, ALICE)
    assert thing.ends == 1


def test_releasing_no_references_releases_nothing(world: World) -> None:
    thing, std = world.thing()
    world.exporter.release(std.ipid, 0, 0, ALICE)
    assert thing.ends == 0


def test_private_references_belong_to_the_caller_who_took_them(world: World) -> None:
    thing, std = world.thing()
    world.exporter.add_references(std.ipid, 0, 2, ALICE)
    world.exporter.release(std.ipid, 5, 0, ALICE)
    world.exporter.release(std.ipid, 0, 2, BOB)
    assert thing.ends == 0, "nobody else gives them back"
    world.exporter.release(std.ipid, 0, 3, ALICE)
    assert thing.ends == 1


def test_unknown_ipids_have_the_codes_of_the_text(world: World) -> None:
    wrong = bytes(16)
    with pytest.raises(MQError) as error:
        world.exporter.query(wrong, FIRST, 1)
    assert refusal(error) is HResult.RPC_E_INVALID_OBJECT
    with pytest.raises(MQError) as error:
        world.exporter.add_references(wrong, 1, 0, ALICE)
    assert refusal(error) is HResult.CO_E_OBJNOTREG
    with pytest.raises(MQError) as error:
        world.exporter.unmarshal(StdObjRef(0, 5, world.exporter.oxid, 1, wrong))
    assert refusal(error) is HResult.E_NOINTERFACE


def test_references_that_are_handed_over_are_taken_back(world: World) -> None:
    thing, std = world.thing()
    entry = world.exporter.unmarshal(std)
    assert entry.com_object is thing
    assert world.exporter.find(std.ipid) is None
    assert thing.ends == 0, "the call that has it as an argument still runs"
    world.exporter.let_go(entry)
    assert thing.ends == 1


def test_an_object_that_a_call_uses_outlives_its_references(world: World) -> None:
    thing, std = world.thing()
    entry = world.exporter.unmarshal(StdObjRef(0, 0, std.oxid, std.oid, std.ipid))
    world.exporter.release(std.ipid, 5, 0, ALICE)
    again = world.exporter.marshal(thing, FIRST, ALICE)
    world.exporter.let_go(entry)
    assert thing.ends == 0
    assert again.oid == std.oid
    assert again.ipid != std.ipid


# Pings.


def test_an_object_that_nobody_pings_or_calls_ends_after_three_periods(world: World) -> None:
    thing, std = world.thing()
    world.clock.advance(EXPIRY - 1)
    assert thing.ends == 0
    world.clock.advance(LOOK + 1)
    assert thing.ends == 1
    assert world.exporter.find(std.ipid) is None
    assert len(world.clock.timers) == 0


def test_a_call_counts_as_a_ping(world: World) -> None:
    thing, std = world.thing()
    for _ in range(5):
        world.clock.advance(EXPIRY - LOOK)
        world.exporter.entry_of(std.ipid)
    assert thing.ends == 0


def test_a_call_that_lasts_keeps_its_object(world: World) -> None:
    thing, std = world.thing()
    entry = world.exporter.entry_of(std.ipid)
    entry.used += 1
    world.clock.advance(4 * EXPIRY)
    assert thing.ends == 0
    world.exporter.let_go(entry)
    world.clock.advance(EXPIRY + LOOK)
    assert thing.ends == 1


def test_a_set_that_is_pinged_keeps_its_objects(world: World) -> None:
    thing, std = world.thing()
    set_id, status = world.ping(0, 0, std)
    assert set_id
    assert status == 0
    for _ in range(10):
        world.clock.advance(PING_PERIOD)
        assert world.pings.simple_ping(set_id) == 0
    assert thing.ends == 0
    world.clock.advance(EXPIRY + LOOK)
    assert thing.ends == 1
    assert len(world.pings) == 0
    assert world.pings.simple_ping(set_id) == OR_INVALID_SET
    assert world.ping(set_id, 9)[1] == OR_INVALID_SET


def test_an_object_of_an_expired_set_that_was_just_called_goes_on(world: World) -> None:
    thing, std = world.thing()
    world.ping(0, 0, std)
    world.clock.advance(EXPIRY - 1)
    world.exporter.entry_of(std.ipid)
    world.clock.advance(EXPIRY - LOOK)
    assert thing.ends == 0
    world.clock.advance(2 * LOOK)
    assert thing.ends == 1


def test_an_object_in_two_sets_lives_with_the_last(world: World) -> None:
    thing, std = world.thing()
    world.ping(0, 0, std)
    second, _ = world.ping(0, 0, std)
    for _ in range(6):
        world.clock.advance(PING_PERIOD)
        world.pings.simple_ping(second)
    assert thing.ends == 0
    assert len(world.pings) == 1


def test_an_object_can_leave_its_set(world: World) -> None:
    thing, std = world.thing()
    set_id, _ = world.ping(0, 0, std)
    assert world.pings.complex_ping(set_id, 1, (), [std.oid, 77], ALICE) == (set_id, 0)
    for _ in range(4):
        world.clock.advance(PING_PERIOD)
        world.pings.simple_ping(set_id)
    assert thing.ends == 1


def test_an_unknown_oid_is_told_and_the_others_are_added(world: World) -> None:
    thing, std = world.thing()
    set_id, _ = world.ping(0, 0)
    assert world.pings.complex_ping(set_id, 1, [5, std.oid], (), ALICE) == (set_id, OR_INVALID_OID)
    for _ in range(4):
        world.clock.advance(PING_PERIOD)
        world.pings.simple_ping(set_id)
    assert thing.ends == 0


def test_a_ping_that_was_overtaken_changes_nothing_but_is_a_sign_of_life(world: World) -> None:
    _, std = world.thing()
    set_id, _ = world.ping(0, 0xFFFF)
    assert world.ping(set_id, 0)[1] == 0, "0 follows on 65535"
    world.clock.advance(EXPIRY - 1)
    assert world.ping(set_id, 0xFFF0, std)[1] == 0
    entry = world.exporter.find_object(std.oid)
    assert entry is not None
    assert entry.sets == ()
    world.clock.advance(EXPIRY - 2 * LOOK)
    assert world.pings.simple_ping(set_id) == 0


def test_a_released_object_leaves_its_sets(world: World) -> None:
    _, std = world.thing()
    entry = world.exporter.find_object(std.oid)
    assert entry is not None
    world.ping(0, 0, std)
    (pinged,) = entry.sets
    world.exporter.release(std.ipid, 5, 0, ALICE)
    assert not pinged.members


# Bounds.


def test_a_dead_client_loses_all_its_objects_a_batch_at_a_time(world: World) -> None:
    things = [world.thing()[0] for _ in range(10_000)]
    world.clock.advance(EXPIRY - 1)
    before = len(world.exporter)
    world.clock.advance(LOOK)
    assert before == 10_000
    assert len(world.exporter) == 0
    assert all(thing.ends == 1 for thing in things)


@pytest.mark.bound("dcom.reclaimed_at_once")
def test_one_look_reclaims_one_batch(world: World) -> None:
    for _ in range(BATCH + 1):
        world.thing()
    left: list[int] = []
    world.clock.advance(EXPIRY - 1)
    world.clock.timers.call_later(1, lambda: left.append(len(world.exporter)))
    world.clock.advance(LOOK)
    assert left == [1]
    assert len(world.exporter) == 0


def test_a_failing_release_does_not_keep_the_others(world: World) -> None:
    class Failing(Thing):
        def released(self) -> None:
            raise ValueError("no")

    world.exporter.marshal(Failing(), FIRST, ALICE)
    thing, _ = world.thing()
    world.clock.advance(EXPIRY + LOOK)
    assert thing.ends == 1
    assert len(world.exporter) == 0


@pytest.mark.bound("dcom.objects_per_caller")
def test_a_caller_has_so_many_objects_and_no_more() -> None:
    world = World(ExporterLimits(objects=5, objects_per_caller=3))
    held = [world.thing()[1] for _ in range(3)]
    with pytest.raises(MQError) as error:
        world.thing()
    assert refusal(error) is HResult.E_OUTOFMEMORY
    world.exporter.release(held[0].ipid, 5, 0, ALICE)
    world.thing()


@pytest.mark.bound("dcom.objects")
def test_all_callers_have_so_many_objects_and_no_more() -> None:
    world = World(ExporterLimits(objects=5, objects_per_caller=3))
    for caller in (ALICE, ALICE, ALICE, BOB, BOB):
        world.thing(caller)
    with pytest.raises(MQError) as error:
        world.thing("S-1-5-21-3")
    assert refusal(error) is HResult.E_OUTOFMEMORY


@pytest.mark.bound("dcom.references_of_an_interface")
def test_an_interface_has_so_many_references_and_no_more(world: World) -> None:
    _, std = world.thing()
    world.exporter.add_references(std.ipid, MOST_REFERENCES - 5, MOST_REFERENCES, ALICE)
    for public, private in ((1, 0), (0, 1)):
        with pytest.raises(MQError) as error:
            world.exporter.add_references(std.ipid, public, private, ALICE)
        assert refusal(error) is HResult.E_OUTOFMEMORY
    with pytest.raises(MQError):
        world.exporter.query(std.ipid, FIRST, 1)


@pytest.mark.bound("dcom.ping_sets_per_caller")
def test_a_caller_has_so_many_ping_sets_and_no_more() -> None:
    world = World(ExporterLimits(ping_sets_per_caller=3))
    assert all(world.ping(0, 0)[1] == 0 for _ in range(3))
    assert world.ping(0, 0) == (0, 1816)
    assert world.pings.complex_ping(0, 0, (), (), BOB)[1] == 0
    world.clock.advance(EXPIRY + LOOK)
    assert world.ping(0, 0)[1] == 0


@pytest.mark.bound("dcom.ping_sets_of_an_object")
def test_an_object_is_in_so_many_sets_and_no_more(world: World) -> None:
    _, std = world.thing()
    sets = [world.ping(0, 0)[0] for _ in range(MOST_SETS + 1)]
    statuses = [world.ping(set_id, 1, std)[1] for set_id in sets]
    assert statuses == [0] * MOST_SETS + [OR_INVALID_OID]
    assert world.ping(sets[0], 2, std)[1] == 0, "it is in that set already"


def test_a_live_object_takes_less_than_a_kibibyte() -> None:
    count = 20_000
    world = World(ExporterLimits(objects_per_caller=count))
    gc.collect()
    tracemalloc.start()
    stds = [world.thing()[1].oid for _ in range(count)]
    world.pings.complex_ping(0, 0, stds, (), ALICE)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / count < 1024
