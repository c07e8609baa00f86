"""A disk that is really full: a small file system in a mount namespace of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from rpcqm.store.fsck import check
from rpcqm.store.settings import MIB
from rpcqm.store.store import EXIT_STATUS
from tests.support.store.stores import Turns

ROOT = Path(__file__).parents[2]
SIZE = 40 * MIB
RESERVE = 16 * MIB
STORE, SERVICE = "tests.crash.full_disk", "tests.crash.full_service"


def on_a_small_disk(
    place: Path, module: str, argument: object, *, keep: Path, size: int = SIZE
) -> "subprocess.CompletedProcess[str]":
    """Run the process on a small file system; what it left is copied to `keep`."""
    disk = place / "disk"
    disk.mkdir()
    script = (
        'mount -t tmpfs -o "size=$1" tmpfs "$2"; '
        '"$3" -m "$6" "$2" "$4"; status=$?; '
        'cp -r "$2/data" "$5"; exit $status'
    )
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    arguments = [str(size), str(disk), sys.executable, str(argument), str(keep), module]
    command = [*unshare, "sh", "-c", script, "sh", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_full_disk_refuses_new_messages_and_recovers_by_itself(tmp_path: Path) -> None:
    run = on_a_small_disk(tmp_path, STORE, RESERVE, keep=tmp_path / "kept")
    assert run.returncode == 0
    seen = json.loads(run.stdout.splitlines()[-1])
    assert seen["first"] * 10_000 > SIZE // 4
    assert seen["free"] > RESERVE // 2
    assert seen["emptied"] == 0
    assert seen["second"] >= seen["first"] // 2
    assert seen["errors"] == 0
    assert check(tmp_path / "kept") == []


def test_without_a_reserve_the_process_ends_unanswered_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    run = on_a_small_disk(tmp_path, STORE, 0, keep=tmp_path / "kept")
    assert run.returncode == EXIT_STATUS
    acknowledged = int((tmp_path / "acknowledged").read_text())
    assert acknowledged * 10_000 > SIZE // 4
    store = Turns(tmp_path / "kept").open()
    assert acknowledged <= store.index(1).count <= acknowledged + 1
    store.close()
    assert check(tmp_path / "kept") == []


def test_one_can_drain_a_queue_manager_whose_disk_another_program_has_filled(
    tmp_path: Path,
) -> None:
    """Also after a start on the disk that was filled again; sends are refused with a sentence."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    keep = tmp_path / "kept"
    run = on_a_small_disk(tmp_path, SERVICE, elsewhere, keep=keep, size=160 * MIB)
    assert run.returncode == 0
    seen = json.loads(run.stdout.splitlines()[-1])
    assert seen["received"] == [20, ""]
    status, said = seen["refused"]
    assert status == 1
    assert "no new message is taken until there is more" in said
    assert seen["lives"]
    assert seen["received_again"] == [20, ""]
    assert seen["log"].count("gave the ballast up so that messages can be removed") == 2
    assert check(keep) == []
