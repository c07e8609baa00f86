"""Reads the sealed and signed messages of a Kerberos session with its key.

RFC 4121 for AES, RFC 4757 for RC4, both in the DCE style ([MS-KILE] 3.4.5): the body is encrypted
in its place, and everything else is in the token. A message carries its own number, so that each
can be read without those before it.
"""

import hashlib
import hmac
import struct
from typing import TYPE_CHECKING, Protocol

from rpcqm.base.errors import DecodeError
from rpcqm.capture.unsealing.kerberos_keys import RC4, SessionKey

if TYPE_CHECKING:
    from Cryptodome.Cipher.ARC4 import ARC4Cipher

_HEADER = struct.Struct(">HBBHHQ")
_WRAP, _MIC = 0x0504, 0x0404
_SENT_BY_ACCEPTOR, _SEALED = 1, 2
_BLOCK, _MAC = 16, 12
_INITIATOR_SEAL, _ACCEPTOR_SEAL, _INITIATOR_SIGN, _ACCEPTOR_SIGN = 24, 22, 25, 23
_RC4_WRAP, _RC4_MIC = b"\x02\x01", b"\x01\x01"
_RC4_SEAL_USAGE, _RC4_SIGN_USAGE = b"\x0d\0\0\0", b"\x0f\0\0\0"
_ZERO = bytes(4)


class SessionProtection(Protocol):
    """Both directions of a session; a message is told by its token from which side it is."""

    def unseal(self, head: bytes, sealed: bytes, tail: bytes, token: bytes) -> bytes:
        """The body in clear; raises DecodeError when the message was changed."""
        ...

    def verify(self, head: bytes, body: bytes, tail: bytes, token: bytes) -> None:
        """Check a message that came in clear; raises DecodeError."""
        ...


def messages_under(key: SessionKey) -> SessionProtection:
    """The messages under a session's key."""
    return Rc4Messages(key.octets) if key.encryption_type == RC4 else AesMessages(key)


class AesMessages:
    """Messages under a key of aes128-cts-hmac-sha1-96 or aes256-cts-hmac-sha1-96."""

    def __init__(self, key: SessionKey) -> None:
        from impacket.krb5 import crypto

        self._profile = crypto._get_enctype_profile(key.encryption_type)
        self._key = crypto.Key(key.encryption_type, key.octets)
        self._derived: dict[tuple[int, int], bytes] = {}

    def unseal(self, head: bytes, sealed: bytes, tail: bytes, token: bytes) -> bytes:
        flags, extra, rotated = _read_header(token, _WRAP)
        if not flags & _SEALED:
            raise DecodeError("Kerberos: the message is not sealed")
        usage = _ACCEPTOR_SEAL if flags & _SENT_BY_ACCEPTOR else _INITIATOR_SEAL
        whole = token[_HEADER.size :] + sealed
        if len(whole) < 2 * _BLOCK + _MAC:
            raise DecodeError("Kerberos: the message is cut short")
        # In the DCE style the rotation does not count the filler (RFC 4121 4.2.5, as Windows does).
        turn = (rotated + extra) % len(whole)
        whole = whole[turn:] + whole[:turn]
        clear = _decrypt(self._derive(usage, 0xAA), whole[:-_MAC])
        end = _BLOCK + len(sealed)
        body, behind = clear[_BLOCK:end], clear[end:]
        integrity = self._derive(usage, 0x55)
        for before, after in ((head, tail), (b"", b"")):
            signed = b"".join((clear[:_BLOCK], before, body, after, behind))
            if hmac.digest(integrity, signed, "sha1")[:_MAC] == whole[-_MAC:]:
                return body
        raise DecodeError("Kerberos: the message was changed, or its key is another")

    def verify(self, head: bytes, body: bytes, tail: bytes, token: bytes) -> None:
        flags, _, _ = _read_header(token, _MIC)
        usage = _ACCEPTOR_SIGN if flags & _SENT_BY_ACCEPTOR else _INITIATOR_SIGN
        key, begin = self._derive(usage, 0x99), token[: _HEADER.size]
        for message in (head + body + tail, body):
            if hmac.digest(key, message + begin, "sha1")[:_MAC] == token[_HEADER.size :]:
                return
        raise DecodeError("Kerberos: the message was changed, or its key is another")

    def _derive(self, usage: int, purpose: int) -> bytes:
        """RFC 3961, section 5.3."""
        if (usage, purpose) not in self._derived:
            constant = struct.pack(">IB", usage, purpose)
            self._derived[usage, purpose] = self._profile.derive(self._key, constant).contents
        return self._derived[usage, purpose]


def _read_header(token: bytes, kind: int) -> tuple[int, int, int]:
    """Flags, length of the filler, and rotation of a token."""
    if len(token) < _HEADER.size:
        raise DecodeError("Kerberos: the token is cut short")
    found, flags, _, extra, rotated, _ = _HEADER.unpack_from(token)
    if found != kind:
        raise DecodeError(f"Kerberos: a token of the kind {found:#06x}")
    return flags, extra, rotated


def _decrypt(key: bytes, octets: bytes) -> bytes:
    """AES in CBC with the last two blocks stolen and swapped (RFC 3962, section 5)."""
    from Cryptodome.Cipher import AES

    rest = len(octets) % _BLOCK or _BLOCK
    before, last = octets[-_BLOCK - rest : -rest], octets[-rest:]
    filled = last + AES.new(key, AES.MODE_ECB).decrypt(before)[rest:]
    ordered = octets[: -_BLOCK - rest] + filled + before
    clear: bytes = AES.new(key, AES.MODE_CBC, bytes(_BLOCK)).decrypt(ordered)
    return clear[: len(octets)]


class Rc4Messages:
    """Messages under a key of rc4-hmac; what surrounds a token is skipped."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._signing = _hmac_md5(key, b"signaturekey\0")
        self._local = bytes(octet ^ 0xF0 for octet in key)

    def unseal(self, head: bytes, sealed: bytes, tail: bytes, token: bytes) -> bytes:
        inner = token[-32:]
        if inner[:2] != _RC4_WRAP or len(inner) < 32:
            raise DecodeError("Kerberos: a token of another kind")
        number = self._number(inner[8:16], inner[16:24])
        cipher = _rc4(_hmac_md5(_hmac_md5(self._local, _ZERO), number))
        confounder, body = cipher.decrypt(inner[24:]), cipher.decrypt(sealed)
        for message in (head + body + tail, body):
            if self._signed(_RC4_SEAL_USAGE, inner[:8] + confounder + message) == inner[16:24]:
                return bytes(body)
        raise DecodeError("Kerberos: the message was changed, or its key is another")

    def verify(self, head: bytes, body: bytes, tail: bytes, token: bytes) -> None:
        inner = token[-24:]
        if inner[:2] != _RC4_MIC or len(inner) < 24:
            raise DecodeError("Kerberos: a token of another kind")
        for message in (head + body + tail, body):
            if self._signed(_RC4_SIGN_USAGE, inner[:8] + message) == inner[16:]:
                return
        raise DecodeError("Kerberos: the message was changed, or its key is another")

    def _number(self, sealed: bytes, checksum: bytes) -> bytes:
        key = _hmac_md5(_hmac_md5(self._key, _ZERO), checksum)
        return bytes(_rc4(key).decrypt(sealed)[:4])

    def _signed(self, usage: bytes, message: bytes) -> bytes:
        return _hmac_md5(self._signing, hashlib.md5(usage + message).digest())[:8]


def _hmac_md5(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "md5")


def _rc4(key: bytes) -> "ARC4Cipher":
    from Cryptodome.Cipher import ARC4

    return ARC4.new(key)
