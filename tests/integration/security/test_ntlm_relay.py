"""A man in the middle of NTLM passes the victim's messages on, changed, and speaks as the victim.

His connection is a real one, and the victims are clients that sign and seal. Whatever he does, he
may not get a session in which he can say anything.
"""

from typing import Any

import pytest

from rpcqm.base.errors import RpcFault
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import (
    CONNECT,
    PKT_INTEGRITY,
    PKT_PRIVACY,
    AuthenticationError,
    Credentials,
)
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.ntlm_messages import MIC, AvId, with_integrity_code
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags
from rpcqm.rpc.security.spnego import SpnegoCredentials
from tests.support.accounts import PASSWORD
from tests.support.rpc.impacket_ntlm import ImpacketCredentials
from tests.support.rpc.probe import ProbeHandlers
from tests.support.rpc.probe_server import call
from tests.support.rpc.relayed import (
    VICTIMS,
    Attack,
    RelayedCredentials,
    with_flags,
    with_key,
    with_new_code,
    without_code,
    without_pair,
)
from tests.support.rpc.rpc_server import RunningServer

Flag = NegotiateFlags


def is_kept_out(
    server: RunningServer,
    handlers: ProbeHandlers,
    credentials: Credentials,
    level: AuthenticationLevel = PKT_PRIVACY,
) -> bool:
    """Whether the log-on itself is refused, and no call is served."""
    refused = r"RPC_S_ACCESS_DENIED|fault 0x00000005|rejected with reason 9"
    with pytest.raises((RpcFault, AuthenticationError), match=refused):
        call(server, credentials, level)
    return not handlers.calls


@pytest.mark.parametrize(
    "credentials",
    [
        pytest.param(NtlmCredentials("alice", PASSWORD), id="ours"),
        pytest.param(ImpacketCredentials("alice", PASSWORD), id="impacket"),
        pytest.param(SpnegoCredentials((NtlmCredentials("alice", PASSWORD),)), id="SPNEGO"),
    ],
)
def test_without_an_attacker_victims_log_on(
    server: RunningServer, handlers: ProbeHandlers, credentials: Credentials
) -> None:
    assert call(server, credentials) == b"x"
    assert handlers.calls[0].identity.name == "alice"


def empty_key(message: bytes, negotiate: bytes, challenge: bytes) -> bytes:
    """Of nothing, RC4 makes nothing: everybody knows that session key."""
    return with_new_code(with_key(message, b""), negotiate, challenge, b"")


def empty_key_without_code(message: bytes, negotiate: bytes, challenge: bytes) -> bytes:
    return with_key(without_code(message), b"")


def long_key(message: bytes, negotiate: bytes, challenge: bytes) -> bytes:
    return with_key(message, bytes(17))


@pytest.mark.parametrize("wrapped", [False, True], ids=["NTLM", "SPNEGO"])
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("change", [empty_key, empty_key_without_code, long_key])
def test_a_session_key_that_the_attacker_chooses_is_refused(
    server: RunningServer, handlers: ProbeHandlers, victim: str, change: Any, wrapped: bool
) -> None:
    attack = Attack(authenticate=change)
    assert is_kept_out(server, handlers, RelayedCredentials(VICTIMS[victim], attack, wrapped))


def blank_code(message: bytes, negotiate: bytes, challenge: bytes) -> bytes:
    return with_integrity_code(message, bytes(16))


def no_code(message: bytes, negotiate: bytes, challenge: bytes) -> bytes:
    return without_code(message)


def code_over_a_field(message: bytes, negotiate: bytes, challenge: bytes) -> bytes:
    """The workstation's name is said to be where the code is."""
    return message[:48] + MIC.start.to_bytes(4, "little") + message[52:]


def another_workstation(message: bytes, negotiate: bytes, challenge: bytes) -> bytes:
    """What the code covers and the proof does not."""
    return message[:44] + bytes(8) + message[52:]


