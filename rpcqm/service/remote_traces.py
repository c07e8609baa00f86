"""Asks other queue managers what they know of the way of a message, by rpcqm_trace."""

from collections.abc import Callable

from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.text import LATEST
from rpcqm.client.connection import Connections
from rpcqm.client.target import Target
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqmq import OBJECTID
from rpcqm.codec.types.rpcqm_trace import WAY_EVENT, WAY_PLACE, R_GetWayRequest, R_GetWayResponse
from rpcqm.operations.ways import Known
from rpcqm.qm.message_lookup import LocationState, MessageLocation, MessageOrigin
from rpcqm.qm.trail import TrailEvent, TrailEventType
from rpcqm.service.remote_queues import RemoteQueues

LONGEST_ANSWER = 5.0
"""Seconds for which another queue manager is waited for: an operator waits for the page."""
ASKED_AGAIN = 10_000
"""Milliseconds for which an answer counts: a page that follows changes is made every second."""
LONGEST_TEXT = 2048
"""Characters of a text in what another queue manager tells of a message.

Bound `traces.longest_text` [characters]: the answer is refused, and the page says that it cannot be
read.
"""
_MOMENTS = frozenset({"Time", "Arrived", "Sent"})
MOST_ANSWERS = 100
"""Answers of other queue managers about messages that are kept.

Bound `traces.answers` [answers]: the oldest one is asked for again.
"""


class RemoteTraces:
    """Logs on at a machine for each question; nobody is asked whom the settings do not name.

    `may_ask` tells whether the directory or `remote.peers` has a machine, `target_of` where it is.
    """

    def __init__(
        self,
        queues: RemoteQueues,
        clock: Clock,
        may_ask: Callable[[str], bool],
        target_of: Callable[[str], Target],
    ) -> None:
        self._queues, self._clock = queues, clock
        self._may_ask, self._target_of = may_ask, target_of
        self._answers: dict[tuple[str, MessageIdentifier], tuple[int, Completion[Known]]] = {}

    def known(self, machine: str, identifier: MessageIdentifier) -> Completion[Known]:
        """What a machine knows of a message; who has just been asked is not asked again."""
        key, now = (machine.casefold(), identifier), self._clock.monotonic()
        counts_until, answer = self._answers.get(key, (0, None))
        if answer is None or now >= counts_until:
            answer = self._queues.run(self._ask(machine, identifier))
            self._answers.pop(key, None)
            self._answers[key] = (now + ASKED_AGAIN, answer)
            while len(self._answers) > MOST_ANSWERS:
                del self._answers[next(iter(self._answers))]
        return answer

    async def _ask(self, machine: str, identifier: MessageIdentifier) -> Known:
        if not self._may_ask(machine):
            text = f"neither the directory nor remote.peers has a queue manager {machine}"
            raise MQError(HResult.MQ_ERROR_MACHINE_NOT_FOUND, text)
        connections = Connections(self._target_of(machine))
        wanted = OBJECTID(Lineage=identifier.queue_manager_guid, Uniquifier=identifier.ordinal)
        try:
            answer = await connections.call(R_GetWayRequest(pMessageId=wanted), LONGEST_ANSWER)
        finally:
            await connections.close()
        return known_of(answer)


def known_of(answer: R_GetWayResponse) -> Known:
    """What was told, in our own terms; raises DecodeError for what means nothing."""
    told = answer.ppEvents or []
    for each in (*told, *(answer.ppPlaces or ())):
        _check(each)
    if len(answer.ppwszName or "") > LONGEST_TEXT:
        raise DecodeError("the answer has a name that is too long")
    try:
        events = tuple(map(_event, told))
        places = tuple(map(_place, answer.ppPlaces or []))
    except ValueError as error:
        raise DecodeError(f"the answer tells of {error}") from None
    addresses = ((each.pwszDetail or "", each.pwszMachine or "") for each in told)
    names = {detail.partition("=")[2] or detail: machine for detail, machine in addresses}
    return Known(answer.pQueueManager, answer.ppwszName or "", events, places, names)


def _check(told: WAY_EVENT | WAY_PLACE) -> None:
    """Raise DecodeError for moments after the year 9999, and for texts that are no names."""
    for name in told.__slots__:
        value = getattr(told, name)
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise DecodeError(f"the answer has a {name} of {len(value)} characters")
        if name in _MOMENTS and value > LATEST * 1000:
            raise DecodeError(f"the answer has a {name} after the year 9999")


def _event(event: WAY_EVENT) -> TrailEvent:
    return TrailEvent(
        event.Time,
        TrailEventType(event.Happening),
        event.pwszQueue or "",
        event.LookupId,
        event.pwszDetail or "",
    )


def _place(place: WAY_PLACE) -> MessageLocation:
    origin = MessageOrigin(
        place.Sent, place.Hops, place.pwszDestination or "", place.pwszDead or ""
    )
    return MessageLocation(
        place.pwszQueue or "",
        LocationState(place.State),
        place.pwszLabel or "",
        place.LookupId,
        place.Arrived,
        origin,
    )
