"""NTLM handshakes of version 2 ([MS-NLMP] 3.1.5.1, 3.2.5.1), accounts from an smbpasswd file.

Both sides require extended session security and a key of 128 bits, or of 56 where a switch allows
it. What a man in the middle could gain by changing a message is refused: see `NtlmAcceptor`.
"""

import hmac
import os
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import ANONYMOUS, Identity, folded_name
from rpcqm.codec.security.passwords import nt_hash
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.security import ntlm_messages as messages
from rpcqm.rpc.security.context import (
    CONNECT,
    PKT,
    PKT_PRIVACY,
    Authentication,
    AuthenticationError,
    ProtectionError,
    normalized_level,
)
from rpcqm.rpc.security.logon import NO_CLAIM, LogonClaim, LogonThrottle, NoThrottle, claimed
from rpcqm.rpc.security.ntlm_messages import AvId
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags, NtlmProtection, ProtectionDirection

STRONG, WEAK = 128, 56
"""Bits of a session key: what is required, and what may be allowed for old peers."""


class AccountDirectory(Protocol):
    """The accounts that callers may log on with; the starter of the server injects them."""

    @property
    def user_file(self) -> Path:
        """NT hashes in smbpasswd format, or DOMAIN:user:password lines."""
        ...

    def identity(self, name: str, domain: str) -> Identity | None:
        """The identity of a caller that has proved to be `name`; None refuses the caller.

        `domain` is what the caller claimed.
        """
        ...


@dataclass(frozen=True, slots=True)
class NtlmSettings:
    """What a server says of itself and asks of its clients; its name is the host's by default."""

    computer_name: str = ""
    minimum_bits: int = STRONG


@dataclass(frozen=True, slots=True)
class NtlmCredentials:
    """What a client logs on with: a password or, instead, an NT hash of 16 octets."""

    username: str
    password: str = field(default="", repr=False)
    domain: str = ""
    nt_hash: bytes = field(default=b"", repr=False)
    minimum_bits: int = STRONG

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        """How to authenticate by NTLM at a level."""
        return ntlm(self, level)


_Flag = NegotiateFlags
_PROTECTS = _Flag.NTLMSSP_NEGOTIATE_SIGN | _Flag.NTLMSSP_NEGOTIATE_SEAL
_SUPPORTED = (
    _PROTECTS
    | _Flag.NTLMSSP_NEGOTIATE_UNICODE
    | _Flag.NTLM_NEGOTIATE_OEM
    | _Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
    | _Flag.NTLMSSP_NEGOTIATE_IDENTIFY
    | _Flag.NTLMSSP_NEGOTIATE_VERSION
    | _Flag.NTLMSSP_NEGOTIATE_128
    | _Flag.NTLMSSP_NEGOTIATE_KEY_EXCH
    | _Flag.NTLMSSP_NEGOTIATE_56
)
"""What a server agrees to when a client asks for it."""
_ALWAYS = (
    _Flag.NTLMSSP_REQUEST_TARGET
    | _Flag.NTLMSSP_NEGOTIATE_NTLM
    | _Flag.NTLMSSP_NEGOTIATE_ALWAYS_SIGN
    | _Flag.NTLMSSP_TARGET_TYPE_SERVER
    | _Flag.NTLMSSP_NEGOTIATE_TARGET_INFO
)
_INFORMATIVE = (
    _ALWAYS
    | _Flag.NTLM_NEGOTIATE_OEM
    | _Flag.NTLMSSP_ANONYMOUS
    | _Flag.NTLMSSP_NEGOTIATE_OEM_DOMAIN_SUPPLIED
    | _Flag.NTLMSSP_NEGOTIATE_OEM_WORKSTATION_SUPPLIED
    | _Flag.NTLMSSP_TARGET_TYPE_DOMAIN
    | _Flag.NTLMSSP_NEGOTIATE_IDENTIFY
    | _Flag.NTLMSSP_NEGOTIATE_VERSION
)
"""What a client may say in its last message unasked, because keys do not depend on it."""
_KEPT = (
    _PROTECTS
    | _Flag.NTLMSSP_NEGOTIATE_UNICODE
    | _Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
    | _Flag.NTLMSSP_NEGOTIATE_128
    | _Flag.NTLMSSP_NEGOTIATE_KEY_EXCH
)
"""What a client may not take back once both sides have said it."""
_RETURNED = (
    AvId.MsvAvNbComputerName,
    AvId.MsvAvNbDomainName,
    AvId.MsvAvDnsComputerName,
    AvId.MsvAvTimestamp,
)
_NETBIOS_LENGTH = 15
"""Characters of a NetBIOS name without its suffix."""
_FILETIME = struct.Struct("<Q")
_EPOCH = 116_444_736_000_000_000
"""1970 in units of 100 ns since 1601."""


