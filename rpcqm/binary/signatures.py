"""Digital signatures of messages ([MS-MQQB] 3.1.5.8.3, 3.1.7.1.4; [MS-MQMQ] 2.5).

A signature is PKCS #1 v1.5 over the hash of a list of fields. CryptoAPI writes it with its bytes
in reverse; both orders are understood.
"""

from collections.abc import Callable

from Cryptodome.Hash import MD2, MD4
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.enums import HashAlgorithm, MessageAuthenticationLevel
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.signature import signed_properties
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.security.verifying_keys import verifying_key

_HASHES: dict[int, hashes.HashAlgorithm] = {
    HashAlgorithm.MD5: hashes.MD5(),
    HashAlgorithm.SHA1: hashes.SHA1(),
    HashAlgorithm.SHA_256: hashes.SHA256(),
    HashAlgorithm.SHA_512: hashes.SHA512(),
}
_OLD_HASHES: dict[int, tuple[bytes, Callable[[bytes], bytes]]] = {
    HashAlgorithm.MD2: (
        bytes.fromhex("3020300c06082a864886f70d020205000410"),
        lambda data: MD2.new(data).digest(),
    ),
    HashAlgorithm.MD4: (
        bytes.fromhex("3020300c06082a864886f70d020405000410"),
        lambda data: MD4.new(data).digest(),
    ),
}
"""Hashes of this old protocol only: the DigestInfo before the digest, and the digest."""
MD2_OCTETS = 65_536
"""What a signature by the hash MD2 covers.

MD2 takes sixty times as long as other hashes, while nothing else is done (G520).

Bound `signatures.md2_octets` [octets]: a message at port 1801 counts as wrongly signed.
"""


def verified_level(packet: PacketMessage) -> MessageAuthenticationLevel | None:
    """The level that the signature of a message proves: NONE without one, None for a wrong one.

    A signature in the SecurityHeader is 2.0 or else 1.0, one in the MultiQueueFormatHeader 3.0.
    """
    security, multiple = packet.security_header, packet.multi_queue_format_header
    signature = b"" if security is None else security.signature
    levels = [MessageAuthenticationLevel.SIG20, MessageAuthenticationLevel.SIG10]
    if not signature and multiple is not None:
        signature, levels = multiple.signature, [MessageAuthenticationLevel.SIG30]
    if not signature:
        return MessageAuthenticationLevel.NONE
    key = None if security is None else _public_key(security.sender_cert)
    if key is None:
        return None
    algorithm = int(packet.hash_algorithm)
    for level in levels:
        if _matches(key, signature, signed_properties(packet, level), algorithm):
            return level
    return None


def _public_key(certificate: bytes) -> RSAPublicKey | None:
    key = verifying_key(certificate)
    return key if isinstance(key, RSAPublicKey) else None


def _matches(key: RSAPublicKey, signature: bytes, data: bytes, algorithm: int) -> bool:
    return any(
        _verifies(key, candidate, data, algorithm) for candidate in (signature[::-1], signature)
    )


def _verifies(key: RSAPublicKey, signature: bytes, data: bytes, algorithm: int) -> bool:
    try:
        if algorithm in _OLD_HASHES:
            start, digest = _OLD_HASHES[algorithm]
            recovered = key.recover_data_from_signature(signature, PKCS1v15(), None)
            too_long = algorithm == HashAlgorithm.MD2 and len(data) > MD2_OCTETS
            return not too_long and recovered == start + digest(data)
        if algorithm not in _HASHES:
            return False
        key.verify(signature, data, PKCS1v15(), _HASHES[algorithm])
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True


def sign(
    packet: UserMessage,
    key: RSAPrivateKey,
    level: MessageAuthenticationLevel,
    algorithm: int = HashAlgorithm.SHA_512,
) -> bytes:
    """The signature of a message at a level ([MS-MQQB] 3.1.7.1.4).

    DecodeError for a hash that is not made any more (MD2, MD4), or a level without a list.
    """
    if algorithm not in _HASHES:
        raise DecodeError(f"no signatures are made with the hash 0x{algorithm:04X}")
    return key.sign(signed_properties(packet, level), PKCS1v15(), _HASHES[algorithm])[::-1]
