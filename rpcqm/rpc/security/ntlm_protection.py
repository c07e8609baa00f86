"""Per-message protection of an NTLM security context ([MS-NLMP] 3.4).

Sans-IO and without a handshake: negotiated flags and the exported session key go in, signatures
and sealed bytes come out. RC4, MD5 and CRC32 are the libraries'. Two hash states with the HMAC
pads already absorbed are copied per message, which makes a 1 KiB message cost a few microseconds.
"""

import enum
import hashlib
import hmac
import struct
import zlib
from collections.abc import Callable

from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
from cryptography.hazmat.primitives.ciphers import Cipher

from rpcqm.base.errors import DecodeError

SIGNATURE_LENGTH = 16
DUMMY_SIGNATURE = b"\x01" + bytes(15)
"""What stands in the token's place when a message is not signed (NTLMSSP_NEGOTIATE_ALWAYS_SIGN)."""

_VERSION = b"\x01\0\0\0"
_SEQUENCE = struct.Struct("<I")
_MASK = 0xFFFFFFFF


class NegotiateFlags(enum.IntFlag):
    """The NEGOTIATE flags that are used or understood ([MS-NLMP] 2.2.2.5)."""

    NTLMSSP_NEGOTIATE_UNICODE = 0x00000001
    NTLM_NEGOTIATE_OEM = 0x00000002
    NTLMSSP_REQUEST_TARGET = 0x00000004
    NTLMSSP_NEGOTIATE_SIGN = 0x00000010
    NTLMSSP_NEGOTIATE_SEAL = 0x00000020
    NTLMSSP_NEGOTIATE_DATAGRAM = 0x00000040
    NTLMSSP_NEGOTIATE_LM_KEY = 0x00000080
    NTLMSSP_NEGOTIATE_NTLM = 0x00000200
    NTLMSSP_ANONYMOUS = 0x00000800
    NTLMSSP_NEGOTIATE_OEM_DOMAIN_SUPPLIED = 0x00001000
    NTLMSSP_NEGOTIATE_OEM_WORKSTATION_SUPPLIED = 0x00002000
    NTLMSSP_NEGOTIATE_ALWAYS_SIGN = 0x00008000
    NTLMSSP_TARGET_TYPE_DOMAIN = 0x00010000
    NTLMSSP_TARGET_TYPE_SERVER = 0x00020000
    NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY = 0x00080000
    NTLMSSP_NEGOTIATE_IDENTIFY = 0x00100000
    NTLMSSP_NEGOTIATE_TARGET_INFO = 0x00800000
    NTLMSSP_NEGOTIATE_VERSION = 0x02000000
    NTLMSSP_NEGOTIATE_128 = 0x20000000
    NTLMSSP_NEGOTIATE_KEY_EXCH = 0x40000000
    NTLMSSP_NEGOTIATE_56 = 0x80000000


class ProtectionDirection(enum.Enum):
    """The party that a key belongs to; the text is what the key derivation hashes."""

    CLIENT = b"client-to-server"
    SERVER = b"server-to-client"


_Flag = NegotiateFlags


def signing_key(flags: int, session_key: bytes, sender: ProtectionDirection) -> bytes:
    """SIGNKEY ([MS-NLMP] 3.4.5.2)."""
    return _magic(session_key, sender, b"signing")


def sealing_key(flags: int, session_key: bytes, sender: ProtectionDirection) -> bytes:
    """SEALKEY ([MS-NLMP] 3.4.5.3)."""
    if flags & _Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY:
        return _magic(_weakened(flags, session_key), sender, b"sealing")
    if flags & (_Flag.NTLMSSP_NEGOTIATE_LM_KEY | _Flag.NTLMSSP_NEGOTIATE_DATAGRAM):
        if flags & _Flag.NTLMSSP_NEGOTIATE_56:
            return session_key[:7] + b"\xa0"
        return session_key[:5] + b"\xe5\x38\xb0"
    return session_key


def _weakened(flags: int, session_key: bytes) -> bytes:
    if flags & _Flag.NTLMSSP_NEGOTIATE_128:
        return session_key
    return session_key[: 7 if flags & _Flag.NTLMSSP_NEGOTIATE_56 else 5]


def _magic(key: bytes, sender: ProtectionDirection, purpose: bytes) -> bytes:
    text = b"session key to %s %s key magic constant\0" % (sender.value, purpose)
    return hashlib.md5(key + text).digest()


def _rc4(key: bytes) -> Callable[[bytes], bytes]:
    return Cipher(ARC4(key), mode=None).encryptor().update


