"""Enumerators: objects that return a sequence a few elements at a time ([MS-OAUT] 3.3).

They are static: their elements are those of the moment when the first of them was made.
"""

from collections.abc import Sequence
from typing import Self

from rpcqm.base.errors import HResult, MQError
from rpcqm.dcom.com_object import ComCall, ComObject, Outcome


class Enumerator(ComObject):
    """The methods of all enumerators; elements are those of the array that `Next` returns."""

    def __init__(self, elements: Sequence[object], position: int = 0) -> None:
        self._elements = elements
        self._position = position

    def Next(self, call: ComCall, celt: int) -> Outcome:
        """The next elements, S_FALSE where there are fewer ([MS-OAUT] 3.3.4.1, opnum 3).

        E_INVALIDARG if no element is asked for.
        """
        if celt == 0:
            raise MQError(HResult.E_INVALIDARG, "no element is asked for")
        found = list(self._elements[self._position : self._position + celt])
        self._position += len(found)
        return Outcome(_all_or_not(len(found), celt), (found, len(found)))

    def Skip(self, call: ComCall, celt: int) -> Outcome:
        """Skip elements, S_FALSE where there are fewer ([MS-OAUT] 3.3.4.2, opnum 4)."""
        passed = min(celt, len(self._elements) - self._position)
        self._position += passed
        return Outcome(_all_or_not(passed, celt))

    def Reset(self, call: ComCall) -> None:
        """Begin again ([MS-OAUT] 3.3.4.3, opnum 5)."""
        self._position = 0

    def Clone(self, call: ComCall) -> Self:
        """A copy in the same place ([MS-OAUT] 3.3.4.4, opnum 6)."""
        return type(self)(self._elements, self._position)


def _all_or_not(count: int, asked: int) -> HResult:
    return HResult.MQ_OK if count == asked else HResult.S_FALSE


class EnumVariant(Enumerator):
    """The elements of a collection, as VARIANTs."""

    INTERFACES = ("IEnumVARIANT",)


class EnumConnectionPoints(Enumerator):
    """The connection points of an object."""

    INTERFACES = ("IEnumConnectionPoints",)


class EnumConnections(Enumerator):
    """The sinks of a connection point, as CONNECTDATA."""

    INTERFACES = ("IEnumConnections",)
