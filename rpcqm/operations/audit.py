"""The line of the log about each change that somebody orders: who, what, from where."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass

from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger

LOCAL = "local"

ORIGIN: ContextVar[str] = ContextVar("origin", default=LOCAL)
"""Where the order of this task comes from: an address, or LOCAL for the local socket."""

_log = get_logger("operations")


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody has ordered; `on` is what it is made to."""

    who: str
    sid: str
    action: str
    on: str
    origin: str
    more: Mapping[str, object]


listeners: list[Callable[[Act], None]] = []
"""Told of each act, as the log is: those of all queue managers of the process."""


def note(identity: Identity, action: str, on: str, **more: object) -> None:
    """Tell that a change was ordered and has begun; `on` is what it is made to."""
    act = Act(identity.name, identity.sid, action, on, ORIGIN.get(), more)
    _log.info(
        "an operator acts",
        who=act.who,
        sid=act.sid,
        action=action,
        object=on,
        origin=act.origin,
        **more,
    )
    for listener in listeners:
        listener(act)
