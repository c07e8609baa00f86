"""The session key of a captured NTLM handshake, from an account's NT hash.

The handshake proves itself: a hash is the right one when the response in the handshake is what it
makes ([MS-NLMP] 3.3), whatever the account was called on the command line.
"""

import hashlib
import hmac
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from rpcqm.base.errors import DecodeError
from rpcqm.capture.accounts import Account
from rpcqm.rpc.ntlm_protection import NegotiateFlags

SIGNATURE = b"NTLMSSP\0"
_CHALLENGE, _AUTHENTICATE = 2, 3
_UNICODE = 0x00000001
_PROOF = 16
_V1_RESPONSE = 24
_FIELDS = struct.Struct("<HHI")
_Flag = NegotiateFlags


@dataclass(frozen=True, slots=True)
class Authenticate:
    """The fields of an AUTHENTICATE_MESSAGE that keys depend on ([MS-NLMP] 2.2.1.3)."""

    lm_response: bytes
    nt_response: bytes
    domain: str
    user: str
    encrypted_key: bytes
    flags: int

    @property
    def account(self) -> str:
        return f"{self.domain}\\{self.user}" if self.domain else self.user

    @property
    def anonymous(self) -> bool:
        return not self.user and not self.nt_response


def find_message(token: bytes) -> tuple[int, bytes]:
    """The NTLM message in a token, which may be wrapped in SPNEGO, and its type; (0, b"") if none.

    Its end is not looked for: fields name their places.
    """
    at = token.find(SIGNATURE)
    if at < 0 or at + 12 > len(token):
        return 0, b""
    return int.from_bytes(token[at + 8 : at + 12], "little"), token[at:]


def server_challenge(message: bytes) -> bytes:
    """The eight octets of a CHALLENGE_MESSAGE."""
    if len(message) < 32:
        raise DecodeError("the NTLM challenge is cut short")
    return message[24:32]


def read_authenticate(message: bytes) -> Authenticate:
    """Raises DecodeError for a message that is cut short."""
    if len(message) < 64:
        raise DecodeError("the NTLM authentication is cut short")
    (flags,) = struct.unpack_from("<I", message, 60)
    codec = "utf-16-le" if flags & _UNICODE else "latin-1"
    lm, nt, domain, user, _, key = (_field(message, 12 + 8 * index) for index in range(6))
    names = [part.decode(codec, "replace") for part in (domain, user)]
    return Authenticate(lm, nt, names[0], names[1], key, flags)


def _field(message: bytes, at: int) -> bytes:
    length, _, offset = _FIELDS.unpack_from(message, at)
    if offset + length > len(message):
        raise DecodeError("a field of the NTLM authentication is cut short", at)
    return message[offset : offset + length]


def session_key(
    message: Authenticate, challenge: bytes, accounts: Iterable[Account]
) -> bytes | None:
    """The exported session key, when one of the accounts is the one that authenticated."""
    if message.anonymous:
        return _exchanged(message, bytes(16))
    for account in accounts:
        if account.name.lower() == message.user.lower():
            for nt_hash in account.hashes:
                key = _key_exchange_key(message, challenge, nt_hash)
                if key is not None:
                    return _exchanged(message, key)
    return None


def _key_exchange_key(message: Authenticate, challenge: bytes, nt_hash: bytes) -> bytes | None:
    """KXKEY ([MS-NLMP] 3.4.5.1), or None when the hash did not make the response."""
    if len(message.nt_response) > _V1_RESPONSE:
        return _version_2(message, challenge, nt_hash)
    extended = bool(message.flags & _Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY)
    client = message.lm_response[:8]
    sent = hashlib.md5(challenge + client).digest()[:8] if extended else challenge
    if _des_response(nt_hash, sent) != message.nt_response:
        return None
    base = _md4(nt_hash)
    return _hmac_md5(base, challenge + client) if extended else base


def _version_2(message: Authenticate, challenge: bytes, nt_hash: bytes) -> bytes | None:
    name = (message.user.upper() + message.domain).encode("utf-16-le")
    key = _hmac_md5(nt_hash, name)
    proof, blob = message.nt_response[:_PROOF], message.nt_response[_PROOF:]
    if not hmac.compare_digest(_hmac_md5(key, challenge + blob), proof):
        return None
    return _hmac_md5(key, proof)


def _exchanged(message: Authenticate, key: bytes) -> bytes:
    if not message.flags & _Flag.NTLMSSP_NEGOTIATE_KEY_EXCH or len(message.encrypted_key) != 16:
        return key
    from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
    from cryptography.hazmat.primitives.ciphers import Cipher

    return Cipher(ARC4(key), mode=None).encryptor().update(message.encrypted_key)


def _hmac_md5(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "md5")


def _md4(data: bytes) -> bytes:
    from Cryptodome.Hash import MD4

    return MD4.new(data).digest()


def _des_response(nt_hash: bytes, challenge: bytes) -> bytes:
    """DESL ([MS-NLMP] 6): the challenge under three keys made of the hash."""
    from Cryptodome.Cipher import DES

    padded = nt_hash.ljust(21, b"\0")
    parts = (padded[:7], padded[7:14], padded[14:])
    return b"".join(DES.new(_des_key(part), DES.MODE_ECB).encrypt(challenge) for part in parts)


def _des_key(seven: bytes) -> bytes:
    """Seven octets as the eight of a DES key, whose lowest bits do not count."""
    number = int.from_bytes(seven, "big")
    return bytes((number >> (49 - 7 * index) & 0x7F) << 1 for index in range(8))
