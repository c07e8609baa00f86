"""The files that settings name and that are read again on a reload: whether they have changed.

A certificate is renewed in its place, so that no setting changes with it.
"""

import hashlib
from pathlib import Path

from rpcqm.config import Configuration
from rpcqm.config.schema import settings, value_of

_READ_AGAIN = frozenset(
    {
        *("security.keytab", "remote.credentials_file"),
        *("binary.signing_key", "binary.encryption_key"),
        *("srmp.certificate", "srmp.key", "srmp.verify"),
        *("console.certificate", "console.key"),
    }
)
"""The directory file is compared where it is read."""


def versions(configuration: Configuration) -> dict[str, bytes]:
    """The digests of the files, by the keys of their settings; of those that can be read."""
    found = {}
    for setting in settings():
        path = value_of(configuration, setting) if setting.key in _READ_AGAIN else None
        if path and (digest := _digest(Path(str(path)))) is not None:
            found[setting.key] = digest
    return found


def digest_of_all(configuration: Configuration) -> str:
    """A digest of the contents of all of them, by which nodes of a cluster are compared."""
    found = hashlib.sha256()
    for key, digest in sorted(versions(configuration).items()):
        found.update(key.encode() + digest)
    return found.hexdigest()[:16]


def _digest(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None
