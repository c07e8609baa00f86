"""Several security contexts on one connection, and every level on the wire."""

from pathlib import Path
from typing import Any

import pytest
from impacket import ntlm as impacket_ntlm

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.base.identity import ANONYMOUS, ANONYMOUS_LOGON, Identity
from rpcqm.rpc import pdu
from rpcqm.rpc.constants import WHOLE, AuthenticationLevel, PfcFlags
from rpcqm.rpc.events import CancelIgnored, ProtocolError
from rpcqm.rpc.interface_registry import InterfacePolicy
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.security.context import (
    CONNECT,
    PKT,
    PKT_INTEGRITY,
    PKT_PRIVACY,
    Authentication,
    Credentials,
)
from rpcqm.rpc.security.logon import NO_CLAIM
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.ntlm_protection import NtlmProtection, ProtectionDirection
from rpcqm.rpc.security.providers import security_providers
from rpcqm.rpc.security.spnego import SpnegoCredentials
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc.probe import ProbeResponse, Rig, Wire, alter, bind, ended, is_fault, request
from tests.support.rpc.secured import ALICE, LEVELS, call, log_on, protected

CAROL = NtlmCredentials("carol", PASSWORD, "CORP")
ECHO = 1


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(providers=security_providers(TestAccounts(tmp_path)))


@pytest.fixture
def wire(rig: Rig) -> Wire:
    return rig.connect()


def callers(wire: Wire) -> list[tuple[str, int]]:
    return [(each.identity.name, each.authentication_level) for each in wire.calls]


@pytest.mark.parametrize(
    "credentials", [ALICE, SpnegoCredentials((ALICE,))], ids=["NTLM", "SPNEGO"]
)
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_every_level_on_the_wire(wire: Wire, level: int, credentials: Credentials) -> None:
    """CALL is processed as PKT, and answered as what it is ([MS-RPCE] 2.2.1.1.8)."""
    security = log_on(wire, level, credentials=credentials)
    for call_id, stub in enumerate((b"first", b"second" * 10), 1):
        answer = call(wire, security, ECHO, stub, call_id)
        assert isinstance(answer, pdu.Response)
        assert answer.auth is None if level == 2 else answer.auth is not None
        assert answer.auth is None or answer.auth.auth_level == level
    assert set(callers(wire)) == {("alice", PKT if level == 3 else level)}


def test_each_call_is_made_under_its_own_context(wire: Wire) -> None:
    contexts = [
        log_on(wire, PKT_PRIVACY, 1),
        log_on(wire, PKT_INTEGRITY, 2, CAROL, first=False),
        log_on(wire, CONNECT, 3, SpnegoCredentials((CAROL,)), first=False),
        log_on(wire, PKT_PRIVACY, 4, SpnegoCredentials((ALICE,)), first=False),
    ]
    order = (3, 0, 1, 1, 2, 0, 3)
    for call_id, number in enumerate(order, 1):
        if number == 2:
            dummy = pdu.SecurityTrailer(9, CONNECT, 3, b"\x01" + bytes(15))
            answer = wire.call(ECHO, b"octets", call_id, auth=dummy)
        else:
            answer = call(wire, contexts[number], ECHO, b"octets", call_id)
        assert isinstance(answer, pdu.Response)
    who = [("alice", 6), ("carol", 5), ("carol", 2), ("alice", 6)]
    assert callers(wire) == [who[number] for number in order]


def test_answers_are_protected_as_their_requests_were(wire: Wire) -> None:
    sealed, signed = (
        log_on(wire, PKT_PRIVACY, 1),
        log_on(wire, PKT_INTEGRITY, 2, CAROL, first=False),
    )
    wire.association.receive_data(protected(sealed, 2, b"a", 1) + protected(signed, 2, b"b", 2))
    for completion, context, number in zip(
        reversed(wire.rig.handlers.waiting), (signed, sealed), (2, 1), strict=True
    ):
        completion.succeed(ProbeResponse(octets=b"done"))
        octets = wire.association.data_to_send()
        answer = pdu.unpack(octets)
        assert answer.auth is not None
        assert answer.auth.auth_context_id == number
        stub = context.unprotect(octets, pdu.RESPONSE_LENGTH, 16)
        assert stub == b"done" + bytes(4)


# Requests without a trailer ([MS-RPCE] 3.3.1.5.4).


def test_the_only_context_stands_for_plain_requests_at_connect_level(wire: Wire) -> None:
    wire.bind()
    log_on(wire, CONNECT, 7, first=False)
    wire.call(ECHO)
    assert callers(wire) == [("alice", CONNECT)]


def test_of_several_callers_none_stands_for_plain_requests(wire: Wire) -> None:
    log_on(wire, CONNECT, 1)
    log_on(wire, CONNECT, 2, CAROL, first=False)
    wire.call(ECHO)
    assert wire.calls[0].identity.sid == ANONYMOUS_LOGON
    assert wire.calls[0].authentication_level == 1


