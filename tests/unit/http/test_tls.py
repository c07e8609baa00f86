"""Files for TLS that cannot be used are told with a reason each."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from rpcqm.http.tls import TlsFileError, client_context, server_context
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


def test_versions_before_1_2_are_not_spoken(tmp_path: Path) -> None:
    server, client = server_context(*write_tls_files(tmp_path)), client_context()
    assert server.minimum_version == client.minimum_version == ssl.TLSVersion.TLSv1_2
    assert client.verify_mode is ssl.CERT_REQUIRED
    assert client.check_hostname
