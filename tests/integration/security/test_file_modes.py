"""Files that hold bodies or keys are for their owner alone, and no link leads them elsewhere."""

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.binary.own_keys import create_key
from rpcqm.testing import PrivateQueueManager, private_queue_manager

CONFIGURATION = "[storage]\nreserve = 1\n"
Outcome = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the capture goes; somebody has left a file there that everybody reads."""
    path = tmp_path_factory.mktemp("recorded") / "served.pcapng"
    path.write_bytes(b"old")
    path.chmod(0o666)
    return path


@pytest.fixture(scope="module")
def queue_manager(recorded: Path) -> Iterator[PrivateQueueManager]:
    options = ("--capture", str(recorded))
    with private_queue_manager(options, CONFIGURATION) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        queue_manager.run("send", "orders", "--body", "secret")
        yield queue_manager


@pytest.fixture
def run(queue_manager: PrivateQueueManager) -> Callable[..., Outcome]:
    """Run a command that would let everybody read and write what it makes."""
    return lambda *words: queue_manager.run(*words, check=False, umask=0)


def lookup_identifier(queue_manager: PrivateQueueManager) -> str:
    line = queue_manager.run("peek", "orders").stdout.splitlines()[1]
    return line.split()[0]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def writers(target: Path, recorded: Path) -> dict[str, tuple[str, ...]]:
    """Commands that write a file which holds bodies."""
    return {
        "export": ("queue", "export", "orders", str(target)),
        "json": ("capture", "export", str(recorded), "--output", str(target)),
        "parquet": (
            "capture",
            "export",
            str(recorded),
            "--format",
            "parquet",
            "--output",
            str(target),
        ),
    }


WRITERS = list(writers(Path(), Path()))


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_written_is_for_its_owner(
    run: Callable[..., Outcome], recorded: Path, tmp_path: Path, writer: str
) -> None:
    target = tmp_path / "file"
    words = writers(target, recorded)[writer]
    assert run(*words).returncode == 0
    assert mode(target) == 0o600
    target.write_bytes(b"")
    target.chmod(0o666)
    assert run(*words).returncode == 0
    assert (mode(target), target.stat().st_size > 0) == (0o600, True)
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("victim_is_there", [True, False])
def test_no_link_is_followed(
    run: Callable[..., Outcome],
    recorded: Path,
    tmp_path: Path,
    writer: str,
    victim_is_there: bool,
) -> None:
    target, victim = tmp_path / "file", tmp_path / "victim"
    if victim_is_there:
        victim.write_bytes(b"mine")
    target.symlink_to(victim)
    outcome = run(*writers(target, recorded)[writer])
    assert outcome.returncode == 1
    assert "it is a link, and links are not followed" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert target.is_symlink()
    assert (victim.read_bytes() if victim_is_there else victim.exists()) in (b"mine", False)


@pytest.mark.parametrize("writer", WRITERS)
def test_nothing_is_written_into_a_pipe_that_is_there(
    run: Callable[..., Outcome], recorded: Path, tmp_path: Path, writer: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    outcome = run(*writers(tmp_path / "pipe", recorded)[writer])
    assert outcome.returncode == 1
    assert "it is no ordinary file" in outcome.stderr


@pytest.mark.parametrize("form", ["body", "json", "hex", "table"])
def test_files_of_messages_are_for_their_owner(
    run: Callable[..., Outcome], queue_manager: PrivateQueueManager, tmp_path: Path, form: str
) -> None:
    directory = tmp_path / "inbox"
    outcome = run("peek", "orders", "--output", str(directory), "--format", form)
    written = Path(outcome.stdout.strip())
    assert written.parent == directory
    assert (mode(directory), mode(written)) == (0o700, 0o600)
    written.chmod(0o666)
    assert run("peek", "orders", "--output", str(directory), "--format", form).returncode == 0
    assert mode(written) == 0o600
    assert list(directory.iterdir()) == [written]


def test_a_message_stays_where_a_link_would_lead_it_elsewhere(
    run: Callable[..., Outcome], queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    number = lookup_identifier(queue_manager)
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / f"{number}.body").symlink_to(tmp_path / "victim")
    outcome = run("receive", "orders", "--output", str(tmp_path))
    assert outcome.returncode == 1
    assert "links are not followed; the message stays in the queue" in outcome.stderr
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert lookup_identifier(queue_manager) == number


def test_what_is_recorded_is_for_its_owner(
    queue_manager: PrivateQueueManager, recorded: Path
) -> None:
    assert mode(recorded) == 0o600
    assert recorded.read_bytes().startswith(b"\x0a\x0d\x0d\x0a")


def test_nothing_is_recorded_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "served.pcapng").symlink_to(tmp_path / "victim")
    queue_manager = PrivateQueueManager(tmp_path / "data")
    outcome = queue_manager.run(
        *("serve", "--data-dir", str(tmp_path / "data")),
        *("--epm-port", "0", "--rpc-port", "0", "--qm2qm-port", "0", "--binary-port", "0"),
        *("--capture", str(tmp_path / "served.pcapng")),
        check=False,
    )
    assert outcome.returncode == 1
    assert "it is a link, and links are not followed" in outcome.stderr
    assert not (tmp_path / "victim").exists()


def test_a_backup_is_for_its_owner(run: Callable[..., Outcome], tmp_path: Path) -> None:
    assert run("backup", str(tmp_path / "backup")).returncode == 0
    assert mode(tmp_path / "backup") == 0o700
    (tmp_path / "backup" / "messages").chmod(0o777)
    for path in (tmp_path / "backup").rglob("*"):
        if path.is_file():
            path.chmod(0o666)
    outcome = run("restore", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "data"))
    assert outcome.returncode == 0, outcome.stderr
    restored = list((tmp_path / "data").rglob("*"))
    assert {mode(path) for path in restored if path.is_file()} == {0o600}
    assert {mode(path) for path in restored if path.is_dir()} == {0o700}


# Keys.

KEYS = ("signing_key", "encryption_key")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    create_key(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o644)
    return tmp_path / "key.pem"


def configured(setting: str, key: Path) -> str:
    return f'{CONFIGURATION}[binary]\n{setting} = "{key}"\n'


def sentence(key: Path) -> str:
    return f"{key}: others may read it (mode 0644): `chmod 600 {key}`"


@pytest.mark.parametrize("setting", KEYS)
def test_a_key_that_others_read_is_refused(tmp_path: Path, key: Path, setting: str) -> None:
    (tmp_path / "rpcqm.toml").write_text(configured(setting, key))
    queue_manager = PrivateQueueManager(tmp_path / "data")
    where = ("--config", str(tmp_path / "rpcqm.toml"), "--data-dir", str(tmp_path / "data"))
    outcome = queue_manager.run("serve", *where, check=False)
    assert outcome.returncode == 1
    assert sentence(key) in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    outcome = queue_manager.run("doctor", *where, check=False)
    assert sentence(key) in outcome.stdout
    key.chmod(0o600)
    outcome = queue_manager.run("doctor", *where, check=False)
    assert f"{key} can be read, and only by its owner." in outcome.stdout


@pytest.mark.parametrize("setting", KEYS)
def test_a_key_that_others_read_is_refused_on_reload(key: Path, setting: str) -> None:
    with private_queue_manager(configuration=CONFIGURATION) as queue_manager:
        said = queue_manager.reload(configured(setting, key))
        assert "others may read it (mode 0644)" in said
