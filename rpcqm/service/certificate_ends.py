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
    for setting in settings():
        path = value_of(configuration, setting) if setting.key in CERTIFICATES else None
        if path and (end := _end_of(Path(str(path)))) is not None:
            found[setting.key] = end
    return found


def _end_of(path: Path) -> int | None:
    # Only now, because cryptography takes time to load.
    from cryptography.x509 import load_pem_x509_certificates

    try:
        certificates = load_pem_x509_certificates(path.read_bytes())
        return min(int(each.not_valid_after_utc.timestamp() * 1000) for each in certificates)
    except (OSError, ValueError):
        return None
