"""The only place outside of `rpcqm.fast` that knows of it; without it all requests go carefully."""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rpcqm.fast.install import Installation
    from rpcqm.qm.engine import QueueManagerEngine

Speed: TypeAlias = "Installation | None"
"""What makes repeated requests cheap; None where the room is absent."""

_ROOM = "rpcqm.fast"


def speed_of(engine: "QueueManagerEngine") -> Speed:
    """Make repeated requests to an engine cheap, which has not started."""
    try:
        from rpcqm.fast.install import Installation
    except ModuleNotFoundError as error:
        if error.name != _ROOM:
            raise
        return None
    return Installation(engine)
