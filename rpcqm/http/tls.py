"""Contexts for TLS from files, from version 1.2 on."""

import ssl
from functools import cached_property
from pathlib import Path


class TlsFileError(Exception):
    """A file that cannot be used: its name, and a reason that goes on after it."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path
        self.reason = reason


class ServerContext(ssl.SSLContext):
    """A context that knows what callers can bind a proof of theirs to."""

    pem = b""

    @cached_property
    def end_point(self) -> bytes:
        """`tls-server-end-point` (RFC 5929, 4.1): a digest of the certificate, by its own hash.

        SHA-256 takes the place of MD5 and SHA-1, and of the hash that a signature has not (G307).
        """
        from cryptography import x509  # takes time to load, and few callers need it
        from cryptography.hazmat.primitives import hashes

        (certificate, *_) = x509.load_pem_x509_certificates(self.pem)
        own = certificate.signature_hash_algorithm
        weak = own is None or isinstance(own, hashes.MD5 | hashes.SHA1)
        return certificate.fingerprint(hashes.SHA256() if own is None or weak else own)


def server_context(certificate: Path, key: Path) -> ServerContext:
    """What incoming connections are protected with. Raises TlsFileError."""
    for path in (certificate, key):
        _check_readable(path)
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.pem = certificate.read_bytes()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # OpenSSL would ask the terminal for the password of an encrypted key.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except ssl.SSLError as error:
        raise _refused(certificate, key, error) from error
    return context


def client_context(authorities: Path | None = None) -> ssl.SSLContext:
    """What outgoing connections are protected with: the system's authorities, or those of a file.

    Raises TlsFileError.
    """
    if authorities is not None:
        _check_readable(authorities)
    try:
        context = ssl.create_default_context(cafile=authorities)
    except ssl.SSLError as error:
        assert authorities is not None  # the system's own are read leniently
        raise TlsFileError(authorities, "has no certificate in PEM form") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _check_readable(path: Path) -> None:
    """OpenSSL does not say which of its files it cannot open."""
    try:
        path.read_bytes()
    except OSError as error:
        raise TlsFileError(path, f"cannot be read: {error.strerror}") from error


def _refused(certificate: Path, key: Path, error: ssl.SSLError) -> TlsFileError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return TlsFileError(key, f"is not the key of {certificate}")
    if b"PRIVATE KEY" not in key.read_bytes():
        return TlsFileError(key, "has no key in PEM form")
    if b"BEGIN CERTIFICATE" not in certificate.read_bytes():
        return TlsFileError(certificate, "has no certificate in PEM form")
    return TlsFileError(key, "cannot be used with its certificate; is it encrypted?")
