"""Who can read what is on the disk, and where passwords are never seen."""

import argparse
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.cli.main import build_parser
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.security.conftest import DEFAULTS, PASSWORDS, add_accounts, filled

OTHERS = stat.S_IRWXG | stat.S_IRWXO


@pytest.fixture(scope="module")
def careless() -> Iterator[PrivateQueueManager]:
    """A queue manager that was started by somebody whose umask lets everybody write."""
    before = os.umask(0)
    try:
        with private_queue_manager(configuration=DEFAULTS) as running:
            add_accounts(running)
            filled(running, "orders")
            yield running
    finally:
        os.umask(before)


def test_nothing_in_the_data_directory_can_be_read_by_others(careless: PrivateQueueManager) -> None:
    """But the socket, where the system tells who calls, the way to it, and where it listens."""
    open_to_others = {
        path.relative_to(careless.data_dir): stat.S_IMODE(path.stat().st_mode)
        for path in (careless.data_dir, *careless.data_dir.rglob("*"))
        if path.stat().st_mode & OTHERS
    }
    public = {".": 0o711, "rpcqm.sock": 0o666, "rpcqm.json": 0o644}
    assert open_to_others == {Path(name): mode for name, mode in public.items()}


def test_a_backup_can_be_read_by_its_owner_only(
    careless: PrivateQueueManager, tmp_path: Path
) -> None:
    careless.run("backup", str(tmp_path / "copy"))
    found = [tmp_path / "copy", *(tmp_path / "copy").rglob("*")]
    assert len(found) > 3
    assert [str(path) for path in found if path.stat().st_mode & OTHERS] == []


def test_no_password_is_in_the_log_or_on_the_disk(careless: PrivateQueueManager) -> None:
    """Of accounts there are the hashes of NTLM, in a file that only its owner reads."""
    host, port = careless.endpoint("epm")
    for password in (PASSWORDS["alice"], "not hers"):
        careless.run(
            *("peek", "orders", "--server", f"{host}:{port}", "--user", "alice"),
            "--password-stdin",
            input=password + "\n",
            check=False,
        )
    secrets = [*PASSWORDS.values(), "not hers"]
    spellings = [each.encode(encoding) for each in secrets for encoding in ("utf-8", "utf-16-le")]
    files = [careless.log_path, *(path for path in careless.data_dir.rglob("*") if path.is_file())]
    for path in files:
        octets = path.read_bytes()
        assert not any(each in octets for each in spellings), path


def options(
    parser: argparse.ArgumentParser, path: str = "rpcqm"
) -> Iterator[tuple[str, str, bool]]:
    """Every option of every command, and whether it takes a value."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from options(sub, f"{path} {name}")
        else:
            for option in action.option_strings:
                yield path, option, action.nargs != 0


def test_no_option_takes_a_password(careless: PrivateQueueManager) -> None:
    """Everybody on the machine reads the command lines of everybody."""
    every = list(options(build_parser()))
    assert len(every) > 100
    asking = [each for each in every if "pass" in each[1] or "secret" in each[1]]
    assert asking
    assert [each for each in asking if each[2]] == []
    outcome = careless.run("user", "add", "eve", "--password", "pa55", check=False)
    assert outcome.returncode == 2
    assert "eve" not in careless.run("user", "list").stdout
