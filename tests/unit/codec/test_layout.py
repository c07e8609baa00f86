"""Bit fields and fixed layouts, the ground that headers stand on."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import (
    BitField,
    Bits,
    Structure,
    UInt8,
    UInt16,
    WireType,
    align4,
    encode_text,
    padded,
    require,
    take,
)


class Flags(Bits):
    low = BitField(0, 3)
    flag = BitField(3)
    high = BitField(12, 4)


@dataclass(frozen=True, slots=True)
class Inner(Structure):
    number: UInt16
    letter: UInt8


@dataclass(frozen=True, slots=True)
class Outer(Structure):
    flags: Annotated[Flags, WireType("H")]
    inner: Inner
    raw: Annotated[bytes, WireType("2s")] = b"ab"


def test_bit_fields_are_counted_from_the_least_significant_bit() -> None:
    flags = Flags.of(low=5, flag=1, high=0xF)
    assert flags == 0xF00D
    assert (flags.low, flags.flag, flags.high) == (5, 1, 15)
    assert repr(flags) == "Flags(low=5, flag=1, high=15)"


def test_replacing_a_bit_field_leaves_the_others_and_the_reserved_bits() -> None:
    flags = Flags(0x0FFF).replace(low=0, high=1)
    assert flags == 0x1FF8
    assert isinstance(flags, Flags)


def test_bit_field_that_does_not_exist_or_does_not_fit_is_refused() -> None:
    with pytest.raises(KeyError):
        Flags.of(middle=1)
    with pytest.raises(ValueError, match=r"Flags\.flag cannot hold 2"):
        Flags.of(flag=2)


def test_structures_nest_without_padding() -> None:
    value = Outer(Flags(0x8001), Inner(0x0203, 4))
    raw = b"\x01\x80\x03\x02\x04ab"
    assert value.encode() == raw
    assert Outer.decode(raw) == value
    assert isinstance(Outer.decode(raw).flags, Flags)
    assert Outer.size() == 7


def test_reading_stays_within_the_buffer() -> None:
    require(b"abc", 1, 2, "text")
    assert take(bytearray(b"abc"), 1, 2, "text") == b"bc"
    with pytest.raises(DecodeError) as refusal:
        take(b"abc", 2, 2, "text")
    assert refusal.value.offset == 2
    assert "text is cut off: 1 of 2 bytes" in str(refusal.value)


def test_padding_goes_up_to_a_multiple_of_four() -> None:
    assert [align4(number) for number in range(6)] == [0, 4, 4, 4, 4, 8]
    assert [len(padded(bytes(number))) for number in range(6)] == [0, 4, 4, 4, 4, 8]


def test_text_is_little_endian_with_its_null() -> None:
    assert encode_text("a\U0001f4e6") == b"a\0\x3d\xd8\xe6\xdc\0\0"
