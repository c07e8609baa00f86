"""What administrators are told of the kinds of queues there are ([MS-MQMR] 3.1.4.1)."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rpcqm.adm.directory import DirectoryContents, DirectoryUnavailableError
from rpcqm.codec.properties import ManagementQueueProperty as P
from rpcqm.config.directory import load_directory
from rpcqm.interfaces import qmmgmt
from rpcqm.service import interfaces
from tests.support.qm.directories import DIRECTORY, OWN_QUEUE, write_directory
from tests.support.queue_manager import SETTINGS, RunningQueueManager
from tests.support.rpc.administrator import Administrator
from tests.support.rpc.callers import CallServer, Served

PUBLIC = f"PUBLIC={OWN_QUEUE}"
FOREIGN = DIRECTORY.replace("quota = 4096", "quota = 4096\nforeign = true")


class Source:
    """A directory that can be changed, and out of reach."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self) -> DirectoryContents:
        if not self.path.exists():
            raise DirectoryUnavailableError("cut off")
        return load_directory(self.path)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(write_directory(tmp_path))


@pytest.fixture
def qm(tmp_path: Path, source: Source) -> Iterator[RunningQueueManager]:
    running = RunningQueueManager(tmp_path / "data", replace(SETTINGS, directory=source))
    yield running
    running.stop()


@pytest.fixture
def administrator(qm: RunningQueueManager) -> Administrator:
    return Administrator(
        CallServer(qm, Served("qmmgmt", interfaces.qmmgmt(qm.engine), qmmgmt.POLICY))
    )


@pytest.mark.conformance("MQMR-prop-PROPID_MGMT_QUEUE_XACT", "MQMR-prop-PROPID_MGMT_QUEUE_TYPE")
def test_kinds_of_queues_are_told_apart(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    machine = f"MACHINE={qm.engine.queue_manager.identifier}"
    kinds = {
        PUBLIC: ("PUBLIC", "NO"),
        str(qm.engine.queues.format_name_of(qm.create(r"private$\a"))): ("PRIVATE", "NO"),
        str(qm.engine.queues.format_name_of(qm.create(r"private$\b", transactional=True))): (
            "PRIVATE",
            "YES",
        ),
        f"{machine};DEADLETTER": ("MACHINE", "NO"),
        f"{machine};DEADXACT": ("MACHINE", "YES"),
        f"{machine};JOURNAL": ("MACHINE", "NO"),
    }
    for name, (kind, transactional) in kinds.items():
        assert administrator.of_queue(name, P.PROPID_MGMT_QUEUE_TYPE).value == kind
        assert administrator.of_queue(name, P.PROPID_MGMT_QUEUE_XACT).value == transactional


@pytest.mark.conformance("MQMR-prop-PROPID_MGMT_QUEUE_FOREIGN")
def test_queues_are_foreign_if_the_directory_says_so_of_the_machine(
    qm: RunningQueueManager, administrator: Administrator, source: Source
) -> None:
    private = str(qm.engine.queues.format_name_of(qm.create(r"private$\a")))

    def foreign() -> list[object]:
        names = (PUBLIC, private)
        return [administrator.of_queue(n, P.PROPID_MGMT_QUEUE_FOREIGN).value for n in names]

    assert foreign() == ["NO", "NO"]
    source.path.write_text(FOREIGN)
    qm.engine.directory.check_directory_online()
    assert foreign() == ["YES", "YES"]
    source.path.unlink()
    qm.engine.directory.check_directory_online()
    assert foreign() == ["UNKNOWN", "NO"]
