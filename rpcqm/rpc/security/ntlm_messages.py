"""The three messages of an NTLM handshake, and what is computed from them ([MS-NLMP] 2.2, 3.3).

Sans-IO and without a decision: what is acceptable is said by `rpcqm.rpc.security.ntlm`. Every
reader raises DecodeError for octets that are not the message, and never anything else.
"""

import enum
import hmac
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
from cryptography.hazmat.primitives.ciphers import Cipher

from rpcqm.base.errors import DecodeError
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags

SIGNATURE = b"NTLMSSP\0"
NEGOTIATE, CHALLENGE, AUTHENTICATE = 1, 2, 3
KEY_LENGTH = 16
PROOF_LENGTH = HASH_LENGTH = 16
LONGEST_CHALLENGE = 0xFFFF - PROOF_LENGTH
"""How long the challenge of a client can be, so that its response fits into a field."""

NTLM_V1_LENGTH = 24
"""How long the response of NTLM version 1 is; that of version 2 is longer."""

MIC = slice(72, 88)
"""Where the integrity code of an AUTHENTICATE message is, when there is one."""
PROVIDES_MIC = 0x00000002
"""The bit of MsvAvFlags by which a client says that its message has an integrity code."""

_VERSION = bytes((6, 1, 0, 0, 0, 0, 0, 15))
"""6.1 and NTLMSSP_REVISION_W2K3 ([MS-NLMP] 2.2.2.10); peers use it for logs only."""
_NO_VERSION = bytes(8)
_HEAD = struct.Struct("<8sI")
_FIELD = struct.Struct("<HHI")
_FLAGS = struct.Struct("<I")
_PAIR = struct.Struct("<HH")
_CLIENT_CHALLENGE = struct.Struct("<BBHIQ8sI")
_NEGOTIATE_LENGTH, _CHALLENGE_LENGTH, _AUTHENTICATE_LENGTH = 40, 56, 88
_SHORTEST_NEGOTIATE, _SHORTEST_CHALLENGE, _SHORTEST_AUTHENTICATE = 16, 48, 64
"""Octets of what is written before the payload, and the least that is read: older peers send no
version and no integrity code."""
_Flag = NegotiateFlags


class AvId(enum.IntEnum):
    """What a pair of target information says ([MS-NLMP] 2.2.2.1)."""

    MsvAvEOL = 0
    MsvAvNbComputerName = 1
    MsvAvNbDomainName = 2
    MsvAvDnsComputerName = 3
    MsvAvFlags = 6
    MsvAvTimestamp = 7
    MsvAvTargetName = 9
    MsvAvChannelBindings = 10


Pairs = Sequence[tuple[int, bytes]]
"""Target information: pairs of an AvId and a value, without the one that ends them."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a client reads from a CHALLENGE_MESSAGE ([MS-NLMP] 2.2.1.2)."""

    flags: int
    server_challenge: bytes
    target_info: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class Authenticate:
    """An AUTHENTICATE_MESSAGE ([MS-NLMP] 2.2.1.3).

    `payload` is where the first field that is not empty begins.
    """

    flags: int
    lm_response: bytes
    nt_response: bytes
    domain: str
    user: str
    workstation: str
    encrypted_key: bytes
    payload: int

    @property
    def anonymous(self) -> bool:
        """Whether the client asks to be anonymous (NullSession of [MS-NLMP] 3.2.5.1.2)."""
        return not self.user and not self.nt_response and self.lm_response in (b"", b"\0")

    @property
    def account(self) -> str:
        r"""The account that the client claims: a name, or DOMAIN\name."""
        return f"{self.domain}\\{self.user}" if self.domain else self.user

    @property
    def client_challenge(self) -> bytes:
        """The NTLMv2_CLIENT_CHALLENGE, which the response proves."""
        return self.nt_response[PROOF_LENGTH:]


