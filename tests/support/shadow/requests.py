"""Requests of a run on the careful path, up to their commits: what each would be answered with."""

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rpcqm.base.completion import _PENDING, Completion
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import OperationEntry

T = TypeVar("T")


def expected(completion: Completion[T]) -> Any:
    """The value that a completion will succeed with, as far as that is known."""
    known = completion._value if completion._given is _PENDING else completion._given
    return None if known is _PENDING else known


def run(coroutine: Coroutine[Completion[Any], None, T]) -> T:
    """What a coroutine gives if what it awaits succeeds; nobody else may resolve that."""
    while True:
        try:
            awaited = coroutine.send(None)
        except StopIteration as stop:
            value: T = stop.value
            return value
        awaited.succeed(expected(awaited))


def answer_of(path: Any, call: Call) -> bytes:
    """What a dispatcher would answer a call with when what that waits for succeeds.

    Raises what its handler raises.
    """
    entry: OperationEntry | None = call.context.operations[call.opnum]
    assert entry is not None
    request = entry.decode(call.stub_data)
    path._resolve(entry, call, request)
    outcome = entry.handler(call, request)
    if inspect.iscoroutine(outcome):
        outcome = run(outcome)
    if isinstance(outcome, Completion):
        outcome = expected(outcome)
    if not isinstance(outcome, entry.response_class):
        outcome = entry.response_of_status(request, outcome)
    return entry.encode(outcome)


def _send(request: Any) -> bytes:
    return answer_of(request._lane.path, request._as_call())


def _end(request: Any) -> bytes:
    """The careful path ends the read again."""
    request._go_on()
    try:
        return answer_of(request._path, request.call)
    finally:
        request._end()


def _receive(request: Any) -> bytes:
    """The message is locked afterwards, as it was."""
    try:
        request._messages.dequeue_message_end(request.descriptor, request._position, True)
    finally:
        request.descriptor.two_phase_reads.add(request._position.lookup_identifier)
    answer: bytes = request.response
    return answer


def _send_of_program(request: Any) -> bytes:
    """The number that it would get is all of its answer that is its own."""
    (identifier,) = expected(request._alone())
    number: bytes = identifier.ordinal.to_bytes(4, "little")
    return number


def _end_of_lease(request: Any) -> bytes:
    request._alone()
    return b""


_OF_CLASSES: dict[str, Callable[[Any], bytes]] = {
    "TemplatedSend": _send,
    "TemplatedEnd": _end,
    "TemplatedReceive": _receive,
    "RepeatedMessage": _send_of_program,
    "LeaseEnd": _end_of_lease,
}
"""By name, because not every process loads all of their doors."""


def rehearse(request: Any) -> bytes:
    """Go the careful way with a request; its answer, once what it commits is durable."""
    of_class = _OF_CLASSES.get(type(request).__name__)
    answer: bytes = request.rehearse() if of_class is None else of_class(request)
    return answer
