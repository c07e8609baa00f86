"""The process that writes into a directory, when its controller does not do what it should."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from rpcqm.adm.directory_object import Site
from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.directory.reading import Settings
from rpcqm.directory.writer import LdapWriter
from tests.support.directory import small_worker
from tests.support.directory.small_worker import OWN
from tests.support.waiting import PATIENCE

SUCCESS = DirectoryOperationResult.SUCCESS
NOT_CONNECTED = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
OFFERS = f"CN=offers,{OWN}"


def with_writer(
    path: Path,
    use: Callable[[LdapWriter], Awaitable[None]],
    *servers: str,
    timeout: float = PATIENCE,
    permissions: bool = False,
) -> None:
    async def run() -> None:
        settings = Settings("corp.test", servers, timeout=timeout, principal="QM1$@CORP.TEST")
        machine = QueueManager(computer_name="QM1", identifier=uuid4())
        command = (sys.executable, small_worker.__file__, str(path))
        writer = LdapWriter(settings, machine, permissions=permissions, command=command)
        try:
            await use(writer)
        finally:
            await writer.stop()

    asyncio.run(run())


def queue(**attributes: Any) -> Queue:
    return Queue(pathname=r"QM1\offers", **attributes)


async def answered(completion: Completion[DirectoryAnswer]) -> DirectoryAnswer:
    done = asyncio.Event()
    completion.add_done_callback(lambda _: done.set())
    await asyncio.wait_for(done.wait(), PATIENCE)
    return completion.result()


def objects(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "objects"


def test_what_a_read_only_controller_refuses_another_one_takes(path: Path) -> None:
    async def use(writer: LdapWriter) -> None:
        answer = await answered(writer.create(queue()))
        assert answer.result is SUCCESS
        assert answer.identifier is not None
        again = await answered(writer.write(queue(identifier=answer.identifier), ["quota"]))
        assert again.result is SUCCESS

    with_writer(path, use, "readonly", "good")
    assert OFFERS in objects(path)


def test_a_domain_of_read_only_controllers_says_so(path: Path) -> None:
    async def use(writer: LdapWriter) -> None:
        answer = await answered(writer.create(queue()))
        assert answer.result is NOT_CONNECTED
        assert "read-only" in answer.reason

    with_writer(path, use, "readonly")


def test_nobody_waits_longer_than_the_limit(path: Path) -> None:
    """Not even those who wait behind the one that is not answered."""

    async def use(writer: LdapWriter) -> None:
        answers = [await answered(each) for each in [writer.create(queue()) for _ in range(5)]]
        assert {answer.result for answer in answers} == {NOT_CONNECTED}

    with_writer(path, use, "silent", timeout=LIMIT)


LIMIT = 1.0


def test_a_queue_that_was_added_without_an_answer_is_taken_over_and_not_added_again(
    path: Path,
) -> None:
    async def lost(writer: LdapWriter) -> None:
        assert (await answered(writer.create(queue(quota=5)))).result is NOT_CONNECTED

    async def again(writer: LdapWriter) -> None:
        answer = await answered(writer.create(queue(quota=7)))
        assert answer.result is SUCCESS
        assert answer.steps == (f"add {OFFERS}", f"set mSMQQueueQuota of {OFFERS}")

    with_writer(path, lost, "deaf", timeout=LIMIT)
    before = objects(path)
    with_writer(path, again, "good")
    assert objects(path)[OFFERS]["objectguid"] == before[OFFERS]["objectguid"]
    assert objects(path)[OFFERS]["msmqqueuequota"] == ["7"]


@pytest.mark.conformance("MQDSSM-ldap-set-security")
def test_permissions_are_written_alone_and_without_owner_and_group(path: Path) -> None:
    first, second = (parse_sddl(f"D:(A;;{right};;;WD)").encode() for right in ("0x20", "0x27"))

    async def use(writer: LdapWriter) -> None:
        made = await answered(writer.create(queue(security=first)))
        assert made.identifier is not None
        changed = queue(identifier=made.identifier, security=second)
        answer = await answered(writer.write(changed, ["security"]))
        assert answer.steps == (f"set the permissions of {OFFERS}",)

    with_writer(path, use, "good", permissions=True)
    assert objects(path)[OFFERS]["parts"] == [str(DACL_SECURITY_INFORMATION)]


DACL_SECURITY_INFORMATION = 4


def test_what_is_not_published_is_not_written(path: Path) -> None:
    async def use(writer: LdapWriter) -> None:
        assert writer.creates(queue())
        assert not writer.creates(Site())
        assert not writer.creates(QueueManager(identifier=uuid4()))
        answer = await answered(writer.delete(Site()))
        assert answer.result is DirectoryOperationResult.GENERIC_ERROR

    with_writer(path, use, "good")
    assert objects(path) == {}
