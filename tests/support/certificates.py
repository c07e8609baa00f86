"""Self-signed certificates for tests."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificateIssuerPrivateKeyTypes,
    CertificatePublicKeyTypes,
)

_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "alice")])
_START = datetime(2025, 1, 1, tzinfo=UTC)
_DER = serialization.Encoding.DER


def certificate_of(key: CertificateIssuerPrivateKeyTypes, extended: bool = False) -> bytes:
    """A certificate of a key, DER, with extensions if wanted; the same for the same RSA key."""
    builder = _builder(key.public_key())
    if extended:
        names = x509.SubjectAlternativeName([x509.DNSName("alice.example"), x509.RFC822Name("a@b")])
        builder = builder.add_extension(names, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
    signed = builder.sign(key, hashes.SHA256())
    return signed.public_bytes(_DER)


def certificate_for(
    public_key: CertificatePublicKeyTypes, issuer: CertificateIssuerPrivateKeyTypes
) -> bytes:
    """A certificate of a public key, DER, which somebody else has signed."""
    return _builder(public_key).sign(issuer, hashes.SHA256()).public_bytes(_DER)


def _builder(public_key: CertificatePublicKeyTypes) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_NAME)
        .issuer_name(_NAME)
        .public_key(public_key)
        .serial_number(1)
        .not_valid_before(_START)
        .not_valid_after(_START + timedelta(days=36_500))
    )


def write_tls_files(
    directory: Path,
    name: str = "tls",
    start: datetime = _START,
    end: datetime = _START + timedelta(days=36_500),
    names: Sequence[x509.GeneralName] = (x509.DNSName("localhost"),),
) -> tuple[Path, Path]:
    """A new certificate for localhost, or other names, and its key, as PEM files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    places = directory / f"{name}.pem", directory / f"{name}.key"
    places[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    places[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return places