class _ExtendedMac:
    """Signatures with extended session security ([MS-NLMP] 3.4.4.2), one direction."""

    __slots__ = ("_inner", "_outer", "_sequence", "cipher")

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(64, b"\0")
        self._inner = hashlib.md5(bytes(octet ^ 0x36 for octet in padded))
        self._outer = hashlib.md5(bytes(octet ^ 0x5C for octet in padded))
        self.cipher: Callable[[bytes], bytes] | None = None
        self._sequence = 0

    def signature(self, *message: bytes) -> bytes:
        sequence = _SEQUENCE.pack(self._sequence)
        self._sequence = (self._sequence + 1) & _MASK
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(sequence)
        for part in message:
            inner.update(part)
        outer.update(inner.digest())
        checksum = outer.digest()[:8]
        if self.cipher is not None:
            checksum = self.cipher(checksum)
        return _VERSION + checksum + sequence


class _PlainMac:
    """Signatures without extended session security ([MS-NLMP] 3.4.4.1), both directions."""

    __slots__ = ("_sequence", "cipher")

    cipher: Callable[[bytes], bytes]

    def __init__(self) -> None:
        self._sequence = 0

    def signature(self, *message: bytes) -> bytes:
        checksum = 0
        for part in message:
            checksum = zlib.crc32(part, checksum)
        self.cipher(bytes(4))
        sealed = self.cipher(_SEQUENCE.pack(checksum))
        sequence = _SEQUENCE.unpack(self.cipher(bytes(4)))[0] ^ self._sequence
        self._sequence = (self._sequence + 1) & _MASK
        return _VERSION + bytes(4) + sealed + _SEQUENCE.pack(sequence)


class NtlmProtection:
    """Signs and seals the messages of one party of a context, and checks those of the other.

    A PDU is given as the segments `head` (header), `body` (stub data and padding) and `tail` (the
    trailer without its token). With extended session security a signature covers all three,
    otherwise the body alone; only the body is ever sealed.
    """

    __slots__ = (
        "_in_cipher",
        "_in_mac",
        "_keys",
        "_out_cipher",
        "_out_mac",
        "_whole",
        "flags",
    )

    signature_length = SIGNATURE_LENGTH
    dummy_signature = DUMMY_SIGNATURE

    def __init__(self, flags: int, session_key: bytes, own: ProtectionDirection) -> None:
        self.flags = flags
        self._whole = bool(flags & _Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY)
        peer = (
            ProtectionDirection.SERVER
            if own is ProtectionDirection.CLIENT
            else ProtectionDirection.CLIENT
        )
        self._keys = tuple(sealing_key(flags, session_key, each) for each in (own, peer))
        self._out_mac: _ExtendedMac | _PlainMac
        self._in_mac: _ExtendedMac | _PlainMac
        if self._whole:
            self._out_mac = _ExtendedMac(signing_key(flags, session_key, own))
            self._in_mac = _ExtendedMac(signing_key(flags, session_key, peer))
        else:
            self._out_mac = self._in_mac = _PlainMac()
        self.restart_ciphers()

    def sign_headers(self) -> None:
        """Do nothing: NTLM always signs the whole PDU."""

    def restart_ciphers(self) -> None:
        """Begin the key streams anew; the sequence numbers go on ([MS-SPNG] 3.3.5.1)."""
        self._out_cipher = _rc4(self._keys[0])
        self._in_cipher = _rc4(self._keys[1]) if self._whole else self._out_cipher
        if not self._whole or self.flags & _Flag.NTLMSSP_NEGOTIATE_KEY_EXCH:
            self._out_mac.cipher = self._out_cipher
            self._in_mac.cipher = self._in_cipher

    def sign(self, head: bytes, body: bytes, tail: bytes) -> bytes:
        """The signature of a message that is sent in clear."""
        if self._whole:
            return self._out_mac.signature(head, body, tail)
        return self._out_mac.signature(body)

    def seal(self, head: bytes, body: bytes, tail: bytes) -> tuple[bytes, bytes]:
        """The sealed body and the signature of a message that is sent sealed."""
        sealed = self._out_cipher(body)
        return sealed, self.sign(head, body, tail)

    def verify(self, head: bytes, body: bytes, tail: bytes, signature: bytes) -> None:
        """Check a message that came in clear; raises DecodeError if the signature is wrong."""
        if self._whole:
            expected = self._in_mac.signature(head, body, tail)
        else:  # RandomPad has no meaning, and Samba does not clear it
            expected = self._in_mac.signature(body)
            expected = expected[:4] + signature[4:8] + expected[8:]
        if not hmac.compare_digest(expected, signature):
            raise DecodeError("the NTLM signature does not match")

    def unseal(self, head: bytes, sealed: bytes, tail: bytes, signature: bytes) -> bytes:
        """The body of a sealed message; raises DecodeError if the signature is wrong."""
        body = self._in_cipher(sealed)
        self.verify(head, body, tail, signature)
        return body
