"""Files from strangers: one sentence for each, nothing half done, nothing outside its place."""

import io
import json
import os
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from rocksdict import WriteBatch

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.records import encode_queue
from rpcqm.codec.packet.export_file import MAGIC, MAXIMUM_NOTE, ExportReader, ExportWriter
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.store.database import Database
from rpcqm.store.records import COUNTER, QUEUE_ID, SYNCED_KEY, SYNCED_NUMBER, Family
from rpcqm.store.settings import StoreSettings
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from rpcqm.testing.private import StartFailedError

CONFIGURATION = "[storage]\nreserve = 1\n"
Packets = tuple[list[bytes], list[bytes]]


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=CONFIGURATION) as queue_manager:
        yield queue_manager


@pytest.fixture(scope="module")
def packets(
    queue_manager: PrivateQueueManager, tmp_path_factory: pytest.TempPathFactory
) -> Packets:
    """Three packets of an ordinary queue, one of a transactional queue."""
    found = []
    for queue, options in (("source", ()), ("exact", ("--transactional",))):
        queue_manager.run("queue", "create", queue, *options)
        queue_manager.run("send", queue, "--body", "x", "--count", "3", *options)
        path = tmp_path_factory.mktemp("export") / "file"
        queue_manager.run("queue", "export", queue, str(path))
        with path.open("rb") as file:
            found.append([packet for packet, _ in ExportReader(file)])
    return found[0], found[1]


def exported(*packets: bytes, note: bytes | None = None) -> bytes:
    file = io.BytesIO()
    writer = ExportWriter(file, {})
    for packet in packets:
        if note is None:
            writer.write(packet, {})
        else:
            check = zlib.crc32(packet, zlib.crc32(note))
            file.write(struct.pack("<III", len(note), len(packet), check) + note + packet)
    writer.finish()
    return file.getvalue()


DEEP = b"[" * MAXIMUM_NOTE
HOSTILE: dict[str, Callable[[Packets], bytes]] = {
    "a note that is nested": lambda found: exported(found[0][0], note=DEEP),
    "an opening that is nested": lambda _: struct.pack("<8sII", MAGIC, 1, len(DEEP)) + DEEP,
    "a huge note": lambda _: struct.pack("<8sII", MAGIC, 1, 0xFFFFFFFF),
    "a huge packet": lambda _: exported()[:-16] + struct.pack("<III", 2, 0xFFFFFFF0, 0),
    "an end that lies": lambda found: exported(*found[0])[:-8] + struct.pack("<Q", 1 << 63),
    "an end that is missing": lambda found: exported(*found[0])[:-16],
    "a packet that is none": lambda found: exported(*found[0], b"\x10\0\x01\x01" * 40),
    "a packet in pieces": lambda found: exported(*found[0], found[0][0][:100]),
    "both kinds": lambda found: exported(*found[0], *found[1]),
}


def count(queue_manager: PrivateQueueManager, queue: str) -> int:
    told = queue_manager.run("queue", "show", queue, "--json").stdout
    return int(json.loads(told)["messages"])


def one_sentence(outcome: "subprocess.CompletedProcess[str]") -> str:
    assert outcome.returncode == 1, outcome
    assert outcome.stderr.count("\n") == 1
    assert "should not happen" not in outcome.stderr
    return outcome.stderr


@pytest.mark.parametrize("label", list(HOSTILE))
def test_nothing_of_a_hostile_file_is_imported(
    queue_manager: PrivateQueueManager, packets: Packets, tmp_path: Path, label: str
) -> None:
    queue = "into-" + label.replace(" ", "-")
    queue_manager.run("queue", "create", queue)
    (tmp_path / "file").write_bytes(HOSTILE[label](packets))
    outcome = queue_manager.run("queue", "import", queue, str(tmp_path / "file"), check=False)
    assert "Cannot import" in one_sentence(outcome)
    with (tmp_path / "file").open("rb") as file:
        outcome = queue_manager.run("queue", "import", queue, "-", check=False, stdin=file)
    assert "Cannot import" in one_sentence(outcome)
    assert count(queue_manager, queue) == 0


def test_a_pipe_is_read_to_its_end_first(
    queue_manager: PrivateQueueManager, packets: Packets, tmp_path: Path
) -> None:
    queue_manager.run("queue", "create", "piped")
    for octets, status in ((exported(*packets[0])[:-4], 1), (exported(*packets[0]), 0)):
        (tmp_path / "file").write_bytes(octets)
        with subprocess.Popen(["cat", str(tmp_path / "file")], stdout=subprocess.PIPE) as source:
            outcome = queue_manager.run(
                "queue", "import", "piped", "-", check=False, stdin=source.stdout
            )
        assert outcome.returncode == status
    assert count(queue_manager, "piped") == 3


