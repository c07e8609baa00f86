"""The keys of this queue manager, in PEM files, and the public keys for others."""

import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from rpcqm.base.files import PermissionsTooWide, read_private
from rpcqm.binary.blobs import AES_PROVIDER, BASE_PROVIDER, ENHANCED_PROVIDER, encode_public_keys

_BITS = 2048
_EXPONENT = 65537


@dataclass(frozen=True, slots=True)
class OwnKeys:
    """The keys that this queue manager signs and decrypts with; None where it has no key."""

    signing_key: RSAPrivateKey | None = None
    certificate: bytes = b""
    encryption_key: RSAPrivateKey | None = None

    @classmethod
    def load(cls, signing_key: str, certificate: str, encryption_key: str) -> "OwnKeys":
        """Read PEM files; an empty path means no key. Raises OSError or ValueError."""
        return cls(
            load_key(signing_key) if signing_key else None,
            load_certificate(certificate) if certificate else b"",
            load_key(encryption_key) if encryption_key else None,
        )


def load_key(path: str) -> RSAPrivateKey:
    """Read an RSA key. Raises OSError; ValueError for another kind of file, and if others may
    read it."""
    try:
        octets = read_private(Path(path))
    except PermissionsTooWide as error:
        raise ValueError(f"{path}: {error}") from None
    try:
        key = serialization.load_pem_private_key(octets, None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError(f"{path} holds no RSA key in PEM form that needs no password")
    return key


def load_certificate(path: str) -> bytes:
    """A certificate in DER form. Raises OSError, or ValueError if the file has none."""
    octets = Path(path).read_bytes()
    try:
        return x509.load_pem_x509_certificate(octets).public_bytes(serialization.Encoding.DER)
    except (ValueError, x509.InvalidVersion):
        raise ValueError(f"{path} holds no certificate in PEM form") from None


def create_key(path: Path) -> None:
    """Write a new RSA key that only its owner can read. Raises OSError if the file exists."""
    key = rsa.generate_private_key(_EXPONENT, _BITS)
    octets = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(octets)


def published(key: RSAPrivateKey) -> bytes:
    """The public key as a directory keeps it, for every provider: MQDSPUBLICKEYS."""
    providers = (BASE_PROVIDER, ENHANCED_PROVIDER, AES_PROVIDER)
    return encode_public_keys(dict.fromkeys(providers, key.public_key()))
