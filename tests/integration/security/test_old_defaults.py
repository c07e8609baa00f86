"""A data directory of an earlier version, and what its queues permit afterwards (G84)."""

import asyncio
import json
from pathlib import Path

import pytest

from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.codec.security.descriptor import SecurityDescriptor, SecurityInformation
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.qm.default_security import MIGRATED_KEY
from rpcqm.store.records import Family
from rpcqm.testing import PrivateQueueManager
from tests.support.queue_manager import SETTINGS, RunningQueueManager

QUEUES = 300
"""More than the lines of one kind that the log takes at once."""

OLD = parse_sddl("O:AND:(A;;0xf003f;;;WD)").encode()
CHOSEN = parse_sddl("O:AND:(A;;0xf003f;;;WD)(A;;0x7;;;AN)").encode()
NEW = parse_sddl("O:BAD:(A;;0xf003f;;;BA)(A;;0x7;;;WD)(A;;0x4;;;AN)")
CONFIGURATION = (
    f'name = "{SETTINGS.computer_name}"\n[storage]\nreserve = 1\n[logging]\nformat = "json"\n'
)
PARTS = (
    SecurityInformation.OWNER_SECURITY_INFORMATION | SecurityInformation.DACL_SECURITY_INFORMATION
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """As an earlier version has left it: 300 queues with its default, one that was chosen."""
    directory = tmp_path / "data"
    directory.mkdir(0o700)
    qm = RunningQueueManager(directory)
    for number in range(QUEUES):
        queue = qm.create(rf"private$\old{number}")
        qm.engine.queues.set_security(queue, PARTS, OLD)
    qm.engine.queues.set_security(qm.create(r"private$\chosen"), PARTS, CHOSEN)
    with qm.store.transaction("as an earlier version") as change:
        change.delete(Family.META, MIGRATED_KEY)
    qm.settle()
    qm.stop()
    return directory


def events(queue_manager: PrivateQueueManager, since: int) -> list[str]:
    """The queues that the log names as changed, from a place in it on."""
    lines = map(json.loads, queue_manager.log[since:].splitlines())
    return [line["queue"] for line in lines if "old default permissions" in line["event"]]


def descriptors(queue_manager: PrivateQueueManager) -> dict[str, tuple[str, list[str]]]:
    """Owner, and what Anonymous may, of some queues by the name."""
    found = {}
    for name in ("old0", f"old{QUEUES - 1}", "chosen"):
        shown = json.loads(queue_manager.run("queue", "acl", "show", name, "--json").stdout)
        entries = {entry["sid"]: entry["allowed"] for entry in shown["entries"]}
        found[name] = shown["owner"], entries.get("S-1-5-7", [])
    return found


def exposed(queue_manager: PrivateQueueManager) -> list[str]:
    """The queues that `rpcqm doctor` warns of."""

    async def ask() -> list[str]:
        async with QueueManagerClient(queue_manager.target) as client:
            return await client.maintenance.exposed_queues()

    return asyncio.run(ask())


def path(name: str) -> str:
    return rf"{SETTINGS.computer_name}\private$\{name}"


def test_every_queue_is_changed_once_with_a_line_of_the_log(data: Path) -> None:
    queue_manager = PrivateQueueManager(data, configuration=CONFIGURATION)
    new, chosen = (str(NEW.owner), ["send"]), ("S-1-5-7", ["receive", "send"])
    last = f"old{QUEUES - 1}"
    try:
        queue_manager.start()
        changed = [path(f"old{number}") for number in range(QUEUES)]
        assert sorted(events(queue_manager, 0)) == sorted(changed)
        assert exposed(queue_manager) == [path("chosen")]
        assert descriptors(queue_manager) == {"old0": new, last: new, "chosen": chosen}
        before = len(queue_manager.log)
        queue_manager.restart()
        assert events(queue_manager, before) == []
    finally:
        queue_manager.stop()
    qm = RunningQueueManager(data)
    found = {
        SecurityDescriptor.decode(qm.find(rf"private$\old{n}").security) for n in range(QUEUES)
    }
    assert found == {NEW}
    qm.stop()
