"""The way of a message, made of events, of what the message tells, and of names."""

from uuid import UUID

from rpcqm.codec.names.format_name import FormatName
from rpcqm.operations.journeys import Journey, Kind, Knowledge, Role, journey, machine_in
from rpcqm.qm.message_lookup import LocationState, MessageLocation, MessageOrigin
from rpcqm.qm.trail import TrailEvent, TrailEventType

OWN, OTHER, THIRD = UUID(int=1), UUID(int=2), UUID(int=3)
NAMES = {OWN: "here", OTHER: "other", THIRD: "third"}
ORDERS = r"here\private$\orders"
DIRECT = r"DIRECT=OS:third\private$\x"
PRIVATE = f"PRIVATE={THIRD}\\00000001"
ADMIN = r"here\private$\admin"


def destination(name: FormatName) -> str | None:
    found = machine_in(name)
    return NAMES[found] if isinstance(found, UUID) else found


def way(source: UUID, *events: TrailEvent, places: tuple[MessageLocation, ...] = ()) -> Journey:
    hops = {"10.0.0.9": "router"}
    known = Knowledge(OWN, "here", NAMES.__getitem__, lambda at: hops.get(at, ""), destination)
    return journey(source, events, places, known)


def event(
    time: int, what: TrailEventType, queue: str, detail: str = "", key: int = 7
) -> TrailEvent:
    return TrailEvent(time, what, queue, key, detail)


def told(made: Journey) -> list[tuple[str, str, str, bool]]:
    """Each step with the machines and kinds of its stops, and whether it was written down."""
    return [
        (
            each.what,
            f"{each.source.machine.role}.{each.source.kind}",
            f"{each.target.machine.role}.{each.target.kind}",
            each.written,
        )
        for each in made.steps
    ]


def held(queue: str, hops: int = 0, dead: str = "", to: str = ORDERS) -> MessageLocation:
    origin = MessageOrigin(1_000, hops, to, dead)
    return MessageLocation(queue, LocationState.WAITING, "", 7, 5_000, origin)


def test_a_message_from_elsewhere_comes_by_its_source_and_by_routing_servers() -> None:
    arrived = event(5_000, TrailEventType.ARRIVED, ORDERS)
    made = way(OTHER, arrived, places=(held(ORDERS, 2),))
    assert told(made) == [
        ("handed_over", "source.sender", "source.machine", False),
        ("passed_on", "source.machine", "between.machine", False),
        ("arrived", "between.machine", "here.queue", True),
    ]
    first, between, last = made.steps
    assert (first.time, first.source.machine.name) == (1_000, "other")
    assert between.target.machine.name == "2"
    assert (last.time, last.target.place) == (5_000, ORDERS)


def test_without_a_trail_what_the_message_tells_is_no_event() -> None:
    made = way(OTHER, places=(held(ORDERS),))
    assert [each.written for each in made.steps] == [False, False]
    assert made.steps[-1].time == 5_000


def test_what_is_passed_on_does_not_count_this_queue_manager_among_those_before() -> None:
    sent = event(6_000, TrailEventType.SENT, PRIVATE, "IP=10.0.0.9")
    made = way(OTHER, sent, places=(held(PRIVATE, 2),))
    assert [each.target.machine.name for each in made.steps if each.what == "passed_on"] == [
        "1",
        "third",
    ]
    assert ("sent", "here.queue", "next_hop.machine", True) in told(made)
    (hop,) = [each.target for each in made.steps if each.what == "sent"]
    assert hop.machine.name == "router"


def test_a_direct_name_is_sent_to_the_queue_managers_own_address() -> None:
    made = way(
        OWN,
        event(1, TrailEventType.SENT, DIRECT, "IP=10.0.0.9"),
        event(2, TrailEventType.ACKNOWLEDGED, DIRECT, "by the next hop"),
        event(3, TrailEventType.ACKNOWLEDGED, DIRECT, "finally, ACK_RECEIVE"),
        event(4, TrailEventType.ACKNOWLEDGED, ADMIN, "ACK_RECEIVE", 0),
    )
    assert told(made) == [
        ("arrived", "here.sender", "here.queue", False),
        ("sent", "here.queue", "destination.queue", True),
        ("acknowledged", "destination.queue", "here.queue", True),
        ("acknowledged", "destination.queue", "here.queue", True),
        ("acknowledged", "destination.queue", "here.queue", True),
    ]
    assert {each.target.machine.name for each in made.steps if each.what == "sent"} == {"third"}


def test_nobody_is_said_to_have_refused_who_is_not_known() -> None:
    refusal = event(4, TrailEventType.ACKNOWLEDGED, ADMIN, "NACK_REACH_QUEUE_TIMEOUT", 0)
    made = way(OWN, event(1, TrailEventType.SENT, PRIVATE, "IP=10.0.0.9"), refusal)
    assert made.steps[-1].source.machine.role is Role.ELSEWHERE
    accepted = way(OWN, event(1, TrailEventType.ACKNOWLEDGED, ADMIN, "ACK_REACH_QUEUE", 0))
    assert accepted.steps[-1].source.machine.role is Role.ELSEWHERE, "no queue elsewhere is known"


def test_here_a_message_goes_from_its_sender_to_its_reader() -> None:
    made = way(
        OWN,
        event(1, TrailEventType.ARRIVED, ORDERS),
        event(2, TrailEventType.MOVED, ORDERS, f"{ORDERS};late"),
        event(3, TrailEventType.RECEIVED, f"{ORDERS};late"),
    )
    assert told(made) == [
        ("arrived", "here.sender", "here.queue", True),
        ("moved", "here.queue", "here.queue", True),
        ("received", "here.queue", "here.reader", True),
    ]
    assert made.steps[1].target.place == f"{ORDERS};late"


def test_of_an_imported_message_no_way_is_made_up() -> None:
    made = way(OTHER, event(1, TrailEventType.ARRIVED, ORDERS, "imported"), places=(held(ORDERS),))
    (step,) = made.steps
    assert step.source == step.target
    assert step.source.kind is Kind.QUEUE


def test_of_a_message_that_is_unknown_here_only_the_source_is_told() -> None:
    made = way(OTHER)
    assert made.steps == ()
    assert (made.source.role, made.source.name) == (Role.SOURCE, "other")


def test_a_dead_letter_tells_why_and_which_queue_it_was_for_without_a_trail() -> None:
    dead = held(r"here\DeadLetter$", dead="NACK_RECEIVE_TIMEOUT")
    made = way(OTHER, places=(dead,))
    arrived, kept = made.steps[-2:]
    assert (arrived.what, arrived.time, arrived.target.place) == ("arrived", 0, ORDERS)
    assert (kept.what, kept.time, kept.detail) == ("kept", 5_000, "NACK_RECEIVE_TIMEOUT")
    assert (kept.source.place, kept.target.place) == (ORDERS, r"here\DeadLetter$")
    assert not kept.written
    assert [each.what for each in way(OWN, places=(dead,)).steps] == ["arrived", "kept"]
    written = event(5_000, TrailEventType.KEPT, ORDERS, r"here\DeadLetter$")
    made = way(OWN, event(1, TrailEventType.ARRIVED, ORDERS), written, places=(dead,))
    assert [each.written for each in made.steps] == [True, True], "told once"
