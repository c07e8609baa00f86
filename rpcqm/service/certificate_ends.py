"""Until when the certificates are valid that this queue manager shows or signs with (G659)."""

from pathlib import Path

from rpcqm.config import Configuration
from rpcqm.config.schema import settings, value_of

CERTIFICATES = frozenset({"binary.signing_certificate", "srmp.certificate", "console.certificate"})
"""Settings that name a file of certificates."""


def certificate_ends(configuration: Configuration) -> dict[str, int]:
    """The end of each by the key of its setting, in milliseconds since 1970.

    Of a file with several, as with those of its issuers, the one that ends first counts. A file
    that cannot be read is left out: whatever needs it says so.
    """
    found = {}
    for key, path in certificate_files(configuration).items():
        if (end := _end_of(path)) is not None:
            found[key] = end
    return found


def certificate_files(configuration: Configuration) -> dict[str, Path]:
    """The files that the settings name, by the keys of these."""
    named = {
        setting.key: value_of(configuration, setting)
        for setting in settings()
        if setting.key in CERTIFICATES
    }
    return {key: Path(str(path)) for key, path in named.items() if path}


def _end_of(path: Path) -> int | None:
    # Only now, because cryptography takes time to load.
    from cryptography.x509 import load_pem_x509_certificates

    try:
        certificates = load_pem_x509_certificates(path.read_bytes())
        return min(int(each.not_valid_after_utc.timestamp() * 1000) for each in certificates)
    except (OSError, ValueError):
        return None
