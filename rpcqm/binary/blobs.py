"""Keys as CryptoAPI writes them ([MS-MQQB] 2.4.1, 2.4.2; [MS-MQMQ] 2.2.1, 2.2.2); little-endian."""

import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import decode_text, encode_text

_PUBLIC = struct.Struct("<BBHI4sII")
_SIMPLE = struct.Struct("<BBHII")
_DS_KEY = struct.Struct("<III")
_DS_KEYS = struct.Struct("<II")
_CALG_RSA_KEYX = 0xA400
_RSA1 = b"RSA1"
_PUBLIC_TYPE, _SIMPLE_TYPE, _VERSION = 6, 1, 2
_MOST_KEYS = 64

BASE_PROVIDER = "Microsoft Base Cryptographic Provider v1.0"
ENHANCED_PROVIDER = "Microsoft Enhanced Cryptographic Provider v1.0"
AES_PROVIDER = "Microsoft Enhanced RSA and AES Cryptographic Provider"
_PROVIDER_TYPES = {BASE_PROVIDER: 1, ENHANCED_PROVIDER: 1, AES_PROVIDER: 0x18}


def encode_public_key(key: RSAPublicKey) -> bytes:
    """A PUBLICKEYBLOB."""
    numbers, size = key.public_numbers(), key.key_size
    start = _PUBLIC.pack(_PUBLIC_TYPE, _VERSION, 0, _CALG_RSA_KEYX, _RSA1, size, numbers.e)
    return start + numbers.n.to_bytes(size // 8, "little")


def decode_public_key(blob: bytes) -> RSAPublicKey:
    """The key of a PUBLICKEYBLOB; raises DecodeError."""
    if len(blob) < _PUBLIC.size:
        raise DecodeError("PUBLICKEYBLOB is too short")
    kind, version, _, algorithm, magic, bits, exponent = _PUBLIC.unpack_from(blob)
    if (kind, version, algorithm, magic) != (_PUBLIC_TYPE, _VERSION, _CALG_RSA_KEYX, _RSA1):
        raise DecodeError("not a PUBLICKEYBLOB")
    modulus = blob[_PUBLIC.size :]
    if bits != len(modulus) * 8:
        raise DecodeError(f"a modulus of {len(modulus)} bytes, not of {bits} bits")
    try:
        return RSAPublicNumbers(exponent, int.from_bytes(modulus, "little")).public_key()
    except ValueError as error:
        raise DecodeError(f"no RSA key: {error}") from error


@dataclass(frozen=True, slots=True)
class SimpleBlob:
    """A symmetric key, encrypted; as long as the modulus of the key that encrypts it (G28)."""

    algorithm: int
    encrypted_key: bytes

    def encode(self) -> bytes:
        """The SIMPLEBLOB; what RSA gives is big-endian and is turned round."""
        start = _SIMPLE.pack(_SIMPLE_TYPE, _VERSION, 0, self.algorithm, _CALG_RSA_KEYX)
        return start + self.encrypted_key[::-1]

    @classmethod
    def decode(cls, blob: bytes) -> Self:
        """Read a SIMPLEBLOB; raises DecodeError."""
        if len(blob) <= _SIMPLE.size:
            raise DecodeError("SIMPLEBLOB is too short")
        kind, version, _, algorithm, exchange = _SIMPLE.unpack_from(blob)
        if (kind, version, exchange) != (_SIMPLE_TYPE, _VERSION, _CALG_RSA_KEYX):
            raise DecodeError("not a SIMPLEBLOB")
        return cls(algorithm, blob[_SIMPLE.size :][::-1])


def encode_public_keys(keys: dict[str, RSAPublicKey]) -> bytes:
    """MQDSPUBLICKEYS: the keys of a queue manager by their providers."""
    parts = b""
    for provider, key in keys.items():
        name, blob = encode_text(provider), encode_public_key(key)
        kind = _PROVIDER_TYPES.get(provider, 1)
        parts += _DS_KEY.pack(len(blob), len(name), kind) + name + blob
    return _DS_KEYS.pack(_DS_KEYS.size + len(parts), len(keys)) + parts


def decode_public_keys(data: bytes) -> dict[str, RSAPublicKey]:
    """The keys of MQDSPUBLICKEYS by their providers, without keys that are not RSA keys.

    Raises DecodeError if the list itself is damaged. Source: [MS-MQQB] 3.1.7.1.5.2.
    """
    if len(data) < _DS_KEYS.size:
        raise DecodeError("MQDSPUBLICKEYS is too short")
    size, count = _DS_KEYS.unpack_from(data)
    if size != len(data) or count > _MOST_KEYS:
        raise DecodeError(f"MQDSPUBLICKEYS of {size} bytes with {count} keys")
    keys, position = {}, _DS_KEYS.size
    for _ in range(count):
        if position + _DS_KEY.size > len(data):
            raise DecodeError("MQDSPUBLICKEY is too short")
        key_size, name_size, _ = _DS_KEY.unpack_from(data, position)
        position += _DS_KEY.size
        end = position + name_size + key_size
        if end > len(data):
            raise DecodeError("MQDSPUBLICKEY is too short")
        name = decode_text(data[position : position + name_size], "sProviderName")
        with suppress(DecodeError):
            keys[name] = decode_public_key(data[position + name_size : end])
        position = end
    return keys
