"""The coclasses that clients can activate ([MC-MQAC] 1.9)."""

from collections.abc import Callable
from uuid import UUID

from rpcqm.dcom.com_object import ComObject
from rpcqm.mqac.machine import Machine

Coclasses = dict[UUID, Callable[[], ComObject]]
"""What makes a new object of a class, by its CLSID."""


def coclasses(machine: Machine) -> Coclasses:
    """The classes of a queue manager: only those whose methods are all there."""
    return {}
