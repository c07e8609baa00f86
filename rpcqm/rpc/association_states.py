"""The states of a server's association, what each of them accepts, and where that may lead.

- UNBOUND: nothing but a bind is understood; the answer is a bind_ack or a bind_nak.
- BOUND: requests, further contexts and legs of authentication, cancels.
- STOPPING: what is in flight is answered, new requests are refused, the end follows.
- CLOSED: nothing is accepted any more; what is queued is still to be sent.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from rpcqm.rpc.constants import PduType


class State(enum.Enum):
    """See the module's text."""

    UNBOUND = enum.auto()
    BOUND = enum.auto()
    STOPPING = enum.auto()
    CLOSED = enum.auto()


@dataclass(frozen=True, slots=True)
class Transition:
    """How a PDU is received in a state, and the states that may follow.

    `receive` is the path of the method from the association.
    """

    receive: str
    then: frozenset[State]


_ENDS = frozenset({State.CLOSED})
_STAYS_BOUND = frozenset({State.BOUND, State.CLOSED})
_STAYS_STOPPING = frozenset({State.STOPPING, State.CLOSED})

TRANSITIONS: Mapping[State, Mapping[PduType, Transition]] = {
    State.UNBOUND: {
        PduType.bind: Transition("_receive_bind", _STAYS_BOUND),
    },
    State.BOUND: {
        PduType.bind: Transition("_receive_second_bind", _STAYS_BOUND),
        PduType.alter_context: Transition("_receive_alter_context", _STAYS_BOUND),
        PduType.auth3: Transition("_receive_auth3", _STAYS_BOUND),
        PduType.request: Transition("_requests.receive", _STAYS_BOUND),
        PduType.co_cancel: Transition("_receive_co_cancel", _STAYS_BOUND),
        PduType.orphaned: Transition("_receive_orphaned", _STAYS_BOUND),
    },
    State.STOPPING: {
        PduType.request: Transition("_refuse_request", _STAYS_STOPPING),
        PduType.co_cancel: Transition("_receive_co_cancel", _STAYS_STOPPING),
        PduType.orphaned: Transition("_receive_orphaned", _STAYS_STOPPING),
    },
    State.CLOSED: {},
}
