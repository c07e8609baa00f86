"""NTLM in SPNEGO by impacket's classes, and what impacket writes into the trailers of its PDUs.

impacket's RPC takes Kerberos for authentication type 9, and NTLM for type 10 only. Its bind by
type 10 is led here to put the same messages of its NTLM into the tokens of its SPNEGO, to call that
type 9, and to send the last one by alter_context: SPNEGO has an answer to it.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from impacket import ntlm, spnego
from impacket.dcerpc.v5 import rpcrt, transport

NTLM, SPNEGO = rpcrt.RPC_C_AUTHN_WINNT, rpcrt.RPC_C_AUTHN_GSS_NEGOTIATE


def sent_trailers(patch: pytest.MonkeyPatch, renamed: bool = False) -> set[tuple[int, int]]:
    """The authentication types and levels of all that impacket sends and reads from now on.

    `renamed`: NTLM is called SPNEGO there.
    """
    sent: set[tuple[int, int]] = set()

    kind = ("auth_type", NTLM)

    class Trailer(rpcrt.SEC_TRAILER):  # type: ignore[misc]
        def __setitem__(self, key: str, value: int) -> None:
            super().__setitem__(key, SPNEGO if renamed and (key, value) == kind else value)
            if key == "auth_level":
                sent.add((self["auth_type"], value))

    patch.setattr(rpcrt, "SEC_TRAILER", Trailer)
    return sent


_SEND = transport.TCPTransport.send


class _First(bytes):
    """A NegTokenInit, and the NEGOTIATE_MESSAGE in it."""

    message: Any


class _Last:
    """An AUTHENTICATE_MESSAGE in a NegTokenResp, where impacket expects it alone."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def __getitem__(self, name: str) -> Any:
        return self._message[name]

    def getData(self) -> bytes:
        token = spnego.SPNEGO_NegTokenResp()
        token["ResponseToken"] = self._message.getData()
        octets: bytes = token.getData()
        return octets


def _first(*arguments: Any, **options: Any) -> _First:
    message = ntlm.getNTLMSSPType1(*arguments, **options)
    token = spnego.SPNEGO_NegTokenInit()
    token["MechTypes"] = [spnego.TypesMech["NTLMSSP - Microsoft NTLM Security Support Provider"]]
    token["MechToken"] = message.getData()
    made = _First(token.getData())
    made.message = message
    return made


def _last(first: _First, answer: bytes, *arguments: Any, **options: Any) -> tuple[_Last, bytes]:
    challenge = spnego.SPNEGO_NegTokenResp(answer)["ResponseToken"]
    message, key = ntlm.getNTLMSSPType3(first.message, challenge, *arguments, **options)
    return _Last(message), key


def _send(self: Any, octets: bytes, **options: Any) -> None:
    """Send a PDU; the last leg with what was proposed before, and read what answers it."""
    packet = rpcrt.MSRPCHeader(octets)
    if packet["type"] in (rpcrt.MSRPC_BIND, rpcrt.MSRPC_ALTERCTX):
        self.proposed = packet["pduData"], packet["sec_trailer"]
    if packet["type"] != rpcrt.MSRPC_AUTH3:
        _SEND(self, octets, **options)
        return
    alter = rpcrt.MSRPCHeader()
    alter["type"], alter["call_id"] = rpcrt.MSRPC_ALTERCTX, packet["call_id"]
    alter["pduData"], alter["sec_trailer"] = self.proposed
    alter["auth_data"] = packet["auth_data"]
    _SEND(self, alter.get_packet(), **options)
    answer = rpcrt.MSRPCBindAck(self.recv())
    if answer["type"] != rpcrt.MSRPC_ALTERCTX_R:
        raise rpcrt.DCERPCException("rpc_s_access_denied")


def negotiate_ntlm(patch: pytest.MonkeyPatch) -> set[tuple[int, int]]:
    """Let impacket negotiate NTLM; the types and levels of its trailers."""
    negotiating = {"getNTLMSSPType1": _first, "getNTLMSSPType3": _last}
    patch.setattr(rpcrt, "ntlm", SimpleNamespace(**(vars(ntlm) | negotiating)))
    patch.setattr(transport.TCPTransport, "send", _send)
    return sent_trailers(patch, renamed=True)