def _check_strength(flags: int, minimum_bits: int) -> None:
    if not flags & _Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY:
        raise AuthenticationError("NTLM: extended session security was not negotiated")
    enough = int(_Flag.NTLMSSP_NEGOTIATE_128)
    if minimum_bits <= WEAK:
        enough |= _Flag.NTLMSSP_NEGOTIATE_56
    if not flags & enough:
        raise AuthenticationError(f"NTLM: a key of {minimum_bits} bits was not negotiated")


def _now() -> bytes:
    return _FILETIME.pack(_EPOCH + time.time_ns() // 100)


class _NtlmHandshake:
    """What both sides of a handshake share."""

    own: ProtectionDirection

    def __init__(self) -> None:
        self.complete = False
        self.claim: LogonClaim = NO_CLAIM
        self.signs_mechanisms = False
        self._flags = 0
        self._session_key = b""
        self._protection: NtlmProtection | None = None

    def protection(self, level: AuthenticationLevel) -> NtlmProtection:
        if level == PKT_PRIVACY and not self._flags & _Flag.NTLMSSP_NEGOTIATE_SEAL:
            raise ProtectionError("NTLM: sealing was not negotiated")
        if self._protection is None:
            self._protection = NtlmProtection(self._flags, self._session_key, self.own)
        return self._protection

    def _finish(self, flags: int, session_key: bytes) -> None:
        self._flags, self._session_key = flags, session_key
        self.complete = True


class NtlmAcceptor(_NtlmHandshake):
    """A handshake on the server's side.

    An attacker between a client and this server sees all messages and can change them, but does
    not know the session key. So the key must be there, flags may neither be added nor taken back,
    and target information must come back as it was sent. If the proof of the password says that
    there is an integrity code, the code must be there and be right ([MS-NLMP] 3.2.5.1.2; G78, G79).
    """

    own = ProtectionDirection.SERVER

    def __init__(
        self,
        accounts: AccountDirectory,
        settings: NtlmSettings | None = None,
        throttle: LogonThrottle | None = None,
        address: str = "",
    ) -> None:
        super().__init__()
        self._accounts = accounts
        self._settings = settings or NtlmSettings()
        self._throttle = throttle or NoThrottle()
        self._address = address
        self._identity = ANONYMOUS
        self._negotiate = self._challenge = self._server_challenge = b""
        self._offered = 0
        self._target_info: messages.Pairs = ()
        self._over = False

    def step(self, token: bytes) -> bytes:
        if self._over:
            raise AuthenticationError("NTLM: the handshake is over")
        try:
            if not self._challenge:
                return self._begin(token)
            self._over = True
            self._authenticate(token)
        except DecodeError as error:
            raise AuthenticationError(f"NTLM: {error.reason}") from error
        return b""

    def peer(self) -> Identity:
        return self._identity

    def _begin(self, token: bytes) -> bytes:
        """The challenge ([MS-NLMP] 3.2.5.1.1)."""
        asked = messages.read_negotiate(token)
        _check_strength(asked, self._settings.minimum_bits)
        if not asked & (_Flag.NTLMSSP_NEGOTIATE_UNICODE | _Flag.NTLM_NEGOTIATE_OEM):
            raise AuthenticationError("NTLM: the client has no character set")
        self._offered = asked & _SUPPORTED | _ALWAYS
        if asked & _Flag.NTLMSSP_NEGOTIATE_UNICODE:
            self._offered &= ~_Flag.NTLM_NEGOTIATE_OEM
        name = self._settings.computer_name or socket.gethostname()
        netbios = name.partition(".")[0].upper()[:_NETBIOS_LENGTH]
        self._target_info = (
            (AvId.MsvAvNbComputerName, netbios.encode("utf-16-le")),
            (AvId.MsvAvNbDomainName, netbios.encode("utf-16-le")),
            (AvId.MsvAvDnsComputerName, name.encode("utf-16-le")),
            (AvId.MsvAvTimestamp, _now()),
        )
        self._server_challenge = os.urandom(8)
        self._negotiate = token
        self._challenge = messages.pack_challenge(
            self._offered, self._server_challenge, netbios, self._target_info
        )
        return self._challenge

    def _authenticate(self, token: bytes) -> None:
        """The last leg ([MS-NLMP] 3.2.5.1.2)."""
        message = messages.read_authenticate(token)
        self.claim = claimed(message.user, message.domain, message.workstation)
        self._check_flags(message)
        if message.anonymous:
            self._finish(message.flags, _exported_key(message, bytes(messages.KEY_LENGTH)))
            return
        account = folded_name(message.user)
        self._throttle.admit(account, self._address)
        try:
            self._log_on(message, token)
        except (AuthenticationError, DecodeError):
            self._throttle.failed(account, self._address)
            raise
        self._throttle.succeeded(account, self._address)

    def _check_flags(self, message: messages.Authenticate) -> None:
        """Nobody may take session security back, as Samba does it: their key protects nothing."""
        flags = message.flags
        if message.anonymous:
            flags |= self._offered & _Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
        added = flags & ~(self._offered | _INFORMATIVE)
        if added:
            raise AuthenticationError(f"NTLM: flags {added:#x} were not offered")
        dropped = self._offered & ~flags & _KEPT
        if dropped:
            raise AuthenticationError(f"NTLM: flags {dropped:#x} were taken back")
        _check_strength(flags, self._settings.minimum_bits)

    def _log_on(self, message: messages.Authenticate, token: bytes) -> None:
        base_key = self._proved(message)
        session_key = _exported_key(message, base_key)
        info = messages.read_client_challenge(message.client_challenge)
        self._check_target_info(info)
        self.signs_mechanisms = _provides_code(info)
        if self.signs_mechanisms:
            self._check_code(message, token, session_key)
        identity = self._accounts.identity(message.user, message.domain)
        if identity is None:
            raise AuthenticationError(f"NTLM: {self.claim.account} may not log on")
        self._identity = identity
        self._finish(message.flags, session_key)

    def _proved(self, message: messages.Authenticate) -> bytes:
        """The SessionBaseKey, when the response is the one that the account's password makes.

        Some clients leave the domain out of the computation.
        """
        response = message.nt_response
        if len(response) <= messages.NTLM_V1_LENGTH:
            raise AuthenticationError("NTLM: version 1 is not accepted")
        stored = stored_hash(self._accounts.user_file, message.user, message.domain)
        for domain in (message.domain, ""):
            key = messages.response_key(stored or bytes(16), message.user, domain)
            proof = messages.proof_of(key, self._server_challenge, message.client_challenge)
            if hmac.compare_digest(proof, response[: messages.PROOF_LENGTH]) and stored:
                return messages.session_base_key(key, proof)
        # The log alone tells which; the peer learns neither from the answer nor by its time (G80).
        raise AuthenticationError(f"NTLM: {'wrong password' if stored else 'no such account'}")

    def _check_target_info(self, info: Mapping[int, bytes]) -> None:
        """Raise AuthenticationError if target information did not come back as it was sent.

        Without the timestamp, for example, clients would not make an integrity code.
        """
        sent = dict(self._target_info)
        for kind in _RETURNED:
            if info.get(kind) != sent[kind]:
                raise AuthenticationError(f"NTLM: the client did not see our {kind.name}")

    def _check_code(self, message: messages.Authenticate, token: bytes, key: bytes) -> None:
        """The code has its place in front of all fields, wherever they say that they are."""
        expected = messages.integrity_code(key, self._negotiate, self._challenge, token)
        there = message.payload >= messages.MIC.stop <= len(token)
        if not there or not hmac.compare_digest(expected, token[messages.MIC]):
            raise AuthenticationError("NTLM: the integrity code does not match")


def _exported_key(message: messages.Authenticate, key: bytes) -> bytes:
    """ExportedSessionKey; without signing and sealing none is exchanged ([MS-NLMP] 3.1.5.1.2)."""
    if not message.flags & _Flag.NTLMSSP_NEGOTIATE_KEY_EXCH or not message.flags & _PROTECTS:
        return key
    if len(message.encrypted_key) != messages.KEY_LENGTH:
        raise AuthenticationError(f"NTLM: a session key of {len(message.encrypted_key)} octets")
    return messages.rc4k(key, message.encrypted_key)


def _provides_code(info: Mapping[int, bytes]) -> bool:
    flags = int.from_bytes(info.get(AvId.MsvAvFlags, b"")[:4], "little")
    return bool(flags & messages.PROVIDES_MIC)


def stored_hash(path: Path, name: str, domain: str) -> bytes | None:
    """The NT hash of an account; one without a domain stands for any domain.

    Raises AuthenticationError if the file cannot be read.
    """
    try:
        accounts = _accounts(path.read_bytes())
    except (OSError, UnicodeDecodeError) as error:
        raise AuthenticationError(f"NTLM: the accounts cannot be read: {error}") from error
    found = accounts.get(folded_name(name), {})
    return found.get(folded_name(domain), found.get(""))


@lru_cache(maxsize=1)
def _accounts(octets: bytes) -> Mapping[str, Mapping[str, bytes]]:
    """The NT hashes in a file, by folded names and then by folded domains; UnicodeDecodeError.

    They are read once for each content of the file: whoever guesses must not have all of it read.
    """
    found: dict[str, dict[str, bytes]] = {}
    # Not splitlines: some characters that end a line for it may be in a name.
    for line in octets.decode("utf-8").split("\n"):
        entry = _entry(line.rstrip("\r"))
        if entry is not None:
            domain, name, secret = entry
            found.setdefault(name, {}).setdefault(domain, secret)
    return found


def _entry(line: str) -> tuple[str, str, bytes] | None:
    """The folded domain, the folded name and the NT hash in a line of the accounts."""
    fields = line.split(":")
    if len(fields) == 3:
        return folded_name(fields[0]), folded_name(fields[1]), nt_hash(fields[2])
    if len(fields) != 6:
        return None
    try:
        secret = bytes.fromhex(fields[3])
    except ValueError:  # such a line has no hash: its account cannot log on
        return None
    if len(secret) != messages.HASH_LENGTH:
        return None
    domain, _, name = fields[0].rpartition("\\")
    return folded_name(domain), folded_name(name), secret


class NtlmInitiator(_NtlmHandshake):
    """A handshake on the client's side."""

    own = ProtectionDirection.CLIENT

    def __init__(self, credentials: NtlmCredentials, level: AuthenticationLevel) -> None:
        super().__init__()
        self._credentials = credentials
        self._level = level
        self._asked = _ALWAYS & ~_Flag.NTLMSSP_TARGET_TYPE_SERVER | (
            _Flag.NTLMSSP_NEGOTIATE_UNICODE
            | _Flag.NTLMSSP_NEGOTIATE_SIGN
            | _Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
            | _Flag.NTLMSSP_NEGOTIATE_VERSION
            | _Flag.NTLMSSP_NEGOTIATE_128
            | _Flag.NTLMSSP_NEGOTIATE_KEY_EXCH
        )
        if level >= PKT_PRIVACY:
            self._asked |= _Flag.NTLMSSP_NEGOTIATE_SEAL
        if credentials.minimum_bits <= WEAK:
            self._asked |= _Flag.NTLMSSP_NEGOTIATE_56
        self._negotiate = b""

    def step(self, token: bytes) -> bytes:
        if self.complete:
            raise AuthenticationError("NTLM: the handshake is over")
        if not self._negotiate:
            self._negotiate = messages.pack_negotiate(self._asked)
            return self._negotiate
        try:
            return self._answer(token, messages.read_challenge(token))
        except DecodeError as error:
            raise AuthenticationError(f"NTLM: {error.reason}") from error

    def peer(self) -> Identity:
        return ANONYMOUS  # NTLM does not prove who the server is

    def _answer(self, token: bytes, challenge: messages.Challenge) -> bytes:
        """The AUTHENTICATE_MESSAGE ([MS-NLMP] 3.1.5.1.2), always with an integrity code."""
        flags = challenge.flags & self._asked
        offered = dict(challenge.target_info)
        self._check_challenge(flags, offered)
        user, domain, secret = self._secret()
        key = messages.response_key(secret, user, domain)
        proved = messages.pack_client_challenge(
            _timestamp(offered), os.urandom(8), _answered(offered)
        )
        if len(proved) > messages.LONGEST_CHALLENGE:
            raise AuthenticationError(f"NTLM: target information of {len(proved)} octets")
        proof = messages.proof_of(key, challenge.server_challenge, proved)
        session_key = base_key = messages.session_base_key(key, proof)
        message = messages.Authenticate(
            flags, bytes(24), proof + proved, domain, user, socket.gethostname().upper(), b"", 0
        )
        if flags & _Flag.NTLMSSP_NEGOTIATE_KEY_EXCH:
            session_key = os.urandom(messages.KEY_LENGTH)
            message = replace(message, encrypted_key=messages.rc4k(base_key, session_key))
        octets = messages.pack_authenticate(message)
        code = messages.integrity_code(session_key, self._negotiate, token, octets)
        self._finish(flags, session_key)
        return messages.with_integrity_code(octets, code)

    def _check_challenge(self, flags: int, offered: Mapping[int, bytes]) -> None:
        """Whether the server's choice is good enough ([MS-NLMP] 3.1.5.1.2)."""
        _check_strength(flags, self._credentials.minimum_bits)
        if not flags & _Flag.NTLMSSP_NEGOTIATE_UNICODE:
            raise AuthenticationError("NTLM: the server does not take Unicode")
        if self._level < PKT:
            return
        self.protection_offered(flags)
        if AvId.MsvAvNbComputerName not in offered or AvId.MsvAvNbDomainName not in offered:
            raise AuthenticationError("NTLM: the server does not say its name")

    def protection_offered(self, flags: int) -> None:
        """Raise ProtectionError if the level needs what the server does not offer."""
        if self._level >= PKT_PRIVACY and not flags & _Flag.NTLMSSP_NEGOTIATE_SEAL:
            raise ProtectionError("NTLM: the server does not seal")
        if not flags & _Flag.NTLMSSP_NEGOTIATE_SIGN:
            raise ProtectionError("NTLM: the server does not sign")

    def _secret(self) -> tuple[str, str, bytes]:
        """Name, domain and NT hash to log on with."""
        credentials = self._credentials
        domain, user = credentials.domain, credentials.username
        if not domain:
            domain, _, user = user.rpartition("\\")
        return user, domain, credentials.nt_hash or nt_hash(credentials.password)


def _timestamp(offered: Mapping[int, bytes]) -> bytes:
    stamp = offered.get(AvId.MsvAvTimestamp, b"")
    return stamp if len(stamp) == _FILETIME.size else _now()


def _answered(offered: Mapping[int, bytes]) -> messages.Pairs:
    """The server's target information, and what a client adds to it."""
    flags = int.from_bytes(offered.get(AvId.MsvAvFlags, b"")[:4], "little")
    added: dict[int, bytes] = {
        AvId.MsvAvFlags: (flags | messages.PROVIDES_MIC).to_bytes(4, "little"),
        AvId.MsvAvChannelBindings: bytes(16),
        AvId.MsvAvTargetName: b"",
    }
    return tuple((dict(offered) | added).items())


def ntlm(credentials: NtlmCredentials, level: AuthenticationLevel) -> Authentication:
    """How a client authenticates by NTLM; CALL is raised to PKT ([MS-RPCE] 2.2.1.1.8)."""
    level = normalized_level(level) or CONNECT
    return Authentication(
        AuthenticationType.RPC_C_AUTHN_WINNT, level, lambda: NtlmInitiator(credentials, level)
    )


class NtlmProvider:
    """The row of a server's table of security providers for RPC_C_AUTHN_WINNT."""

    def __init__(
        self,
        accounts: AccountDirectory,
        principal_name: str = "",
        throttle: LogonThrottle | None = None,
        settings: NtlmSettings | None = None,
    ) -> None:
        self.principal_name = principal_name
        self._accounts = accounts
        self._throttle = throttle
        self._settings = settings

    def accept(self, level: AuthenticationLevel, address: str = "") -> NtlmAcceptor:
        return NtlmAcceptor(self._accounts, self._settings, self._throttle, address)
