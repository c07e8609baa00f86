"""Structures by themselves: type serialization version 1."""

from uuid import UUID

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.codec.pickling import serialized
from rpcqm.codec.types.dcom import COMVERSION, CustomHeader, PropsOutInfo

PROPERTIES = serialized("dcom", "PropsOutInfo")
VALUE = PropsOutInfo(cIfs=1, piid=[UUID(int=1)], phresults=[0x80004002], ppIntfData=[b"MEOW!"])
OCTETS = bytes.fromhex(
    "01100800cccccccc 4800000000000000"
    "01000000 00000200 04000200 08000200"
    "01000000 00000000000000000000000000000001"
    "01000000 02400080"
    "01000000 0c000200"
    "05000000 05000000 4d454f5721 00000000000000"
)


def test_a_structure_follows_both_headers_and_fills_eights() -> None:
    assert PROPERTIES.encode(VALUE).hex(" ") == OCTETS.hex(" ")
    assert PROPERTIES.decode(OCTETS) == VALUE


def test_octets_in_big_endian_order_are_read() -> None:
    version = serialized("dcom", "COMVERSION")
    octets = bytes.fromhex("01000008cccccccc 0000000800000000 0005000700000000")
    assert version.decode(octets) == COMVERSION(MajorVersion=5, MinorVersion=7)


@pytest.mark.parametrize("length", [0, 8, 15, 16, 40, 80])
def test_octets_that_end_too_early_are_refused(length: int) -> None:
    with pytest.raises(DecodeError):
        PROPERTIES.decode(OCTETS[:length])


@pytest.mark.parametrize("at", [0, 1])
def test_another_version_or_order_is_refused(at: int) -> None:
    with pytest.raises(DecodeError, match="no serialized type"):
        PROPERTIES.decode(OCTETS[:at] + b"\x05" + OCTETS[at + 1 :])


def test_only_structures_stand_by_themselves() -> None:
    with pytest.raises(TypeError, match="no structure"):
        serialized("dcom", "OXID")
    with pytest.raises(KeyError):
        serialized("dcom", "Unknown")
    assert serialized("dcom", "CustomHeader") is serialized("dcom", "CustomHeader")
    with pytest.raises(TypeError):
        serialized("dcom", "CustomHeader").encode(CustomHeader(totalSize="x"))  # type: ignore[arg-type, call-arg]
