"""A man in the middle: he passes a victim's tokens on, changes them, and speaks as the victim."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

import spnego
from spnego._spnego import NegTokenInit, NegTokenResp

from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.security import ntlm_messages as messages
from rpcqm.rpc.security.context import PKT_PRIVACY, Authentication
from rpcqm.rpc.security.logon import NO_CLAIM
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmInitiator
from rpcqm.rpc.security.ntlm_protection import NtlmProtection, ProtectionDirection
from rpcqm.rpc.security.spnego import NTLM
from rpcqm.rpc.security.spnego_tokens import unpack_token
from tests.support.accounts import PASSWORD
from tests.support.rpc.impacket_ntlm import ImpacketCredentials

Step = Callable[[bytes], bytes]


def our_client() -> Step:
    """Our own client, which asks for signing and sealing."""
    return NtlmInitiator(NtlmCredentials("alice", PASSWORD), PKT_PRIVACY).step


def pyspnego_client() -> Step:
    """pyspnego's, which makes an integrity code when it sees a timestamp."""
    client = spnego.client("alice", PASSWORD, protocol="ntlm")
    return lambda token: client.step(token or None) or b""


def impacket_client() -> Step:
    """impacket's, which never makes an integrity code."""
    credentials = ImpacketCredentials("alice", PASSWORD)
    return credentials.authentication(PKT_PRIVACY).begin().step


VICTIMS = {"ours": our_client, "pyspnego": pyspnego_client, "impacket": impacket_client}


@dataclass(frozen=True)
class Attack:
    """What is done to each message on its way; `authenticate` is also told the two before it."""

    negotiate: Step = bytes
    challenge: Step = bytes
    authenticate: Callable[[bytes, bytes, bytes], bytes] = lambda octets, *_: octets
    key: bytes = b""
    """The session key that the attacker hopes for."""


@dataclass(frozen=True)
class RelayedCredentials:
    """Logs on as a victim whose tokens come by; inside SPNEGO when `wrapped`."""

    victim: Callable[[], Step]
    attack: Attack
    wrapped: bool = False

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        """How the attacker authenticates at a level."""
        kind = AuthenticationType.RPC_C_AUTHN_WINNT
        if self.wrapped:
            kind = AuthenticationType.RPC_C_AUTHN_GSS_NEGOTIATE
        return Authentication(kind, level, lambda: _Relay(self), odd_legs=not self.wrapped)


class _Relay:
    claim = NO_CLAIM

    def __init__(self, credentials: RelayedCredentials) -> None:
        self._victim = credentials.victim()
        self._attack = credentials.attack
        self._wrapped = credentials.wrapped
        self._seen: list[bytes] = []
        self._flags = 0
        self.complete = False

    def step(self, token: bytes) -> bytes:
        if not self._wrapped:
            return self._ntlm(token)
        if not token:
            return bytes(NegTokenInit([NTLM], mech_token=self._ntlm(b"")).pack())
        answer = unpack_token(token)
        assert isinstance(answer, NegTokenResp)
        if not answer.response_token:
            self.complete = True
            return b""
        return bytes(NegTokenResp(response_token=self._ntlm(answer.response_token)).pack())

    def _ntlm(self, token: bytes) -> bytes:
        """What the attacker sends to the server, for what he has got from it."""
        if not token:
            self._seen.append(self._attack.negotiate(self._victim(b"")))
            return self._seen[0]
        changed = self._attack.challenge(token)
        last = self._attack.authenticate(self._victim(changed), self._seen[0], token)
        self._flags = messages.read_authenticate(last).flags
        self.complete = not self._wrapped
        return last

    def protection(self, level: AuthenticationLevel) -> NtlmProtection:
        return NtlmProtection(self._flags, self._attack.key, ProtectionDirection.CLIENT)

    def peer(self) -> Identity:
        return ANONYMOUS


# What can be done to messages.


def with_flags(message: bytes, take: int = 0, add: int = 0) -> bytes:
    """Any of the three messages with other flags."""
    place = {1: 12, 2: 20, 3: 60}[message[8]]
    (flags,) = struct.unpack_from("<I", message, place)
    return message[:place] + struct.pack("<I", flags & ~take | add) + message[place + 4 :]


def with_key(message: bytes, key: bytes) -> bytes:
    """An AUTHENTICATE message whose EncryptedRandomSessionKey is `key`, put at its end."""
    field = struct.pack("<HHI", len(key), len(key), len(message))
    return message[:52] + field + message[60:] + key


def with_new_code(message: bytes, negotiate: bytes, challenge: bytes, key: bytes) -> bytes:
    """An AUTHENTICATE message whose integrity code is right for a key, if it has one."""
    if messages.read_authenticate(message).payload < messages.MIC.stop:
        return message
    code = messages.integrity_code(key, negotiate, challenge, message)
    return messages.with_integrity_code(message, code)


def without_code(message: bytes) -> bytes:
    """An AUTHENTICATE message from which the octets of the integrity code are cut out."""
    if messages.read_authenticate(message).payload < messages.MIC.stop:
        return message
    head = bytearray(message[: messages.MIC.start])
    for at in range(12, 60, 8):
        length, most, offset = struct.unpack_from("<HHI", head, at)
        struct.pack_into("<HHI", head, at, length, most, max(offset - 16, messages.MIC.start))
    return bytes(head) + message[messages.MIC.stop :]


def without_pair(challenge: bytes, kind: int) -> bytes:
    """A CHALLENGE message whose target information lacks a pair."""
    length, _, offset = struct.unpack_from("<HHI", challenge, 40)
    pairs = messages.read_pairs(challenge[offset : offset + length])
    info = messages.pack_pairs([each for each in pairs if each[0] != kind])
    field = struct.pack("<HHI", len(info), len(info), offset)
    return challenge[:40] + field + challenge[48:offset] + info
