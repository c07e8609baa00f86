"""The only place outside of `rpcqm.fast` that knows of it; without it all requests go carefully."""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rpcqm.fast.install import Installation
    from rpcqm.interfaces.qmcomm2 import QmComm2
    from rpcqm.interfaces.remote_read import RemoteRead
    from rpcqm.qm.engine import QueueManagerEngine
    from rpcqm.rpc.interface_registry import InterfacePolicy

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


def with_shortcuts(
    speed: Speed, policy: "InterfacePolicy", handlers: "RemoteRead | QmComm2"
) -> "InterfacePolicy":
    """The policy of an interface, with the shortcuts of its handlers where there are any."""
    return policy if speed is None else speed.with_shortcuts(policy, handlers)
