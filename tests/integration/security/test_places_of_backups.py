"""Where a backup goes that an administrator, or a stolen token, asks for over the network."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program, Told

BOSS = ("user", "add", "boss", "--group", "administrators", "--password-stdin")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("backups")
    (made / "outside").mkdir()
    return made


@pytest.fixture(scope="module")
def machine(place: Path) -> Iterator[PrivateQueueManager]:
    section = f'[storage]\nbackup_directory = "{place / "base"}"\n'
    with private_queue_manager(("--console-port", "0"), section) as running:
        running.run(*BOSS, input="secret\n")
        yield running


def backup(machine: PrivateQueueManager, directory: str) -> Told:
    with contextlib.closing(Program(machine.endpoint("console"), "boss")) as program:
        return program.ask("POST", "/queue-manager/backups", {"directory": directory})


def everything(place: Path) -> set[str]:
    return {str(each.relative_to(place)) for each in place.rglob("*")}


def test_a_backup_goes_below_the_directory_by_its_name_or_its_path(
    machine: PrivateQueueManager, place: Path
) -> None:
    base = place / "base"
    assert backup(machine, "monday").status == 204
    assert backup(machine, str(base / "tuesday")).status == 204
    assert backup(machine, "monday/nested").status == 204
    for each in ("monday", "tuesday", "monday/nested"):
        assert (base / each / "backup.json").is_file()
        assert (base / each).stat().st_mode & 0o777 == 0o700


def test_whatever_else_is_asked_for_writes_nothing_and_tells_nothing(
    machine: PrivateQueueManager, place: Path
) -> None:
    base = place / "base"
    base.mkdir(exist_ok=True)
    (base / "empty").mkdir()
    (base / "file").write_text("x")
    for name, to in (("link", place / "outside"), ("loop", base / "loop"), ("up", place)):
        os.symlink(to, base / name)
    os.symlink(base / "nothing", base / "dangling")
    before = everything(place)
    wanted = [
        *(str(place / "elsewhere"), str(place / "outside"), "/etc", "/nowhere/at/all", "/"),
        *("..", "../elsewhere", "a/../../elsewhere", f"{base}/../elsewhere", f"{base}x", str(base)),
        *(".", "./.", "empty", "file", "file/x", "link", "link/x", "up/elsewhere", "loop/x"),
        *("dangling", "missing/x", "x" * 300, "a\0b", "~/x", "//etc/x"),
    ]
    told = {each: backup(machine, each) for each in wanted}
    made = everything(place) - before
    assert made <= {path for path in made if path.startswith("base/~")}, made
    refused = {each: answer for each, answer in told.items() if not each.startswith("~")}
    assert {answer.status for answer in refused.values()} == {409}
    assert len({answer.body for answer in refused.values()}) == 1
    text = next(iter(refused.values())).value["detail"]
    assert "storage.backup_directory" in text
    assert str(place) not in text
    assert "Traceback" not in machine.log


def test_without_the_directory_none_is_made(tmp_path: Path) -> None:
    with private_queue_manager(("--console-port", "0")) as running:
        running.run(*BOSS, input="secret\n")
        assert backup(running, str(tmp_path / "x")).status == 409
        assert backup(running, "x").status == 409
        assert list(tmp_path.iterdir()) == []
        running.run("backup", str(tmp_path / "local"))
        assert (tmp_path / "local" / "backup.json").is_file()
