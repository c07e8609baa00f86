"""When certificates of settings end (G659)."""

from datetime import UTC, datetime
from pathlib import Path

from rpcqm.config.load import load
from rpcqm.service.certificate_ends import certificate_ends
from tests.support.certificates import write_tls_files


def test_of_a_file_the_certificate_that_ends_first_counts(tmp_path: Path) -> None:
    early, late = datetime(2030, 1, 2, tzinfo=UTC), datetime(2031, 1, 2, tzinfo=UTC)
    first, key = write_tls_files(tmp_path, "first", end=late)
    second, _ = write_tls_files(tmp_path, "second", end=early)
    both = tmp_path / "both.pem"
    both.write_bytes(first.read_bytes() + second.read_bytes())
    file = tmp_path / "rpcqm.toml"
    file.write_text(
        f'[console]\ncertificate = "{both}"\nkey = "{key}"\n'
        f'[srmp]\ncertificate = "{first}"\nkey = "{key}"\n'
        f'[binary]\nsigning_certificate = "{tmp_path}/none.pem"\n'
    )
    assert certificate_ends(load(file=file, environment={})) == {
        "console.certificate": int(early.timestamp() * 1000),
        "srmp.certificate": int(late.timestamp() * 1000),
    }