def test_one_caller_may_authenticate_twice(wire: Wire) -> None:
    """impacket does for every interface, and sends no trailers at CONNECT level."""
    log_on(wire, CONNECT, 1)
    log_on(wire, CONNECT, 2, first=False)
    wire.call(ECHO)
    assert callers(wire) == [("alice", CONNECT)]


def test_a_handshake_in_progress_changes_nothing_for_plain_requests(wire: Wire) -> None:
    log_on(wire, CONNECT, 1)
    token = CAROL.authentication(CONNECT).begin().step(b"")
    wire.send(alter(auth=pdu.SecurityTrailer(10, CONNECT, 2, token)))
    wire.call(ECHO)
    assert callers(wire) == [("alice", CONNECT)]


@pytest.mark.parametrize("level", [PKT, PKT_INTEGRITY, PKT_PRIVACY])
def test_a_signing_context_beside_the_bind_leaves_plain_requests_alone(
    wire: Wire, level: int
) -> None:
    wire.bind()
    security = log_on(wire, level, 1, first=False)
    wire.call(ECHO)
    call(wire, security, ECHO, call_id=2)
    assert callers(wire) == [("ANONYMOUS LOGON", 1), ("alice", level)]


# What ends the connection.


def test_another_contexts_signature_ends_the_connection(wire: Wire) -> None:
    """Its signature is right, but not that of the context whose number it bears."""
    log_on(wire, PKT_INTEGRITY, 1)
    other = log_on(wire, PKT_INTEGRITY, 2, CAROL, first=False)
    octets = bytearray(protected(other, ECHO, b"octets"))
    octets[-16 - 4 : -16] = (1).to_bytes(4, "little")
    (fault,) = wire.send(bytes(octets))
    assert is_fault(fault, FaultStatus.RPC_S_SEC_PKG_ERROR)
    assert ended(wire)
    assert wire.calls == []


def test_a_fragment_of_another_context_ends_the_connection(wire: Wire) -> None:
    first, last = PfcFlags.PFC_FIRST_FRAG, PfcFlags.PFC_LAST_FRAG
    one = log_on(wire, PKT_INTEGRITY, 1)
    other = log_on(wire, PKT_INTEGRITY, 2, CAROL, first=False)
    assert wire.send(protected(one, ECHO, b"x" * 16, flags=first)) == []
    (fault,) = wire.send(protected(other, ECHO, b"y" * 16, flags=last))
    assert is_fault(fault, FaultStatus.RPC_S_SEC_PKG_ERROR)
    assert ended(wire)


@pytest.mark.parametrize("level", [PKT, PKT_INTEGRITY, PKT_PRIVACY])
def test_a_replay_ends_the_connection(wire: Wire, level: int) -> None:
    octets = protected(log_on(wire, level), ECHO, b"octets")
    (answer,) = wire.send(octets)
    assert isinstance(answer, pdu.Response)
    (fault,) = wire.send(octets)
    assert is_fault(fault, FaultStatus.RPC_S_SEC_PKG_ERROR)
    assert ended(wire)
    assert isinstance(wire.events[-1], ProtocolError)


def test_a_signed_request_of_a_sealing_context_ends_the_connection(wire: Wire) -> None:
    """Somebody took the level down in the trailer."""
    security = log_on(wire, PKT_PRIVACY)
    octets = bytearray(protected(security, ECHO, b"octets"))
    octets[-16 - 8 + 1] = PKT_INTEGRITY
    (fault,) = wire.send(bytes(octets))
    assert is_fault(fault, FaultStatus.RPC_S_ACCESS_DENIED)
    assert ended(wire)


def test_a_plain_request_to_a_sealing_context_ends_the_connection(wire: Wire) -> None:
    log_on(wire, PKT_PRIVACY)
    (fault,) = wire.send(request(ECHO, b"octets"))
    assert is_fault(fault, FaultStatus.RPC_S_ACCESS_DENIED)
    assert ended(wire)


@pytest.mark.parametrize("part", [0, 30, -20], ids=["header", "stub data", "trailer"])
@pytest.mark.parametrize("level", [PKT, PKT_INTEGRITY, PKT_PRIVACY])
def test_what_was_changed_ends_the_connection(wire: Wire, level: int, part: int) -> None:
    """The header too: NTLM covers it whether header signing was asked for or not."""
    octets = bytearray(protected(log_on(wire, level), ECHO, b"octets" * 4))
    octets[part if part else 22] ^= 1  # the opnum
    (fault,) = wire.send(bytes(octets))
    assert isinstance(fault, pdu.Fault)
    assert fault.status in (FaultStatus.RPC_S_SEC_PKG_ERROR, FaultStatus.RPC_S_ACCESS_DENIED)
    assert ended(wire)
    assert wire.calls == []


