"""Verification trailers: a client repeats parts of its request inside the protected octets.

It appends one to the stub data, so that a server notices changes to the parts that its security
provider does not cover ([MS-RPCE] 2.2.2.13).
"""

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from rpcqm.base.errors import DecodeError, FaultStatus, RpcFault
from rpcqm.rpc.constants import PduType
from rpcqm.rpc.pdu import SyntaxId

if TYPE_CHECKING:
    from rpcqm.rpc.call import Call

SIGNATURE = bytes.fromhex("8ae3137102f43671")
LARGEST = 1024
"""The largest distance from the end at which a trailer is sought; all commands take 80 octets."""

SEC_VT_COMMAND_BITMASK_1 = 0x0001
SEC_VT_COMMAND_PCONTEXT = 0x0002
SEC_VT_COMMAND_HEADER2 = 0x0003
SEC_VT_COMMAND_END = 0x4000
SEC_VT_MUST_PROCESS_COMMAND = 0x8000
CLIENT_SUPPORT_HEADER_SIGNING = 0x00000001

_KIND = 0x3FFF
"""The bits of a command without its two flags, END and MUST_PROCESS."""
_COMMAND = struct.Struct("<HH")
_BITMASK = struct.Struct("<I")
_HEADER2 = struct.Struct("<BBH4sIHH")
_PCONTEXT_LENGTH = 40
"""Octets of two syntax identifiers."""


class TamperedError(RpcFault):
    """The request differs from what the client sent: the connection cannot be trusted any more."""

    def __init__(self, text: str) -> None:
        super().__init__(FaultStatus.RPC_S_ACCESS_DENIED, f"verification trailer: {text}")


def may_be_verified(stub: bytes) -> bool:
    """Whether the octets near the end contain the beginning of a trailer."""
    return stub.find(SIGNATURE, -LARGEST) >= 0


def place(stub: bytes) -> int:
    """Where a verification trailer may begin, or -1; the same octets may be data as well."""
    found = stub.rfind(SIGNATURE, max(0, len(stub) - LARGEST))
    return found if found % 4 == 0 else -1


def verify(trailer: bytes, call: "Call") -> None:
    """Check the commands of a trailer, which begins with its signature, against the request.

    Raises TamperedError if they contradict it, DecodeError for octets that are no trailer, and
    RpcFault RPC_S_ACCESS_DENIED for a command that must be understood and is not.
    """
    offset, command, seen = len(SIGNATURE), 0, set[int]()
    while not command & SEC_VT_COMMAND_END:
        if offset + _COMMAND.size > len(trailer):
            raise DecodeError("the verification trailer has no end", offset)
        command, length = _COMMAND.unpack_from(trailer, offset)
        offset += _COMMAND.size
        value = trailer[offset : offset + length]
        if length % 4 or len(value) < length:
            raise DecodeError(f"a verification command of {length} octets", offset)
        kind = command & _KIND
        if kind in seen:
            raise DecodeError(f"verification command {kind} comes twice", offset)
        seen.add(kind)
        _verify_one(command, value, call)
        offset += length


def _verify_one(command: int, value: bytes, call: "Call") -> None:
    kind = command & _KIND
    if kind in _CHECKS:
        length, check = _CHECKS[kind]
        if len(value) != length:
            raise DecodeError(f"verification command {kind} of {len(value)} octets")
        check(value, call)
    elif command & SEC_VT_MUST_PROCESS_COMMAND:
        raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, f"verification command {kind} is unknown")


def _check_bitmask(value: bytes, call: "Call") -> None:
    """The client offered header signing: an offer that did not arrive was taken out."""
    (bits,) = _BITMASK.unpack(value)
    if bits & CLIENT_SUPPORT_HEADER_SIGNING and not call.association.signs_headers:
        raise TamperedError("header signing was not agreed on")


def _check_pcontext(value: bytes, call: "Call") -> None:
    context = call.context
    interface, transfer_syntax = SyntaxId.unpack(value, 0), SyntaxId.unpack(value, 20)
    if interface != context.abstract_syntax:
        raise TamperedError(f"the interface is {context.abstract_syntax.uuid}")
    if transfer_syntax != context.transfer_syntax:
        raise TamperedError(f"the transfer syntax is {context.transfer_syntax.uuid}")


def _check_header2(value: bytes, call: "Call") -> None:
    kind, _, _, drep, call_id, context_id, opnum = _HEADER2.unpack(value)
    meant = kind, drep[0], call_id, context_id, opnum
    byte_order = 0 if call.big_endian else 0x10
    came = PduType.request, byte_order, call.call_id, call.context.context_id, call.opnum
    if meant != came:
        raise TamperedError("the header was changed")


_CHECKS: dict[int, tuple[int, Callable[[bytes, "Call"], None]]] = {
    SEC_VT_COMMAND_BITMASK_1: (_BITMASK.size, _check_bitmask),
    SEC_VT_COMMAND_PCONTEXT: (_PCONTEXT_LENGTH, _check_pcontext),
    SEC_VT_COMMAND_HEADER2: (_HEADER2.size, _check_header2),
}
