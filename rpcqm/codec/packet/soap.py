"""SoapHeader: an application's SOAP header and body."""

import struct
from dataclasses import dataclass
from typing import Self

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import Buffer, align4, decode_text, encode_text, require

HEADER_SECTION_ID = 0x0320
BODY_SECTION_ID = 0x0384
_SECTION = struct.Struct("<HHI")


@dataclass(frozen=True, slots=True)
class SoapHeader:
    """[MS-MQMQ] 2.2.20.7: two sections, each with its number, its length and its text."""

    header: str = ""
    body: str = ""

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where it ends; raises DecodeError."""
        spans, end = locate_soap(buffer, offset)
        texts = (
            decode_text(buffer[start:stop], "SOAP section", start) if stop > start else ""
            for start, stop in spans
        )
        return cls(*texts), end

    def encode(self) -> bytes:
        """The header's bytes, without padding."""
        return _encode_section(HEADER_SECTION_ID, self.header) + _encode_section(
            BODY_SECTION_ID, self.body
        )


def _encode_section(number: int, text: str) -> bytes:
    raw = encode_text(text) if text else b""
    return _SECTION.pack(number, 0, len(raw) // 2) + raw


def locate_soap(buffer: Buffer, offset: int) -> tuple[list[tuple[int, int]], int]:
    """Start and end of both texts, and where the header ends; raises DecodeError.

    The sections follow each other without padding; a peer that aligns the second one to four
    bytes is understood too.
    """
    start, stop = _locate_section(buffer, offset, HEADER_SECTION_ID)
    body = stop if _is_section(buffer, stop, BODY_SECTION_ID) else align4(stop)
    spans = [(start, stop), _locate_section(buffer, body, BODY_SECTION_ID)]
    return spans, spans[1][1]


def _is_section(buffer: Buffer, offset: int, number: int) -> bool:
    return int.from_bytes(buffer[offset : offset + 2], "little") == number


def _locate_section(buffer: Buffer, offset: int, number: int) -> tuple[int, int]:
    require(buffer, offset, _SECTION.size, "SOAP section")
    found, _, elements = _SECTION.unpack_from(buffer, offset)
    if found != number:
        raise DecodeError(f"SOAP section 0x{found:04X} instead of 0x{number:04X}", offset)
    start = offset + _SECTION.size
    require(buffer, start, 2 * elements, "SOAP text")
    return start, start + 2 * elements
