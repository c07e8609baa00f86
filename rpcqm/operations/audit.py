"""The line of the log about each change that somebody orders: who, what, from where."""

from contextvars import ContextVar

from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger

LOCAL = "local"

ORIGIN: ContextVar[str] = ContextVar("origin", default=LOCAL)
"""Where the order of this task comes from: an address, or LOCAL for the local socket."""

_log = get_logger("operations")


def note(identity: Identity, action: str, on: str, **more: object) -> None:
    """Tell that a change was ordered and has begun; `on` is what it is made to."""
    _log.info(
        "an operator acts",
        who=identity.name,
        sid=identity.sid,
        action=action,
        object=on,
        origin=ORIGIN.get(),
        **more,
    )
