"""Calls of objects that leave what waits for the end of the turn as it is.

Every other call sees it carried out (docs/request-templates.md): what such a method puts off itself
belongs together with it.
"""

import struct

from rpcqm.dcom.automation import called_operation
from rpcqm.dcom.exporter import ObjectExporter
from rpcqm.dcom.plain_calls import called_member
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import CarefulPath

INVOKE = "Invoke"
OPERATIONS = frozenset({"Send", INVOKE})
"""The names that a class may have in `ComObject.IN_TURN`, and how programs call them."""


class InTurn:
    """One operation of one interface, in NDR (`rpc.interface_registry.TemplatedOperation`)."""

    __slots__ = ("_interfaces", "_name")

    def __init__(self, exporter: ObjectExporter, name: str) -> None:
        self._interfaces, self._name = exporter.by_ipid, name

    def take(self, call: Call, path: CarefulPath) -> bool:
        """Run a call without carrying out what waits, if its method is one IN_TURN."""
        if not self._is_in_turn(call):
            return False
        path.run_carefully(call)
        return True

    def _is_in_turn(self, call: Call) -> bool:
        found = self._interfaces.get(call.object_octets)
        if found is None or not (methods := found.object.com_object.IN_TURN):
            return False
        if self._name != INVOKE:
            return self._name in methods
        try:
            dispid, flags = called_member(call.stub_data)
        except struct.error:
            return False
        return called_operation(found.object.com_object, found.iid, dispid, flags) in methods
