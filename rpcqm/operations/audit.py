"""The log line about each change that a caller orders: the caller, the change, the peer."""

from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from types import coroutine
from typing import Any, TypeVar

from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.base.origin import COM, HTTP, LOCAL, ORIGIN, RPC, Origin, origin_of_peer

__all__ = ["COM", "HTTP", "LOCAL", "ORIGIN", "RPC", "Origin"]

_DENIED = (HResult.MQ_ERROR_ACCESS_DENIED, NtStatus.STATUS_ACCESS_DENIED)

_log = get_logger("operations")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Act:
    """An order of a caller; `on` is its object."""

    who: str
    sid: str
    action: str
    on: str
    origin: Origin
    more: Mapping[str, object]
    token: str | None = None
    """The name of the token that was shown; None after another kind of logon."""
    changes: bool = True
    """Whether it changes anything, so that the trail keeps it over a restart."""


listeners: list[Callable[[Act], None]] = []
"""Callables that receive each act beside the log: those of all queue managers of the process."""


@contextmanager
def ordered_from(peer: str, protocol: str) -> Iterator[None]:
    """What is ordered in the block comes from a peer: `address:port`, or another text if local.

    The block awaits nothing: others would take its origin over.
    """
    before = ORIGIN.set(origin_of_peer(peer, protocol))
    try:
        yield
    finally:
        ORIGIN.reset(before)


def start_ordered(work: Coroutine[Completion[Any], None, T]) -> Completion[T]:
    """Run a coroutine as `start` does; what its later steps note comes from the same origin.

    They run when a commit is durable, which may be in the turn of somebody else.
    """
    return start(_in_this_context(work))


@coroutine
def _in_this_context(
    work: Coroutine[Completion[Any], None, T],
) -> Generator[Completion[Any], None, T]:
    context = copy_context()
    while True:
        try:
            awaited = context.run(work.send, None)
        except StopIteration as stop:
            value: T = stop.value
            return value
        yield awaited


def note(identity: Identity, action: str, on: str, **more: object) -> None:
    """Record that a change was ordered and has begun; `on` is its object.

    Its line is never left out, so that no other acts can hide it (G324).
    """
    act = _act(identity, action, on, more)
    _log.info("an operator acts", **_told(act), always=True)
    _tell(act)


def note_work(identity: Identity, action: str, on: str, **more: object) -> None:
    """Record frequent work of programs: it is left out of the trail (G311)."""
    _log.info("an operator acts", **_told(_act(identity, action, on, more)), always=True)


def note_look(identity: Identity, action: str, on: str, **more: object) -> None:
    """Record an act that changes nothing; it is bounded, because lines could fill the disk."""
    act = _act(identity, action, on, more)
    _log.info("an operator acts", **_told(act))
    _tell(replace(act, changes=False))


def _tell(act: Act) -> None:
    for listener in listeners:
        listener(act)


@contextmanager
def ordered(identity: Identity, action: str, on: str, **more: object) -> Iterator[None]:
    """Record the change that the block begins, or its refusal."""
    with refusals(identity, action, on):
        yield
    note(identity, action, on, **more)


@contextmanager
def refusals(identity: Identity, action: str, on: str) -> Iterator[None]:
    """Tell who was refused in the block for want of a right; MQError passes through.

    Only the log is told: who may do nothing cannot push what others did out of the trail.
    """
    try:
        yield
    except MQError as error:
        if error.status in _DENIED:
            _tell_of_refusal(identity, action, on)
        raise


class RefusedOnce:
    """`refusals` for the parts of one order: each object has one line, however often it refuses."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    @contextmanager
    def __call__(self, identity: Identity, action: str, on: str) -> Iterator[None]:
        try:
            yield
        except MQError as error:
            if error.status in _DENIED and on not in self._refused:
                self._refused.add(on)
                _tell_of_refusal(identity, action, on)
            raise


def _tell_of_refusal(identity: Identity, action: str, on: str) -> None:
    _log.info("an operator was refused", **_told(_act(identity, action, on, {})))


def _act(identity: Identity, action: str, on: str, more: Mapping[str, object]) -> Act:
    token = None if identity.scope is None else identity.scope.token
    return Act(identity.name, identity.sid, action, on, ORIGIN.get(), more, token)


def _told(act: Act) -> dict[str, object]:
    return {
        "who": act.who,
        "sid": act.sid,
        **({} if act.token is None else {"token": act.token}),
        "action": act.action,
        "object": act.on,
        "origin": act.origin.address,
        "protocol": act.origin.protocol,
        **act.more,
    }
