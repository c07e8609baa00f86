"""A handshake that is not gone on with is what its connection owes, whichever it is."""

from dataclasses import replace
from pathlib import Path

import pytest

from rpcqm.base.identity import Identity, Validity, authenticated
from rpcqm.rpc import pdu
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import CONNECT, PKT_PRIVACY, MessageProtection
from rpcqm.rpc.security.logon import NO_CLAIM
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmInitiator, NtlmProvider
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc.probe import Rig, Wire, alter, bind

NTLM = 10


def leg(context_id: int, token: bytes) -> pdu.SecurityTrailer:
    return pdu.SecurityTrailer(NTLM, PKT_PRIVACY, context_id, token)


@pytest.fixture
def wire(tmp_path: Path) -> Wire:
    return Rig(providers={NTLM: NtlmProvider(TestAccounts(tmp_path))}).connect()


def test_each_handshake_is_owed_until_it_has_ended(wire: Wire) -> None:
    first, second = (
        NtlmInitiator(NtlmCredentials("alice", PASSWORD), PKT_PRIVACY) for _ in range(2)
    )
    (ack,) = wire.send(bind(auth=leg(1, first.step(b""))))
    assert isinstance(ack, pdu.BindAck)
    assert ack.auth is not None
    assert wire.association.unfinished is not None
    wire.send(pdu.Auth3(call_id=0, auth=leg(1, first.step(ack.auth.auth_value))).pack())
    assert wire.association.unfinished is None
    (answer,) = wire.send(alter(auth=leg(2, second.step(b""))))
    assert isinstance(answer, pdu.AlterContextResp)
    assert wire.association.unfinished is not None
    assert answer.auth is not None
    wire.send(alter(auth=leg(2, second.step(answer.auth.auth_value))))
    assert wire.association.unfinished is None


def test_a_handshake_that_failed_is_not_owed(wire: Wire) -> None:
    first = NtlmInitiator(NtlmCredentials("alice", "a wrong password"), PKT_PRIVACY)
    (ack,) = wire.send(bind(auth=leg(1, first.step(b""))))
    assert isinstance(ack, pdu.BindAck)
    assert ack.auth is not None
    wire.send(pdu.Auth3(call_id=0, auth=leg(1, first.step(ack.auth.auth_value))).pack())
    assert wire.association.unfinished is None


class Proved:
    """A handshake of two legs, whose account ends between them."""

    claim, complete = NO_CLAIM, False

    def __init__(self) -> None:
        self.identity = authenticated("alice", "S-1-5-21-1-2-3-1000", validity=Validity())

    def step(self, token: bytes) -> bytes:
        self.complete = token == b"last"
        self.identity.validity.ended = self.complete
        return b"" if self.complete else b"go on"

    def protection(self, level: AuthenticationLevel) -> MessageProtection:
        raise NotImplementedError

    def peer(self) -> Identity:
        return self.identity


class Provider:
    principal_name = ""

    def accept(self, level: AuthenticationLevel, address: str = "") -> Proved:
        return Proved()


def test_an_account_that_ends_before_its_handshake_does_is_not_logged_on() -> None:
    wire = Rig(providers={NTLM: Provider()}).connect()
    trailer = pdu.SecurityTrailer(NTLM, CONNECT, 1, b"first")
    (ack,) = wire.send(bind(auth=trailer))
    assert isinstance(ack, pdu.BindAck)
    wire.send(pdu.Auth3(call_id=0, auth=replace(trailer, auth_value=b"last")).pack())
    assert not wire.association.authenticated
    assert not wire.association.negotiated.security.has_caller("S-1-5-21-1-2-3-1000")
