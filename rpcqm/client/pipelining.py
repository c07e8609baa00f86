"""Many calls at once over one connection, answered in their order."""

import itertools
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import TypeVar

from rpcqm.base.errors import HResult, MQError, NtStatus, RpcFault
from rpcqm.client.connection import Connections, require_success
from rpcqm.codec.interface import OperationRequest, Value
from rpcqm.rpc.client import Binding, TypedCall

WINDOW = 256
"""Calls on their way at most: as many as a server runs of one connection (pool.CALLS)."""
_TOGETHER = 64
"""Requests that are written at once, which saves system calls."""

ResponseT = TypeVar("ResponseT", bound=Value)


async def pipelined(
    connections: Connections,
    kind: type[OperationRequest[ResponseT]],
    requests: Iterable[OperationRequest[ResponseT]],
    window: int = WINDOW,
) -> AsyncGenerator[ResponseT | MQError, None]:
    """Call an operation with each request of its `kind`; yields the answers in the same order.

    A refusal is yielded as MQError. Everything else is raised as by Connections.call; then the
    outcome of the calls that were on their way is not known.
    """
    source = iter(requests)
    async with connections.borrowed(kind) as binding:
        window = window if binding.client.multiplexed else 1
        waiting: deque[TypedCall[ResponseT]] = deque()
        try:
            while True:
                if len(waiting) <= max(window - _TOGETHER, 0):
                    some = itertools.islice(source, min(_TOGETHER, window))
                    _send(binding, some, waiting)
                if not waiting:
                    return
                yield await _outcome(waiting.popleft())
        finally:
            for call in waiting:
                call.pending.forget()


def _send(
    binding: Binding,
    requests: Iterable[OperationRequest[ResponseT]],
    waiting: deque[TypedCall[ResponseT]],
) -> None:
    with binding.client.together():
        waiting.extend(binding.send(request) for request in requests)


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
