"""MSMQCollection: VARIANTs by their names ([MC-MQAC] 3.15)."""

from collections.abc import Mapping

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.dcom.automation import Automation
from rpcqm.dcom.com_object import ComCall
from rpcqm.dcom.enumerators import EnumVariant
from rpcqm.mqac.arguments import plain


class MSMQCollection(Automation):
    """Elements by their keys, which are compared as they are written."""

    INTERFACES = ("IMSMQCollection",)

    def __init__(self, elements: Mapping[str, Variant]) -> None:
        self.elements = dict(elements)

    def Item(self, call: ComCall, Index: Variant | None) -> Variant:
        """[MC-MQAC] 3.15.4.1.1 Item (Opnum 7)."""
        key = plain(Index)
        if key is None or key.vt != VARENUM.VT_BSTR or key.value not in self.elements:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no such element")
        return self.elements[str(key.value)]

    def get_Count(self, call: ComCall) -> int:
        """[MC-MQAC] 3.15.4.1.2 Count (Opnum 8)."""
        return len(self.elements)

    def _NewEnum(self, call: ComCall) -> EnumVariant:
        """[MC-MQAC] 3.15.4.1.3 _NewEnum (Opnum 9)."""
        return EnumVariant(list(self.elements.values()))
