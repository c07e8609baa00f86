"""What several queue managers know of a message, put together to one way."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.operations.journeys import Journey, Knowledge, Role, journey
from rpcqm.operations.ways import Known, Part, put_together
from rpcqm.qm.message_lookup import LocationState, MessageLocation, MessageOrigin
from rpcqm.qm.trail import TrailEvent, TrailEventType
from tests.support.qm.operators import operations_of as made_operations
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE
from tests.unit.operations.test_journeys import destination, event

OWN, OTHER, THIRD = UUID(int=1), UUID(int=2), UUID(int=3)
NAMES = {OWN: "here", OTHER: "other", THIRD: "third"}
TO_THIRD = f"PRIVATE={THIRD}\\00000001"
DIRECT = r"DIRECT=OS:third\private$\x"
X = r"third\private$\x"
SENT, ARRIVED, RECEIVED = (
    TrailEventType.SENT,
    TrailEventType.ARRIVED,
    TrailEventType.RECEIVED,
)
ACKNOWLEDGED = TrailEventType.ACKNOWLEDGED


def part(
    own: UUID, *events: TrailEvent, places: tuple[MessageLocation, ...] = (), source: UUID = OWN
) -> Part:
    hops = {"10.0.0.2": "other", "10.0.0.3": "third"}
    known = Known(own, NAMES[own], events, places, hops)
    meant = Knowledge(own, NAMES[own], NAMES.__getitem__, lambda at: hops.get(at, ""), destination)
    return Part(known, journey(source, events, places, meant))


def told(made: Journey) -> list[tuple[str, str, str]]:
    """Each step with the names and kinds of its stops."""
    return [
        (
            each.what,
            f"{each.source.machine.name}.{each.source.kind}",
            f"{each.target.machine.name}.{each.target.kind}",
        )
        for each in made.steps
    ]


def roles(made: Journey) -> dict[str, Role]:
    """The one part of each queue manager."""
    stops = {stop for step in made.steps for stop in (step.source, step.target)}
    found = {(stop.machine.name, stop.machine.role) for stop in stops}
    assert len(found) == len({name for name, _ in found}), "somebody has two parts"
    return dict(found)


HERE = part(
    OWN,
    event(1_000, SENT, TO_THIRD, "IP=10.0.0.2"),
    event(1_500, ACKNOWLEDGED, TO_THIRD, "by the next hop"),
)
BETWEEN = part(OTHER, event(2_000, SENT, TO_THIRD, "IP=10.0.0.3"))
THERE = part(THIRD, event(3_000, ARRIVED, X), event(4_000, RECEIVED, X))


def test_a_way_over_three_queue_managers_is_one_line_from_the_sender_to_the_reader() -> None:
    made = put_together(HERE, {"other": BETWEEN, "third": THERE})
    assert told(made) == [
        ("arrived", "here.sender", "here.queue"),
        ("sent", "here.queue", "other.queue"),
        ("acknowledged", "other.queue", "here.queue"),
        ("sent", "other.queue", "third.queue"),
        ("arrived", "third.queue", "third.queue"),
        ("received", "third.queue", "third.reader"),
    ]
    assert roles(made) == {
        "here": Role.HERE,
        "other": Role.NEXT_HOP,
        "third": Role.DESTINATION,
    }


def test_the_last_one_sees_the_same_way_with_others_before_it() -> None:
    made = put_together(THERE, {"here": HERE, "other": BETWEEN})
    assert told(made) == told(put_together(HERE, {"other": BETWEEN, "third": THERE}))
    assert roles(made) == {"here": Role.SOURCE, "other": Role.BEFORE, "third": Role.HERE}


def test_who_has_not_told_stays_a_guess() -> None:
    made = put_together(HERE, {"third": THERE})
    assert ("passed_on", "other.machine", "third.queue") in told(made)
    assert ("sent", "here.queue", "other.machine") in told(made)
    (guess,) = [each for each in made.steps if each.what == "passed_on"]
    assert not guess.written


def test_nothing_happens_before_it_was_sent_whatever_the_clock_there_says() -> None:
    early = part(THIRD, event(10, ARRIVED, X), event(20, RECEIVED, X))
    made = put_together(part(OWN, event(1_000, SENT, DIRECT, "IP=10.0.0.3")), {"third": early})
    assert [what for what, *_ in told(made)] == ["arrived", "sent", "arrived", "received"]
    assert [each.time for each in made.steps] == [0, 1_000, 10, 20]


def test_a_name_by_which_somebody_was_asked_is_that_of_who_has_answered() -> None:
    sent = part(OWN, event(1_000, SENT, r"DIRECT=OS:third.example.org\private$\x", "IP=10.0.0.3"))
    made = put_together(sent, {"third.example.org": THERE})
    assert set(roles(made)) == {"here", "third"}
    assert told(made)[-1] == ("received", "third.queue", "third.reader")


def test_where_it_is_now_is_known_of_all() -> None:
    origin = MessageOrigin(1_000, 0, DIRECT)
    waits = MessageLocation(X, LocationState.WAITING, "", 7, 5_000, origin)
    made = put_together(
        part(OWN, event(1_000, SENT, DIRECT, "IP=10.0.0.3")),
        {"third": part(THIRD, places=(waits,))},
    )
    ((place, stop),) = made.places
    assert (place, stop.machine.name, stop.place) == (waits, "third", X)
    assert [what for what, *_ in told(made)] == ["arrived", "sent"], "the arrow tells it"


def test_who_knows_nothing_itself_shows_what_others_know() -> None:
    made = put_together(part(OWN), {"third": part(THIRD, event(3_000, RECEIVED, X))})
    assert ("received", "third.queue", "third.reader") in told(made)
    assert made.source.name == "here"


class Endless:
    """Each queue manager that is asked has sent the message on to one more."""

    def __init__(self, first: str) -> None:
        self.first, self.asked = first, 0

    def known(self, machine: str, identifier: MessageIdentifier) -> Completion[Known]:
        self.asked += 1
        on = event(
            self.asked, SENT, rf"DIRECT=OS:{self.first}{self.asked}\private$\x", "IP=10.0.0.9"
        )
        answer: Completion[Known] = Completion()
        answer.succeed(Known(UUID(int=100 + self.asked), machine, (on,), ()))
        return answer


@pytest.mark.bound("traces.asked")
def test_so_many_are_asked_about_one_message(qm: RunningQueueManager, tmp_path: Path) -> None:
    traces = made_operations(qm, tmp_path).traces
    traces.elsewhere = endless = Endless("machine")
    way = asyncio.run(traces.way(ADMINISTRATOR, MessageIdentifier(OTHER, 7)))
    assert endless.asked == len(way.told) == 8


def test_only_administrators_have_others_asked(qm: RunningQueueManager, tmp_path: Path) -> None:
    traces = made_operations(qm, tmp_path).traces
    traces.elsewhere = endless = Endless("machine")
    with pytest.raises(MQError) as refused:
        asyncio.run(traces.way(ALICE, MessageIdentifier(OTHER, 7)))
    assert refused.value.status is HResult.MQ_ERROR_ACCESS_DENIED
    assert endless.asked == 0