def pack_negotiate(flags: int) -> bytes:
    """A NEGOTIATE_MESSAGE without a domain or a workstation ([MS-NLMP] 2.2.1.1)."""
    nothing = _FIELD.pack(0, 0, 0)
    head = _HEAD.pack(SIGNATURE, NEGOTIATE) + _FLAGS.pack(flags)
    return head + nothing + nothing + _version(flags)


def read_negotiate(message: bytes) -> int:
    """The flags of a NEGOTIATE_MESSAGE."""
    _check_head(message, NEGOTIATE, _SHORTEST_NEGOTIATE)
    return int(_FLAGS.unpack_from(message, 12)[0])


def pack_challenge(flags: int, server_challenge: bytes, target: str, info: Pairs) -> bytes:
    """A CHALLENGE_MESSAGE; its version is always there, zeros if the client did not ask for it."""
    # A client chooses the character set, which need not have all characters of the name.
    name, pairs = target.encode(_codec(flags), "replace"), pack_pairs(info)
    fields = _fields(_CHALLENGE_LENGTH, (name, pairs))
    return b"".join(
        (
            _HEAD.pack(SIGNATURE, CHALLENGE),
            fields[0],
            _FLAGS.pack(flags),
            server_challenge,
            bytes(8),
            fields[1],
            _version(flags),
            name,
            pairs,
        )
    )


def read_challenge(message: bytes) -> Challenge:
    """What a CHALLENGE_MESSAGE says."""
    _check_head(message, CHALLENGE, _SHORTEST_CHALLENGE)
    (flags,) = _FLAGS.unpack_from(message, 20)
    pairs: tuple[tuple[int, bytes], ...] = ()
    if flags & _Flag.NTLMSSP_NEGOTIATE_TARGET_INFO:
        pairs = tuple(read_pairs(_field(message, 40)[1]))
    return Challenge(flags, message[24:32], pairs)


def pack_authenticate(message: Authenticate) -> bytes:
    """An AUTHENTICATE_MESSAGE with room for an integrity code, which is zero."""
    codec = _codec(message.flags)
    values = (
        message.lm_response,
        message.nt_response,
        message.domain.encode(codec, "replace"),
        message.user.encode(codec, "replace"),
        message.workstation.encode(codec, "replace"),
        message.encrypted_key,
    )
    return b"".join(
        (
            _HEAD.pack(SIGNATURE, AUTHENTICATE),
            *_fields(_AUTHENTICATE_LENGTH, values),
            _FLAGS.pack(message.flags),
            _version(message.flags),
            bytes(16),
            *values,
        )
    )


def read_authenticate(message: bytes) -> Authenticate:
    """What an AUTHENTICATE_MESSAGE says."""
    _check_head(message, AUTHENTICATE, _SHORTEST_AUTHENTICATE)
    (flags,) = _FLAGS.unpack_from(message, 60)
    fields = [_field(message, 12 + 8 * index) for index in range(6)]
    lm, nt, domain, user, workstation, key = (value for _, value in fields)
    payload = min((offset for offset, value in fields if value), default=len(message))
    codec = _codec(flags)
    return Authenticate(
        flags,
        lm,
        nt,
        domain.decode(codec, "replace"),
        user.decode(codec, "replace"),
        workstation.decode(codec, "replace"),
        key,
        payload,
    )


def pack_pairs(pairs: Pairs) -> bytes:
    """Target information, with the pair that ends it."""
    ended = (*pairs, (AvId.MsvAvEOL, b""))
    return b"".join(_PAIR.pack(kind, len(value)) + value for kind, value in ended)


def read_pairs(octets: bytes) -> Iterable[tuple[int, bytes]]:
    """Target information up to its end; what follows that is not looked at.

    A kind that comes twice is refused: peers differ in which of the two they believe, so that
    somebody in between could show a client another timestamp, or none, than a server (G127).
    """
    offset, seen = 0, set[int]()
    while True:
        if offset + _PAIR.size > len(octets):
            raise DecodeError("the NTLM target information has no end", offset)
        kind, length = _PAIR.unpack_from(octets, offset)
        if kind == AvId.MsvAvEOL:
            return
        offset += _PAIR.size
        if offset + length > len(octets):
            raise DecodeError("the NTLM target information is cut short", offset)
        if kind in seen:
            raise DecodeError(f"NTLM target information {kind} comes twice", offset)
        seen.add(kind)
        yield kind, octets[offset : offset + length]
        offset += length


