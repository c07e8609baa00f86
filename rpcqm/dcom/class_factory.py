"""A class as an object: IClassFactory makes the class's objects."""

from collections.abc import Callable
from typing import ClassVar
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.dcom.com_object import ComCall, ComObject
from rpcqm.dcom.object_interfaces import supports


class ClassFactory(ComObject):
    """The result of RemoteGetClassObject: `make` makes an object of the class."""

    INTERFACES: ClassVar[tuple[str, ...]] = ("IClassFactory",)

    def __init__(self, make: Callable[[], ComObject]) -> None:
        self._make = make

    def RemoteCreateInstance(self, call: ComCall, riid: UUID) -> ComObject:
        """A new object (opnum 3); MQError: E_NOINTERFACE if it lacks the interface."""
        made = self._make()
        if not supports(made, riid):
            made.released()
            raise MQError(HResult.E_NOINTERFACE, str(riid))
        return made

    def RemoteLockServer(self, call: ComCall, fLock: int) -> None:
        """Do nothing (opnum 4): the server of the classes runs as long as the process."""
