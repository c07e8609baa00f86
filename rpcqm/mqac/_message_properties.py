"""The methods of MSMQMessage that only read or set one attribute."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NoReturn

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.dcom.com_object import ComCall
from rpcqm.mqac.arguments import octets_variant, signed

if TYPE_CHECKING:
    from rpcqm.mqac.message import MSMQMessage

_BITS = 0xFFFF_FFFF


def get_number(
    name: str, reading: Callable[[int], int] = int
) -> Callable[["MSMQMessage", ComCall], int]:
    """Read an attribute as a `long` or a `short`, where TRUE is 1."""

    def read(self: "MSMQMessage", call: ComCall) -> int:
        return signed(int(reading(getattr(self.attributes, name))))

    return read


def get_flag(name: str) -> Callable[["MSMQMessage", ComCall], bool]:
    """Read an attribute as a VARIANT_BOOL: True unless it is 0."""

    def read(self: "MSMQMessage", call: ComCall) -> bool:
        return bool(getattr(self.attributes, name))

    return read


def get_text(name: str) -> Callable[["MSMQMessage", ComCall], str]:
    """Read an attribute as a BSTR, "" while it is NULL."""

    def read(self: "MSMQMessage", call: ComCall) -> str:
        value: str = getattr(self.attributes, name)
        return value

    return read


def get_octets(name: str) -> Callable[["MSMQMessage", ComCall], Variant]:
    """Read an attribute as an array of octets, an empty one while it is NULL."""

    def read(self: "MSMQMessage", call: ComCall) -> Variant:
        return octets_variant(getattr(self.attributes, name))

    return read


def put_number(name: str) -> Callable[["MSMQMessage", ComCall, int], None]:
    """Set an attribute to the bits of a `long`, -1 being 0xFFFFFFFF."""

    def write(self: "MSMQMessage", call: ComCall, value: int) -> None:
        setattr(self.attributes, name, value & _BITS)

    return write


def put_choice(name: str, choices: Iterable[int]) -> Callable[["MSMQMessage", ComCall, int], None]:
    """Set an attribute to one of some values; MQ_ERROR_ILLEGAL_PROPERTY_VALUE for others."""
    known = frozenset(map(int, choices))

    def write(self: "MSMQMessage", call: ComCall, value: int) -> None:
        if value not in known:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"{name} {value}")
        kind = type(getattr(self.attributes, name))
        setattr(self.attributes, name, bool(value) if kind is bool else value)

    return write


def not_implemented(self: object, call: ComCall, *arguments: object) -> NoReturn:
    """Refuse a method that only has a name ([MC-MQAC])."""
    raise MQError(HResult.E_NOTIMPL)
