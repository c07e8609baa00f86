"""Verification trailers ([MS-RPCE] 2.2.2.13): those that agree, those that do not, other octets."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from rpcqm.base.errors import FaultStatus
from rpcqm.rpc import pdu
from rpcqm.rpc.constants import WHOLE, PfcFlags
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR, NDR64
from rpcqm.rpc.security.context import PKT_INTEGRITY, PKT_PRIVACY, SecurityContext
from rpcqm.rpc.security.ntlm import NtlmProvider
from rpcqm.rpc.security.verification import SIGNATURE
from tests.support.accounts import TestAccounts
from tests.support.rpc.probe import (
    OTHER,
    PROBE,
    ProbeHandlers,
    Rig,
    Wire,
    element,
    ended,
    is_fault,
    request,
)
from tests.support.rpc.secured import call, log_on, protected

NOT_EXECUTED = WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE
HEADER_SIGN = WHOLE | PfcFlags.PFC_SUPPORT_HEADER_SIGN
BITMASK, PCONTEXT, HEADER2, END, MUST = 1, 2, 3, 0x4000, 0x8000
ECHO, USE = 1, 5
STUB = b"octets!!"


@pytest.fixture
def wire(tmp_path: Path) -> Wire:
    return Rig(providers={10: NtlmProvider(TestAccounts(tmp_path))}).connect()


@pytest.fixture
def security(wire: Wire) -> SecurityContext:
    return log_on(wire, PKT_PRIVACY, flags=HEADER_SIGN)


def command(kind: int, value: bytes) -> bytes:
    return struct.pack("<HH", kind, len(value)) + value


def bitmask(bits: int = 1) -> bytes:
    return struct.pack("<I", bits)


def pcontext(abstract: SyntaxId = PROBE, transfer: SyntaxId = NDR) -> bytes:
    return abstract.pack() + transfer.pack()


def header2(
    kind: int = 0, drep: int = 0x10, call_id: int = 1, context_id: int = 0, opnum: int = ECHO
) -> bytes:
    return struct.pack("<BBH4sIHH", kind, 7, 7, bytes([drep, 0, 0, 0]), call_id, context_id, opnum)


def trailer(*commands: bytes) -> bytes:
    return SIGNATURE + b"".join(commands)


ALL = trailer(
    command(BITMASK, bitmask()), command(HEADER2, header2()), command(PCONTEXT | END, pcontext())
)


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(trailer(command(BITMASK | END, bitmask())), id="bitmask"),
        pytest.param(trailer(command(BITMASK | END, bitmask(0xFFFFFFFF))), id="unknown bits"),
        pytest.param(trailer(command(PCONTEXT | END, pcontext())), id="pcontext"),
        pytest.param(trailer(command(HEADER2 | END | MUST, header2())), id="header2"),
        pytest.param(ALL, id="all of them"),
        pytest.param(trailer(command(77, b"1234"), command(BITMASK | END, bitmask())), id="more"),
        pytest.param(b"\0" * 12 + ALL, id="after padding"),
    ],
)
def test_what_agrees_is_taken_off(wire: Wire, security: SecurityContext, octets: bytes) -> None:
    answer = call(wire, security, ECHO, STUB + octets)
    assert isinstance(answer, pdu.Response)
    (received,) = wire.rig.handlers.calls
    assert received.stub_data.startswith(STUB)
    assert answer.alloc_hint == len(STUB) + (12 if octets[0] == 0 else 0) + 4


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(command(PCONTEXT | END, pcontext(OTHER)), id="interface"),
        pytest.param(command(PCONTEXT | END, pcontext(replace(PROBE, minor=0))), id="version"),
        pytest.param(command(PCONTEXT | END, pcontext(transfer=NDR64)), id="transfer syntax"),
        pytest.param(command(HEADER2 | END, header2(kind=2)), id="PDU type"),
        pytest.param(command(HEADER2 | END, header2(drep=0)), id="drep"),
        pytest.param(command(HEADER2 | END, header2(call_id=9)), id="call"),
        pytest.param(command(HEADER2 | END, header2(context_id=1)), id="context"),
        pytest.param(command(HEADER2 | END, header2(opnum=0)), id="opnum"),
    ],
)
def test_what_was_changed_on_the_way_ends_the_connection(
    wire: Wire, security: SecurityContext, octets: bytes
) -> None:
    answer = call(wire, security, ECHO, STUB + trailer(octets))
    assert is_fault(answer, FaultStatus.RPC_S_ACCESS_DENIED, NOT_EXECUTED)
    assert ended(wire)
    assert wire.rig.handlers.calls == []


def test_an_offer_of_header_signing_that_was_taken_out_ends_the_connection(wire: Wire) -> None:
    security = log_on(wire, PKT_INTEGRITY, flags=WHOLE)
    answer = call(wire, security, ECHO, STUB + trailer(command(BITMASK | END, bitmask())))
    assert is_fault(answer, FaultStatus.RPC_S_ACCESS_DENIED, NOT_EXECUTED)
    assert ended(wire)


def test_the_interface_is_the_one_that_was_asked_for(wire: Wire) -> None:
    """An older minor version than the one that is served."""
    asked = replace(PROBE, minor=1)
    wire.bind(p_context_elem=(element(3, asked),))
    security = log_on(wire, PKT_INTEGRITY, 1, first=False)
    stub = STUB + trailer(command(PCONTEXT | END, pcontext(asked)))
    (answer,) = wire.send(protected(security, ECHO, stub, p_cont_id=3))
    assert isinstance(answer, pdu.Response)


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"", id="no command"),
        pytest.param(command(BITMASK, bitmask()), id="no end"),
        pytest.param(command(BITMASK | END, bitmask() * 2), id="a long bitmask"),
        pytest.param(command(PCONTEXT | END, pcontext()[:-4]), id="a short pcontext"),
        pytest.param(command(HEADER2 | END, header2() + bytes(4)), id="a long header2"),
        pytest.param(command(77 | END, b"123"), id="an odd length"),
        pytest.param(struct.pack("<HH", 77 | END, 40) + b"1234", id="cut off"),
        pytest.param(command(BITMASK, bitmask()) + command(BITMASK | END, bitmask()), id="twice"),
    ],
)
def test_a_senseless_trailer_is_bad_stub_data(
    wire: Wire, security: SecurityContext, octets: bytes
) -> None:
    answer = call(wire, security, ECHO, STUB + trailer(octets))
    assert is_fault(answer, FaultStatus.RPC_X_BAD_STUB_DATA, NOT_EXECUTED)
    assert not ended(wire)


def test_an_unknown_command_that_must_be_understood(wire: Wire, security: SecurityContext) -> None:
    answer = call(wire, security, ECHO, STUB + trailer(command(77 | MUST | END, b"")))
    assert is_fault(answer, FaultStatus.RPC_S_ACCESS_DENIED, NOT_EXECUTED)
    assert not ended(wire)


def test_the_same_octets_inside_the_data_are_data(wire: Wire, security: SecurityContext) -> None:
    """The operation needs a handle of 20 octets, which these belong to."""
    answer = call(wire, security, USE, trailer(command(PCONTEXT | END, pcontext(OTHER))))
    assert is_fault(answer, FaultStatus.nca_s_fault_context_mismatch, NOT_EXECUTED)
    assert not ended(wire)


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_the_same_octets_where_no_trailer_may_be_are_data(
    wire: Wire, security: SecurityContext, shift: int
) -> None:
    wrong = trailer(command(PCONTEXT | END, pcontext(OTHER)))
    assert isinstance(call(wire, security, ECHO, b"x" * shift + wrong), pdu.Response)


def test_without_authentication_there_is_no_trailer(wire: Wire) -> None:
    wire.bind()
    wrong = STUB + trailer(command(PCONTEXT | END, pcontext(OTHER)))
    (answer,) = wire.send(request(ECHO, wrong))
    assert isinstance(answer, pdu.Response)
    assert answer.stub_data.startswith(wrong)


def test_the_last_fragment_carries_it(wire: Wire, security: SecurityContext) -> None:
    first, last = PfcFlags.PFC_FIRST_FRAG, PfcFlags.PFC_LAST_FRAG
    wrong = trailer(command(HEADER2 | END, header2(opnum=0)))
    assert wire.send(protected(security, ECHO, STUB, flags=first)) == []
    (answer,) = wire.send(protected(security, ECHO, STUB + wrong, flags=last))
    assert is_fault(answer, FaultStatus.RPC_S_ACCESS_DENIED, NOT_EXECUTED)


def test_handlers_are_not_disturbed(wire: Wire, security: SecurityContext) -> None:
    handlers: ProbeHandlers = wire.rig.handlers
    for call_id in (1, 2):
        call(
            wire,
            security,
            ECHO,
            STUB + trailer(command(HEADER2 | END, header2(call_id=call_id))),
            call_id,
        )
    assert [each.call_id for each in handlers.calls] == [1, 2]