def test_what_comes_by_a_pipe_is_refused_before_it_is_all_kept(
    queue_manager: PrivateQueueManager,
) -> None:
    """Whoever writes it finds nobody who reads on."""
    queue_manager.run("queue", "create", "endless")
    words = ["head", "-c", str(50 << 20), "/dev/zero"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as source:
        assert source.stdout is not None
        outcome = queue_manager.run(
            "queue", "import", "endless", "-", check=False, stdin=source.stdout
        )
        source.stdout.close()
    assert "holds no exported messages" in one_sentence(outcome)
    assert source.returncode != 0


def test_an_import_that_is_refused_half_way_says_what_it_did(
    queue_manager: PrivateQueueManager, packets: Packets, tmp_path: Path
) -> None:
    """The queue has room for some of the messages only."""
    queue_manager.run("queue", "create", "small", "--quota", "1")
    (tmp_path / "file").write_bytes(exported(*packets[0] * 4))
    outcome = queue_manager.run("queue", "import", "small", str(tmp_path / "file"), check=False)
    said = one_sentence(outcome)
    there = count(queue_manager, "small")
    assert 0 < there < 12
    assert f"{there} messages of the file are in it" in said


def test_what_an_imported_message_names_is_written_to_by_the_right_of_nobody(
    queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    """A file may say that an administrator has sent it here, and where acknowledgements go."""
    closed, opened = "O:BAD:(A;;GA;;;BA)", "O:BAD:(A;;GA;;;BA)(A;;0x4;;;AN)"
    queue_manager.run("queue", "create", "secret", "--sddl", closed)
    queue_manager.run("queue", "create", "told", "--sddl", opened)
    for queue in ("naming", "again"):
        queue_manager.run("queue", "create", queue)
    for to in ("secret", "told"):
        options = ("--ack", "full-receive", "--admin-queue", to)
        queue_manager.run("send", "naming", "--body", "x", *options)
    queue_manager.run("queue", "export", "naming", str(tmp_path / "file"))
    queue_manager.run("queue", "import", "again", str(tmp_path / "file"))
    queue_manager.restart()
    queue_manager.run("receive", "again", "--all")
    assert (count(queue_manager, "secret"), count(queue_manager, "told")) == (0, 1)
    queue_manager.run("receive", "naming", "--all")
    assert (count(queue_manager, "secret"), count(queue_manager, "told")) == (1, 2)


# Backups.


@pytest.fixture
def backup(queue_manager: PrivateQueueManager, tmp_path: Path) -> Path:
    queue_manager.run("backup", str(tmp_path / "backup"))
    return tmp_path / "backup"


def link_a_file(backup: Path) -> None:
    (backup / "secret").symlink_to("/etc/passwd")


def link_a_directory(backup: Path) -> None:
    (backup / "more").symlink_to("/etc")


def link_the_database(backup: Path) -> None:
    shutil.move(backup / "messages", backup.parent / "elsewhere")
    (backup / "messages").symlink_to(backup.parent / "elsewhere")


def link_the_note(backup: Path) -> None:
    (backup / "backup.json").rename(backup.parent / "note")
    (backup / "backup.json").symlink_to(backup.parent / "note")


def link_in_the_database(backup: Path) -> None:
    (backup / "messages" / "000001.sst").symlink_to("/etc/passwd")


def add_a_pipe(backup: Path) -> None:
    os.mkfifo(backup / "messages" / "pipe")


def add_a_pipe_as_note(backup: Path) -> None:
    (backup / "backup.json").unlink()
    os.mkfifo(backup / "backup.json")


def add_a_directory(backup: Path) -> None:
    (backup / "messages" / "a").mkdir()


def add_a_huge_file(backup: Path) -> None:
    with (backup / "messages" / "000001.sst").open("wb") as file:
        file.truncate(1 << 43)


def add_a_nested_note(backup: Path) -> None:
    (backup / "backup.json").write_text("[" * 50_000)


def add_a_huge_note(backup: Path) -> None:
    (backup / "backup.json").write_text('{"a": "' + "x" * 100_000 + '"}')


def add_a_strange_note(backup: Path) -> None:
    (backup / "backup.json").write_text('{"queue_manager": "\\u001b[2J", "messages": 1}')


def add_a_note_without_number(backup: Path) -> None:
    (backup / "backup.json").write_text('{"messages": "many"}')


def say_that_there_are_true_messages(backup: Path) -> None:
    (backup / "backup.json").write_text('{"queue_manager": "a", "messages": true}')


def add_where_a_queue_manager_is(backup: Path) -> None:
    """Commands would speak to that socket, and tell it the hashes of new passwords."""
    told = {"pid": 1, "name": "a", "id": str(UUID(int=1)), "endpoints": {}, "socket": "/tmp/theirs"}
    (backup / "rpcqm.json").write_text(json.dumps(told))


def add_a_mark_of_a_restore(backup: Path) -> None:
    (backup / "restored").write_text("mine")


def add_an_unfinished_restore(backup: Path) -> None:
    (backup / ".restoring").mkdir()
    (backup / ".restoring" / "file").write_text("x")


def make_the_accounts_a_directory(backup: Path) -> None:
    (backup / "accounts").unlink(missing_ok=True)
    (backup / "accounts").mkdir()


def add_a_log_of_a_number_that_is_too_large(backup: Path) -> None:
    (backup / "messages" / "99999999999.log").write_bytes(bytes(100))


def damage_the_database(backup: Path) -> None:
    (backup / "messages" / "CURRENT").write_text("../../../etc/passwd\n")


@pytest.mark.parametrize(
    "change",
    [
        link_a_file,
        link_a_directory,
        link_the_database,
        link_the_note,
        link_in_the_database,
        add_a_pipe,
        add_a_pipe_as_note,
        add_a_directory,
        add_a_huge_file,
        add_a_nested_note,
        add_a_huge_note,
        add_a_strange_note,
        add_a_note_without_number,
        say_that_there_are_true_messages,
        add_where_a_queue_manager_is,
        add_a_mark_of_a_restore,
        add_an_unfinished_restore,
        make_the_accounts_a_directory,
        add_a_log_of_a_number_that_is_too_large,
        damage_the_database,
    ],
)
def test_a_hostile_backup_is_not_restored(
    queue_manager: PrivateQueueManager,
    backup: Path,
    tmp_path: Path,
    change: Callable[[Path], None],
) -> None:
    change(backup)
    outcome = queue_manager.run(
        *("restore", str(backup), "--data-dir", str(tmp_path / "data")), check=False, timeout=20
    )
    assert "Cannot restore" in one_sentence(outcome)
    assert not (tmp_path / "data").exists() or list((tmp_path / "data").iterdir()) == []


def test_a_backup_leads_to_no_file_outside_of_it(
    queue_manager: PrivateQueueManager, backup: Path, tmp_path: Path
) -> None:
    """The end of another database's manifest, which looks torn, would be cut off."""
    (own,) = (backup / "messages").glob("MANIFEST-*")
    other = tmp_path / "other" / own.name
    other.parent.mkdir()
    other.write_bytes(own.read_bytes() + b"torn")
    before = other.read_bytes()
    for named in (str(other), f"../../../other/{own.name}"):
        (backup / "messages" / "CURRENT").write_text(f"{named}\n")
        outcome = queue_manager.run(
            *("restore", str(backup), "--data-dir", str(tmp_path / "data")), check=False
        )
        assert "Cannot restore" in one_sentence(outcome)
        assert other.read_bytes() == before


Records = list[tuple[Family, bytes, bytes]]
HERE = r"here\private$\hostile"
LAST = (1 << 64) - 1


def number(value: int, counter: bytes = b"queue id") -> tuple[Family, bytes, bytes]:
    return Family.META, b"counter:" + counter, COUNTER.pack(value)


def queue_record(queue_id: int = 4000, **changes: object) -> Records:
    """The record of a queue, and a counter that is beyond it."""
    everybody = parse_sddl("O:BAD:(A;;GA;;;WD)").encode()
    queue = Queue(pathname=HERE, security=everybody)
    record = json.loads(encode_queue(queue)) | changes
    return [(Family.QUEUE, QUEUE_ID.pack(queue_id), json.dumps(record).encode()), number(5000)]


def written(backup: Path, records: Records) -> None:
    """Put records into a backup, as whoever has made it may."""
    database = Database(backup, StoreSettings())
    batch = WriteBatch(raw_mode=True)
    for family, key, value in records:
        batch.put(key, value, database.handles[family])
    database.write(batch, sync=False)
    database.close()


NOT_RESTORED: dict[str, Records] = {
    "a queue that is nested": [(Family.QUEUE, QUEUE_ID.pack(4000), DEEP), number(5000)],
    "a queue that is a list": [(Family.QUEUE, QUEUE_ID.pack(4000), b"[]"), number(5000)],
    "a journal that is a text": queue_record(journal_id="x"),
    "a label that is a list": queue_record(label=[]),
    "an identifier that is a number": queue_record(identifier=5),
    "a quota of 40 bits": queue_record(quota=1 << 40),
    "deliveries without end": [
        (family, key, value.replace(b'"kind"', b'"max_deliveries": 1e400, "kind"'))
        for family, key, value in queue_record()
    ],
    "a counter at its end": [number(LAST, b"serial")],
    "a counter of one octet": [(Family.META, b"counter:serial", b"1")],
    "the last of all synced writes": [(Family.META, SYNCED_KEY, SYNCED_NUMBER.pack(LAST))],
    "a synced write of one octet": [(Family.META, SYNCED_KEY, b"1")],
}


@pytest.mark.parametrize("label", list(NOT_RESTORED))
def test_a_backup_with_records_that_nobody_has_written_is_not_restored(
    queue_manager: PrivateQueueManager, backup: Path, tmp_path: Path, label: str
) -> None:
    written(backup, NOT_RESTORED[label])
    outcome = queue_manager.run(
        *("restore", str(backup), "--data-dir", str(tmp_path / "data")), check=False
    )
    assert "Cannot restore" in one_sentence(outcome)


NOT_STARTED: dict[str, Records] = {
    "a queue of an unreadable list": queue_record(security="00"),
    "a part of a journal": [
        *queue_record(journal_id=4001),
        *queue_record(4002, parent_id=4001, pathname=f"{HERE};part"),
    ],
    "an account that is nested": [(Family.META, b"account:eve", DEEP)],
    "an account without a number": [(Family.META, b"account:eve", b'{"name": "eve"}')],
    "a number that is a word": [(Family.META, b"next account identifier", b"many")],
    "a token of nobody": [(Family.META, b"token:x", b"{}")],
    "a queue manager that is nested": [(Family.META, b"queue manager", DEEP)],
    "an object of no kind": [(Family.META, b"directory:Elephant:" + bytes(16), b"{}")],
}


@pytest.mark.parametrize("label", list(NOT_STARTED))
def test_a_restored_queue_manager_says_what_it_cannot_use(
    queue_manager: PrivateQueueManager, backup: Path, tmp_path: Path, label: str
) -> None:
    written(backup, NOT_STARTED[label])
    queue_manager.run("restore", str(backup), "--data-dir", str(tmp_path / "data"))
    restored = PrivateQueueManager(tmp_path / "data", configuration=CONFIGURATION)
    with pytest.raises(StartFailedError):
        restored.start()
    assert restored.log.count("cannot be used, ") == 1
    assert "Traceback" not in restored.log
    assert "should not happen" not in restored.log


LEFT_ALONE: dict[str, Records] = {
    "a queue without a computer": queue_record(pathname="x\x1b[31m"),
    "an outgoing queue to nowhere": [
        (
            Family.QUEUE,
            QUEUE_ID.pack(4000),
            encode_queue(OutgoingQueue(destination_format_name="x\x1b[31m")),
        ),
        number(5000),
    ],
}


@pytest.mark.parametrize("label", list(LEFT_ALONE))
def test_queues_of_names_that_nobody_takes_are_left_alone(
    queue_manager: PrivateQueueManager, backup: Path, tmp_path: Path, label: str
) -> None:
    """An earlier version may have taken the name (G494)."""
    written(backup, LEFT_ALONE[label])
    queue_manager.run("restore", str(backup), "--data-dir", str(tmp_path / "data"))
    restored = PrivateQueueManager(tmp_path / "data", configuration=CONFIGURATION)
    try:
        restored.start()
        told = restored.run("doctor", check=False).stdout
    finally:
        restored.stop()
    assert restored.log.count("a queue cannot be used") == 1
    assert "cannot be used, because this version refuses its name" in told
    assert "\x1b" not in told + restored.log


# Configuration and directory files.

FILES = {
    "nested lists": "a = " + "[" * 5000,
    "nested tables": "a = " + "{a=" * 5000,
    "a dotted key": "a." * 30_000 + "b = 1",
    "a dotted key in quotes": '"!".' * 15_000 + "b = 1",
    "a dotted key of a directory": "[[site]]\n" + "a." * 200_000 + "b = 1",
    "a nested list of a directory": "[[site]]\nname = " + "[" * 100_000,
    "a number": "a = " + "9" * 5000,
    "a number of a directory": "[[site]]\nname = " + "9" * 5000,
    "too large": "#" * 70_000,
    "many keys": "".join(f"a{index}=1\n" for index in range(2500)),
    "many mistakes": "".join(f"[[site]]\nname='{index}'\nx=1\n" for index in range(3000)),
    "a directory that is too large": "[[site]]\n" + "#" * (16 << 20),
}


@pytest.mark.parametrize("label", list(FILES))
def test_a_hostile_file_is_explained_in_time(
    queue_manager: PrivateQueueManager, tmp_path: Path, label: str
) -> None:
    (tmp_path / "file.toml").write_text(FILES[label], "utf-8")
    outcome = queue_manager.run(
        "config", "check", str(tmp_path / "file.toml"), check=False, timeout=40
    )
    assert outcome.returncode == 1
    assert "should not happen" not in outcome.stderr
    assert outcome.stderr.count("\n") <= 103
