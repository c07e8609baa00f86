"""Files for TLS that cannot be used are told with a reason each."""

import hashlib
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from rpcqm.http.tls import ServerContext, TlsFileError, client_context, server_context
from tests.support.certificates import write_tls_files


def reason(certificate: Path, key: Path) -> str:
    with pytest.raises(TlsFileError) as told:
        server_context(certificate, key)
    return str(told.value)


def test_a_file_that_cannot_be_used_is_told_with_its_reason(tmp_path: Path) -> None:
    certificate, key = write_tls_files(tmp_path)
    other = write_tls_files(tmp_path, "other")[1]
    none = tmp_path / "none"
    assert reason(certificate, other) == f"{other} is not the key of {certificate}"
    assert reason(certificate, none).startswith(f"{none} cannot be read: No such file")
    assert reason(none, key).startswith(f"{none} cannot be read: No such file")
    assert reason(key, key) == f"{key} has no certificate in PEM form"
    assert reason(certificate, certificate) == f"{certificate} has no key in PEM form"
    with pytest.raises(TlsFileError, match="has no certificate in PEM form"):
        client_context(key)


def test_an_encrypted_key_asks_nobody_for_its_password(tmp_path: Path) -> None:
    certificate, key = write_tls_files(tmp_path)
    plain = serialization.load_pem_private_key(key.read_bytes(), None)
    key.write_bytes(
        plain.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    assert reason(certificate, key).endswith("is it encrypted?")


@pytest.mark.parametrize(
    ("signed_by", "digest"),
    [
        (hashes.SHA256(), "sha256"),
        (hashes.SHA384(), "sha384"),
        (hashes.SHA512(), "sha512"),
        (None, "sha256"),
    ],
    ids=["SHA-256", "SHA-384", "SHA-512", "none"],
)
def test_what_proofs_are_bound_to_is_a_digest_by_the_hash_of_the_signature(
    tmp_path: Path, signed_by: hashes.SHA256 | None, digest: str
) -> None:
    """RFC 5929, 4.1; a signature of Ed25519 has no hash of its own (G307)."""
    key = (
        ed25519.Ed25519PrivateKey.generate()
        if signed_by is None
        else rsa.generate_private_key(65537, 2048)
    )
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    start = datetime(2025, 1, 1, tzinfo=UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start)
    der = built.sign(key, signed_by).public_bytes(serialization.Encoding.DER)
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.pem = ssl.DER_cert_to_PEM_cert(der).encode() + b"what follows is another one\n"
    assert context.end_point == hashlib.new(digest, der).digest()


def test_versions_before_1_2_are_not_spoken(tmp_path: Path) -> None:
    server, client = server_context(*write_tls_files(tmp_path)), client_context()
    assert server.minimum_version == client.minimum_version == ssl.TLSVersion.TLSv1_2
    assert client.verify_mode is ssl.CERT_REQUIRED
    assert client.check_hostname
