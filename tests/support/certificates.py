"""Self-signed certificates for tests."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "alice")])
_START = datetime(2025, 1, 1, tzinfo=UTC)


def certificate_of(key: RSAPrivateKey) -> bytes:
    """A certificate of a key, DER; the same for the same key."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(_NAME)
        .issuer_name(_NAME)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(_START)
        .not_valid_after(_START + timedelta(days=36_500))
    )
    signed = builder.sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.DER)
