"""rpcqm_trace: a queue manager's part of a message's way, for other queue managers."""

from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types import rpcqm_trace
from rpcqm.codec.types.rpcqm_trace import (
    WAY_EVENT,
    WAY_PLACE,
    R_GetWayRequest,
    R_GetWayResponse,
)
from rpcqm.interfaces._authentication import CallAdmission, checks
from rpcqm.operations.traces import TraceOperations
from rpcqm.operations.ways import Known
from rpcqm.qm.message_lookup import MessageLocation, MessageOrigin
from rpcqm.qm.trail import TrailEvent
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import InterfacePolicy

MOST_TOLD = rpcqm_trace.MOST_TOLD
"""Events, and places, of one message that another queue manager may tell.

Bound `traces.told` [events or places]: the answer is refused, and the page says that it cannot be
read.
"""

POLICY = InterfacePolicy(check_of=checks())
_NOTHING_TOLD = MessageOrigin(0, 0, "")


class Trace:
    """The handlers of the interface; others than administrators get MQ_ERROR_ACCESS_DENIED."""

    def __init__(self, traces: TraceOperations, admission: CallAdmission | None = None) -> None:
        self._traces = traces
        self.admission = admission or CallAdmission()

    async def R_GetWay(self, call: Call, request: R_GetWayRequest) -> R_GetWayResponse:
        """The events of a message here, and the places of its copies (Opnum 0, G317, G417)."""
        wanted = MessageIdentifier(request.pMessageId.Lineage, request.pMessageId.Uniquifier)
        known = await self._traces.known(call.identity, wanted)
        events = [_event(each, known) for each in known.events[-MOST_TOLD:]]
        places = [_place(each) for each in known.places[:MOST_TOLD]]
        return R_GetWayResponse(
            pQueueManager=known.queue_manager,
            ppwszName=known.name,
            pcEvents=len(events),
            ppEvents=events,
            pcPlaces=len(places),
            ppPlaces=places,
            result=0,
        )


def _event(event: TrailEvent, known: Known) -> WAY_EVENT:
    address = event.detail.partition("=")[2] or event.detail
    return WAY_EVENT(
        Time=event.time,
        LookupId=event.lookup_identifier,
        Happening=event.happening,
        pwszQueue=event.queue,
        pwszDetail=event.detail,
        pwszMachine=known.names.get(address, ""),
    )


def _place(place: MessageLocation) -> WAY_PLACE:
    told = place.origin or _NOTHING_TOLD
    return WAY_PLACE(
        LookupId=place.lookup_identifier,
        Arrived=place.arrived,
        Sent=told.sent,
        State=place.whereabouts,
        Hops=told.hops,
        pwszQueue=place.queue,
        pwszLabel=place.label,
        pwszDestination=told.destination,
        pwszDead=told.dead,
    )
