"""Orders for messages of a queue, through the administration interface of this machine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.client.connection import Connections, require_value
from rpcqm.client.maintenance import StayingLetters
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.types import rpcqm_admin


@dataclass(frozen=True, slots=True)
class OrderState:
    """How far an order is: how many messages were chosen, are done, have gone, and stay.

    `left` are still to come. `more` messages were there than an order may have; `after` and `until`
    are those of the order for them. `unread` ones were not meant: they say more than is read.
    """

    identifier: str
    step: int
    chosen: int
    messages: int
    gone: int
    staying: tuple[StayingLetters, ...]
    left: int
    ended: bool
    more: bool
    unread: int
    after: str | None
    until: str | None


class MessageOrdersClient:
    """Moves, copies, sends again and removes chosen messages of a queue."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def begin(
        self, name: FormatName, to: FormatName | None, order: Mapping[str, object]
    ) -> OrderState:
        """Carry out the first group of an order, in one commit."""
        request = rpcqm_admin.R_BeginOrderRequest(
            pQueueFormat=queue_format_of(name),
            pTo=None if to is None else queue_format_of(to),
            pwszOrder=json.dumps(order),
        )
        return _state((await self._connections.call(request)).ppwszOutcome)

    async def go_on(self, state: OrderState, *, stop: bool = False) -> OrderState:
        """Carry out the next group, or stop there."""
        request = rpcqm_admin.R_GoOnWithOrderRequest(
            pwszOrder=state.identifier, Step=state.step, fStop=stop
        )
        return _state((await self._connections.call(request)).ppwszOutcome)


def _state(outcome: str | None) -> OrderState:
    """The state that an answer has; raises MQError for a refusal that has words."""
    told: dict[str, Any] = json.loads(require_value(outcome))
    if "refused" in told:
        raise MQError(_status(told["refused"]), told["detail"])
    staying = (StayingLetters(x["messages"], x["detail"], x["code"]) for x in told["staying"])
    return OrderState(
        identifier=told["order"],
        step=told["step"],
        chosen=told["chosen"],
        messages=told["messages"],
        gone=told["gone"],
        staying=tuple(staying),
        left=told["left"],
        ended=told["ended"],
        more=told["more"],
        unread=told["unread"],
        after=told["after"],
        until=told["until"],
    )


def _status(number: int) -> HResult | NtStatus:
    try:
        return HResult(number)
    except ValueError:
        return NtStatus(number)