@pytest.mark.parametrize("wrapped", [False, True], ids=["NTLM", "SPNEGO"])
@pytest.mark.parametrize("victim", ["ours", "pyspnego"])
@pytest.mark.parametrize("change", [blank_code, no_code, code_over_a_field, another_workstation])
@pytest.mark.parametrize("level", [CONNECT, PKT_PRIVACY], ids=lambda level: level.name)
def test_an_integrity_code_that_was_promised_must_be_there_and_right(
    server: RunningServer,
    handlers: ProbeHandlers,
    victim: str,
    change: Any,
    level: AuthenticationLevel,
    wrapped: bool,
) -> None:
    attack = Attack(authenticate=change)
    credentials = RelayedCredentials(VICTIMS[victim], attack, wrapped)
    assert is_kept_out(server, handlers, credentials, level)


def no_promise(message: bytes, negotiate: bytes, challenge: bytes) -> bytes:
    """MsvAvFlags, which the proof covers, without the bit that promises the code."""
    promise = bytes.fromhex("0600040002000000")
    assert promise in message
    return without_code(message.replace(promise, bytes.fromhex("0600040000000000")))


@pytest.mark.parametrize("victim", ["ours", "pyspnego"])
def test_the_promise_cannot_be_taken_back(
    server: RunningServer, handlers: ProbeHandlers, victim: str
) -> None:
    credentials = RelayedCredentials(VICTIMS[victim], Attack(authenticate=no_promise))
    assert is_kept_out(server, handlers, credentials, CONNECT)


@pytest.mark.parametrize("pair", [AvId.MsvAvTimestamp, AvId.MsvAvNbComputerName])
@pytest.mark.parametrize("victim", VICTIMS)
def test_target_information_that_was_changed_is_noticed(
    server: RunningServer, handlers: ProbeHandlers, victim: str, pair: AvId
) -> None:
    """Without the timestamp pyspnego, for example, makes no integrity code."""
    attack = Attack(challenge=lambda token: without_pair(token, pair))
    with pytest.raises((RpcFault, AuthenticationError)):
        call(server, RelayedCredentials(VICTIMS[victim], attack), CONNECT)
    assert not handlers.calls


DOWNGRADES = [
    Flag.NTLMSSP_NEGOTIATE_128,
    Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY,
    Flag.NTLMSSP_NEGOTIATE_SEAL,
    Flag.NTLMSSP_NEGOTIATE_SIGN,
    Flag.NTLMSSP_NEGOTIATE_KEY_EXCH,
    Flag.NTLMSSP_NEGOTIATE_SEAL | Flag.NTLMSSP_NEGOTIATE_SIGN,
]


@pytest.mark.parametrize("taken", DOWNGRADES, ids=lambda flags: f"{int(flags):#x}")
@pytest.mark.parametrize("level", [CONNECT, PKT_INTEGRITY], ids=lambda level: level.name)
def test_flags_that_were_agreed_on_are_not_taken_back(
    server: RunningServer, handlers: ProbeHandlers, taken: int, level: AuthenticationLevel
) -> None:
    attack = Attack(authenticate=lambda message, *_: with_flags(message, take=taken), key=bytes(16))
    credentials = RelayedCredentials(VICTIMS["impacket"], attack)
    assert is_kept_out(server, handlers, credentials, level)


@pytest.mark.parametrize(
    "added", [Flag.NTLMSSP_NEGOTIATE_LM_KEY, Flag.NTLMSSP_NEGOTIATE_DATAGRAM], ids=lambda f: f.name
)
def test_flags_that_were_not_offered_are_not_added(
    server: RunningServer, handlers: ProbeHandlers, added: int
) -> None:
    attack = Attack(authenticate=lambda message, *_: with_flags(message, add=added))
    credentials = RelayedCredentials(VICTIMS["impacket"], attack)
    assert is_kept_out(server, handlers, credentials, CONNECT)


@pytest.mark.parametrize(
    "taken",
    [Flag.NTLMSSP_NEGOTIATE_128, Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY],
    ids=lambda flags: flags.name,
)
def test_a_weak_key_is_not_even_begun_with(
    server: RunningServer, handlers: ProbeHandlers, taken: int
) -> None:
    attack = Attack(negotiate=lambda message: with_flags(message, take=taken))
    credentials = RelayedCredentials(VICTIMS["impacket"], attack)
    assert is_kept_out(server, handlers, credentials, CONNECT)
