"""Many calls at once over one connection, answered in their order."""

import itertools
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TypeVar

from rpcqm.base.errors import HResult, MQError, NtStatus, RpcFault
from rpcqm.client.connection import Connections, require_success
from rpcqm.codec.interface import OperationRequest, Value
from rpcqm.rpc.client import Binding, TypedCall

WINDOW = 256
"""Calls on their way at most: as many as a server runs of one connection (pool.CALLS)."""
_TOGETHER = 64
"""Requests that are written at once, which saves system calls."""

MOST_OCTETS = 4 << 20
"""Octets of requests that are on their way, and one more request: else 256 large ones would be."""

ResponseT = TypeVar("ResponseT", bound=Value)


def _light(request: object) -> int:
    return 0


async def pipelined(
    connections: Connections,
    kind: type[OperationRequest[ResponseT]],
    requests: Iterable[OperationRequest[ResponseT]],
    window: int | None = None,
    weigh: Callable[[OperationRequest[ResponseT]], int] = _light,
) -> AsyncGenerator[ResponseT | MQError, None]:
    """Call an operation with each request of its `kind`; yields the answers in the same order.

    `weigh` gives the octets of a request, where they count. A refusal is yielded as MQError.
    Everything else is raised as by Connections.call; then the outcome of the calls that were on
    their way is not known.
    """
    source = iter(requests)
    async with connections.borrowed(kind) as binding:
        window = (window or WINDOW) if binding.client.multiplexed else 1
        waiting: deque[tuple[TypedCall[ResponseT], int]] = deque()
        room = MOST_OCTETS
        try:
            while True:
                if len(waiting) <= max(window - _TOGETHER, 0) and room > 0:
                    weighed = ((each, weigh(each)) for each in source)
                    some = itertools.islice(weighed, min(_TOGETHER, window))
                    room = _send(binding, some, room, waiting)
                if not waiting:
                    return
                call, weight = waiting.popleft()
                yield await _outcome(call)
                room += weight
        finally:
            for call, _ in waiting:
                call.pending.forget()


def _send(
    binding: Binding,
    requests: Iterable[tuple[OperationRequest[ResponseT], int]],
    room: int,
    waiting: deque[tuple[TypedCall[ResponseT], int]],
) -> int:
    """Send requests with their weights until they fill the room; returns what is left of it."""
    with binding.client.together():
        for request, weight in requests:
            waiting.append((binding.send(request), weight))
            room -= weight
            if room <= 0:
                break
    return room


async def _outcome(call: TypedCall[ResponseT]) -> ResponseT | MQError:
    try:
        response = await call.response()
        require_success(getattr(response, "result", HResult.MQ_OK))
    except MQError as error:
        return error
    except RpcFault as fault:
        if not isinstance(fault.status, HResult | NtStatus):
            raise
        return MQError(fault.status)
    return response
