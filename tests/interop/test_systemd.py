"""systemd's own opinion of the unit."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rpcqm.cli.unit import unit

FAILOVER = Path(__file__).parents[2] / "packaging/systemd-failover"
EXPOSURE = re.compile(r"Overall exposure level for rpcqm\.service: (\d+\.\d)")


@pytest.fixture
def unit_file(tmp_path: Path) -> Path:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    path = tmp_path / "rpcqm.service"
    path.write_text(unit(Path("/usr/bin/env")))
    return path


def analyze(*words: str) -> str:
    outcome = subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, timeout=60, check=True
    )
    return outcome.stdout + outcome.stderr


def test_systemd_understands_the_unit(unit_file: Path) -> None:
    assert analyze("verify", "--man=no", str(unit_file)) == ""


def test_systemd_understands_what_failover_by_storage_adds(unit_file: Path) -> None:
    place = unit_file.parent
    shutil.copytree(FAILOVER, place, dirs_exist_ok=True)
    units = [str(unit_file), str(place / "var-lib-rpcqm.mount")]
    assert analyze("verify", "--man=no", *units) == ""


def test_the_service_is_hardly_exposed(unit_file: Path) -> None:
    report = analyze("security", "--offline=true", "--no-pager", str(unit_file))
    match = EXPOSURE.search(report)
    assert match is not None
    assert float(match[1]) <= 2.0


def test_the_service_cannot_take_the_whole_machine() -> None:
    limits = dict(
        re.findall(r"^(MemoryHigh|MemoryMax|TasksMax)=(.+)$", unit(Path("/usr/bin/env")), re.M)
    )
    assert limits == {"MemoryHigh": "70%", "MemoryMax": "80%", "TasksMax": "64"}