def test_a_context_that_protects_nothing_more_ends_the_connection(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Kerberos ticket ends while the call goes on."""
    security = log_on(wire, PKT_PRIVACY)
    assert wire.send(protected(security, 2, b"waits")) == []

    def expired(*segments: bytes) -> bytes:
        raise RpcFault(FaultStatus.RPC_S_SEC_PKG_ERROR, "the ticket has expired")

    monkeypatch.setattr(NtlmProtection, "seal", expired)
    wire.rig.handlers.waiting[0].succeed(ProbeResponse(octets=b"done"))
    (fault,) = wire.received()
    assert is_fault(fault, FaultStatus.RPC_S_SEC_PKG_ERROR)
    assert ended(wire)


# Anonymous.


def test_an_anonymous_caller_that_seals_counts_as_one_that_does_not(tmp_path: Path) -> None:
    policy = InterfacePolicy(minimum_level=PKT_PRIVACY)
    rig = Rig(providers=security_providers(TestAccounts(tmp_path)), policy=policy)
    wire = rig.connect()
    security = log_on(wire, PKT_PRIVACY, credentials=Nobody())
    answer = call(wire, security, ECHO)
    assert is_fault(answer, FaultStatus.RPC_S_ACCESS_DENIED, WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE)
    assert not ended(wire)


@pytest.mark.parametrize("level", [CONNECT, PKT, PKT_INTEGRITY, PKT_PRIVACY])
def test_an_anonymous_caller_is_served_where_nobody_need_be_known(wire: Wire, level: int) -> None:
    security = log_on(wire, level, credentials=Nobody())
    for call_id in (1, 2):
        assert isinstance(call(wire, security, ECHO, b"octets", call_id), pdu.Response)
    assert set(callers(wire)) == {("ANONYMOUS LOGON", 1)}


class Nobody:
    """Credentials of a client that has none, by impacket's messages."""

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        return Authentication(10, level, Anonymous)


class Anonymous:
    claim = NO_CLAIM

    def __init__(self) -> None:
        self.complete = False
        self._first: Any = None
        self._flags = 0
        self._key = b""

    def step(self, token: bytes) -> bytes:
        if not token:
            self._first = impacket_ntlm.getNTLMSSPType1("", "", signingRequired=True)
            return bytes(self._first.getData())
        message, self._key = impacket_ntlm.getNTLMSSPType3(self._first, token, "", "", "")
        self._flags, self.complete = message["flags"], True
        return bytes(message.getData())

    def protection(self, level: AuthenticationLevel) -> NtlmProtection:
        return NtlmProtection(self._flags, self._key, ProtectionDirection.CLIENT)

    def peer(self) -> Identity:
        return ANONYMOUS


# Long tokens.

LARGEST = Limits().token_size


def bound_octets(kind: str, trailer: pdu.SecurityTrailer) -> bytes:
    """A PDU that carries a token."""
    if kind == "auth3":
        return pdu.Auth3(call_id=0, auth=trailer).pack()
    return bind(auth=trailer) if kind == "bind" else alter(auth=trailer)


@pytest.mark.bound("rpc.token_size")
@pytest.mark.parametrize("kind", ["bind", "alter_context", "auth3"])
@pytest.mark.parametrize("more", [0, 4])
def test_tokens_longer_than_a_fragment_are_looked_at(wire: Wire, kind: str, more: int) -> None:
    """A ticket has the groups of its owner in it; no PDU of authentication is fragmented."""
    if kind != "bind":
        token = ALICE.authentication(PKT_PRIVACY).begin().step(b"")
        wire.bind(auth=pdu.SecurityTrailer(10, PKT_PRIVACY, 1, token))
    rest = len(bound_octets(kind, pdu.SecurityTrailer(10, PKT_PRIVACY, 1, bytes(4)))) - 4
    trailer = pdu.SecurityTrailer(10, PKT_PRIVACY, 1, bytes(LARGEST - rest + more))
    octets = bound_octets(kind, trailer)
    assert len(octets) == LARGEST + more
    wire.send(octets)
    reason = f"a fragment of {len(octets)} octets" if more else "NTLM"
    assert reason in str(wire.events[-1])


@pytest.mark.bound("rpc.fragment_size")
@pytest.mark.parametrize("more", [0, 8])
def test_requests_are_not_longer_than_a_fragment(wire: Wire, more: int) -> None:
    wire.bind()
    (answer,) = wire.send(request(0, bytes(5840 - pdu.REQUEST_LENGTH + more)))
    assert isinstance(answer, pdu.Fault if more else pdu.Response)
    assert ended(wire) is bool(more)


# Cancels.


@pytest.mark.parametrize("kind", [pdu.CoCancel, pdu.Orphaned])
def test_an_unsigned_cancel_does_nothing_to_a_sealed_call(wire: Wire, kind: Any) -> None:
    security = log_on(wire, PKT_PRIVACY)
    assert wire.send(protected(security, 2, b"waits", call_id=7)) == []
    assert wire.send(kind(call_id=7).pack()) == []
    assert isinstance(wire.events[-1], CancelIgnored)
    assert not wire.calls[0].cancelled
    assert not wire.calls[0].abandoned
    assert wire.send(security.protect(kind.ptype, WHOLE, 7, b"", b"")) == []
    assert wire.calls[0].cancelled or wire.calls[0].abandoned
