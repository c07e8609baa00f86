"""The session key of a captured NTLM handshake, from an account's NT hash.

The handshake proves itself: a hash is the right one when the response in the handshake is what it
makes ([MS-NLMP] 3.3), whatever the account was called on the command line.
"""

import hashlib
import hmac
from collections.abc import Iterable

from Cryptodome.Hash import MD4

from rpcqm.base.errors import DecodeError
from rpcqm.capture.unsealing.accounts import UnsealingAccount
from rpcqm.rpc.security.ntlm_messages import (
    KEY_LENGTH,
    NTLM_V1_LENGTH,
    PROOF_LENGTH,
    SIGNATURE,
    Authenticate,
    proof_of,
    rc4k,
    response_key,
    session_base_key,
)
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags

_Flag = NegotiateFlags


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


def is_anonymous(message: Authenticate) -> bool:
    """Whether the logon is anonymous, whatever its response of LAN Manager says."""
    return not message.user and not message.nt_response


def session_key(
    message: Authenticate, challenge: bytes, accounts: Iterable[UnsealingAccount]
) -> bytes | None:
    """The exported session key; None if no account that is given has authenticated."""
    if is_anonymous(message):
        return _exchanged(message, bytes(16))
    for account in accounts:
        if account.name.lower() == message.user.lower():
            for nt_hash in account.hashes:
                key = _key_exchange_key(message, challenge, nt_hash)
                if key is not None:
                    return _exchanged(message, key)
    return None


def _key_exchange_key(message: Authenticate, challenge: bytes, nt_hash: bytes) -> bytes | None:
    """KXKEY ([MS-NLMP] 3.4.5.1), or None if the hash did not make the response."""
    if len(message.nt_response) > NTLM_V1_LENGTH:
        return _version_2(message, challenge, nt_hash)
    extended = bool(message.flags & _Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY)
    client = message.lm_response[:8]
    sent = hashlib.md5(challenge + client).digest()[:8] if extended else challenge
    if _des_response(nt_hash, sent) != message.nt_response:
        return None
    base = MD4.new(nt_hash).digest()
    return hmac.digest(base, challenge + client, "md5") if extended else base


def _version_2(message: Authenticate, challenge: bytes, nt_hash: bytes) -> bytes | None:
    key = response_key(nt_hash, message.user, message.domain)
    proof = proof_of(key, challenge, message.client_challenge)
    if not hmac.compare_digest(proof, message.nt_response[:PROOF_LENGTH]):
        return None
    return session_base_key(key, proof)


def _exchanged(message: Authenticate, key: bytes) -> bytes:
    sent = message.encrypted_key
    if not message.flags & _Flag.NTLMSSP_NEGOTIATE_KEY_EXCH or len(sent) != KEY_LENGTH:
        return key
    return rc4k(key, sent)


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
