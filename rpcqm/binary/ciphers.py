"""Encrypted bodies ([MS-MQQB] 3.1.5.8.3, 3.1.7.1.5): RC2, RC4 and AES under a key sent with RSA."""

import os
from typing import Any

from Cryptodome.Cipher import ARC2, ARC4
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from rpcqm.base.errors import DecodeError
from rpcqm.binary.blobs import AES_PROVIDER, BASE_PROVIDER, ENHANCED_PROVIDER, SimpleBlob
from rpcqm.codec.packet.enums import EncryptionAlgorithm, PrivacyLevel

PROVIDERS = {
    PrivacyLevel.BASE: BASE_PROVIDER,
    PrivacyLevel.ENHANCED: ENHANCED_PROVIDER,
    PrivacyLevel.ADVANCED: AES_PROVIDER,
}
PREFERRED = {
    PrivacyLevel.BASE: EncryptionAlgorithm.RC4,
    PrivacyLevel.ENHANCED: EncryptionAlgorithm.RC4,
    PrivacyLevel.ADVANCED: EncryptionAlgorithm.AES256,
}
"""The cipher follows from the message's privacy level, not from the peer's keys (G28)."""

_AES_KEYS = {
    EncryptionAlgorithm.AES128: 16,
    EncryptionAlgorithm.AES192: 24,
    EncryptionAlgorithm.AES256: 32,
}
_STREAM_KEYS = {PrivacyLevel.BASE: 5, PrivacyLevel.ENHANCED: 16}
_AES_BLOCK, _RC2_BLOCK = 16, 8


def key_length(level: int, algorithm: int) -> int:
    """Bytes of a symmetric key. Raises DecodeError if the level does not have the cipher."""
    if level == PrivacyLevel.ADVANCED and algorithm in _AES_KEYS:
        return _AES_KEYS[EncryptionAlgorithm(algorithm)]
    if algorithm in (EncryptionAlgorithm.RC2, EncryptionAlgorithm.RC4) and level in _STREAM_KEYS:
        return _STREAM_KEYS[PrivacyLevel(level)]
    raise DecodeError(f"no cipher 0x{algorithm:04X} at privacy level {level}")


def new_key(public_key: RSAPublicKey, level: PrivacyLevel, algorithm: int) -> tuple[bytes, bytes]:
    """A new symmetric key, and the SIMPLEBLOB that carries it to the peer."""
    key = os.urandom(key_length(level, algorithm))
    encrypted = public_key.encrypt(key, PKCS1v15())
    return key, SimpleBlob(algorithm, encrypted).encode()


def received_key(private_key: RSAPrivateKey, blob: bytes, level: int, algorithm: int) -> bytes:
    """The symmetric key of a SIMPLEBLOB; raises DecodeError."""
    simple = SimpleBlob.decode(blob)
    if simple.algorithm != algorithm:
        raise DecodeError("the key is for another cipher")
    try:
        key = private_key.decrypt(simple.encrypted_key, PKCS1v15())
    except ValueError as error:
        raise DecodeError("the key is not for us") from error
    if len(key) != key_length(level, algorithm):
        raise DecodeError(f"a key of {len(key)} bytes")
    return key


def encrypt(body: bytes, key: bytes, algorithm: int) -> bytes:
    """An encrypted body."""
    if algorithm == EncryptionAlgorithm.RC4:
        return _rc4(key, body)
    if algorithm == EncryptionAlgorithm.RC2:
        return bytes(_rc2(key).encrypt(_padded(body, _RC2_BLOCK)))
    encryptor = _aes(key).encryptor()
    return encryptor.update(_padded(body, _AES_BLOCK)) + encryptor.finalize()


def decrypt(body: bytes, key: bytes, algorithm: int) -> bytes:
    """The clear body. Raises DecodeError if it was not encrypted with that key."""
    if algorithm == EncryptionAlgorithm.RC4:
        return _rc4(key, body)
    block = _RC2_BLOCK if algorithm == EncryptionAlgorithm.RC2 else _AES_BLOCK
    if not body or len(body) % block:
        raise DecodeError(f"an encrypted body of {len(body)} bytes")
    if algorithm == EncryptionAlgorithm.RC2:
        return _unpadded(bytes(_rc2(key).decrypt(body)), block)
    decryptor = _aes(key).decryptor()
    return _unpadded(decryptor.update(body) + decryptor.finalize(), block)


def _rc4(key: bytes, data: bytes) -> bytes:
    return bytes(ARC4.new(key).encrypt(data))


def _rc2(key: bytes) -> Any:
    effective: dict[str, Any] = {"effective_keylen": len(key) * 8}
    return ARC2.new(key, ARC2.MODE_CBC, iv=bytes(_RC2_BLOCK), **effective)


def _aes(key: bytes) -> "Cipher[modes.CBC]":
    return Cipher(algorithms.AES(key), modes.CBC(bytes(_AES_BLOCK)))


def _padded(body: bytes, block: int) -> bytes:
    count = block - len(body) % block
    return body + bytes((count,)) * count


def _unpadded(body: bytes, block: int) -> bytes:
    count = body[-1]
    if not 1 <= count <= block or body[-count:] != bytes((count,)) * count:
        raise DecodeError("the body does not decrypt")
    return body[:-count]