def pack_client_challenge(time: bytes, nonce: bytes, info: Pairs) -> bytes:
    """An NTLMv2_CLIENT_CHALLENGE ([MS-NLMP] 2.2.2.7); `time` is a FILETIME."""
    (ticks,) = struct.unpack("<Q", time)
    return _CLIENT_CHALLENGE.pack(1, 1, 0, 0, ticks, nonce, 0) + pack_pairs(info) + bytes(4)


def read_client_challenge(octets: bytes) -> dict[int, bytes]:
    """The target information that a client has proved to have seen, and what it added."""
    if len(octets) < _CLIENT_CHALLENGE.size:
        raise DecodeError("the NTLM client challenge is cut short")
    return dict(read_pairs(octets[_CLIENT_CHALLENGE.size :]))


def response_key(secret: bytes, user: str, domain: str) -> bytes:
    """NTOWFv2 ([MS-NLMP] 3.3.2) of an NT hash."""
    name = (user.upper() + domain).encode("utf-16-le", "surrogatepass")
    return hmac.digest(secret, name, "md5")


def proof_of(key: bytes, server_challenge: bytes, client_challenge: bytes) -> bytes:
    """NTProofStr ([MS-NLMP] 3.3.2), over the client's challenge as it came."""
    return hmac.digest(key, server_challenge + client_challenge, "md5")


def session_base_key(key: bytes, proof: bytes) -> bytes:
    """SessionBaseKey of version 2, which is also its KeyExchangeKey ([MS-NLMP] 3.3.2)."""
    return hmac.digest(key, proof, "md5")


def rc4k(key: bytes, octets: bytes) -> bytes:
    """RC4K ([MS-NLMP] 6)."""
    return Cipher(ARC4(key), mode=None).encryptor().update(octets)


def integrity_code(key: bytes, negotiate: bytes, challenge: bytes, authenticate: bytes) -> bytes:
    """The MIC of three messages as they went over the network ([MS-NLMP] 3.1.5.1.2)."""
    blank = authenticate[: MIC.start] + bytes(KEY_LENGTH) + authenticate[MIC.stop :]
    return hmac.digest(key, negotiate + challenge + blank, "md5")


def with_integrity_code(authenticate: bytes, code: bytes) -> bytes:
    """The message with its integrity code filled in."""
    return authenticate[: MIC.start] + code + authenticate[MIC.stop :]


def _codec(flags: int) -> str:
    return "utf-16-le" if flags & _Flag.NTLMSSP_NEGOTIATE_UNICODE else "latin-1"


def _version(flags: int) -> bytes:
    return _VERSION if flags & _Flag.NTLMSSP_NEGOTIATE_VERSION else _NO_VERSION


def _fields(start: int, values: Iterable[bytes]) -> list[bytes]:
    """The descriptions of values that stand one behind the other."""
    fields = []
    for value in values:
        fields.append(_FIELD.pack(len(value), len(value), start))
        start += len(value)
    return fields


def _field(message: bytes, at: int) -> tuple[int, bytes]:
    """Where a field's value is, and the value."""
    length, _, offset = _FIELD.unpack_from(message, at)
    if length and offset + length > len(message):
        raise DecodeError("a field of the NTLM message is cut short", at)
    return offset, message[offset : offset + length]


def _check_head(message: bytes, kind: int, shortest: int) -> None:
    if len(message) < shortest:
        raise DecodeError(f"an NTLM message of {len(message)} octets")
    signature, found = _HEAD.unpack_from(message)
    if signature != SIGNATURE or found != kind:
        raise DecodeError(f"not the NTLM message {kind}")
