"""The process that asks a directory, when it or its controller does not do what it should."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.directory.frames import LONGEST_FRAME
from rpcqm.directory.process import DirectoryError, DirectoryProcess
from rpcqm.directory.reading import Settings, read_root
from rpcqm.directory.replica import LdapReplica
from tests.support.waiting import PATIENCE

T = TypeVar("T")
SILENT = "import time; time.sleep(600)"
DEAD = "raise SystemExit(1)"
LONG = f"import sys; sys.stdout.buffer.write(({LONGEST_FRAME} + 1).to_bytes(4, 'big'))"
ANSWER = """
import sys
while head := sys.stdin.buffer.read(4):
    sys.stdin.buffer.read(int.from_bytes(head, "big"))
    for data in {frames!r}:
        sys.stdout.buffer.write(len(data).to_bytes(4, "big") + data)
    sys.stdout.buffer.flush()
"""


def answering(*frames: bytes) -> str:
    return ANSWER.format(frames=frames)


def with_process(
    program: str, use: Callable[[DirectoryProcess], Awaitable[T]], timeout: float = PATIENCE
) -> T:
    async def run() -> T:
        process = DirectoryProcess(timeout, (sys.executable, "-c", program))
        try:
            return await use(process)
        finally:
            await process.stop()

    return asyncio.run(run())


def refusal(program: str, timeout: float = PATIENCE) -> DirectoryError:
    async def ask(process: DirectoryProcess) -> DirectoryError:
        with pytest.raises(DirectoryError) as caught:
            await process.order("refresh")
        return caught.value

    return with_process(program, ask, timeout)


def test_a_process_that_is_silent_is_ended_and_started_again() -> None:
    async def ask(process: DirectoryProcess) -> int:
        for _ in range(2):
            with pytest.raises(DirectoryError, match=r"not answered for 0\.05 seconds"):
                await process.order("refresh")
        return process.started

    assert with_process(SILENT, ask, 0.05) == 2


@pytest.mark.bound("directory.frame_octets")
@pytest.mark.parametrize(
    ("program", "said"),
    [
        (DEAD, "ended"),
        (LONG, "a frame of 10,485,761 octets"),
        (answering(b"no JSON"), "damaged frame"),
        (answering(b'{"code": "0", "text": ""}'), "no number"),
        (answering(b'{"code": 0, "text": "", "more": []}'), "no object"),
        (answering(b'{"entries": [["CN=x", {"cn": "text"}]]}'), "damaged frame"),
        (answering(b'{"entries": [["CN=x", {"cn": ["\\u0100"]}]]}'), "damaged frame"),
        (answering(b'{"entries": []}'), "finds none"),
        (answering(b"[" * 100_000), "damaged frame"),
    ],
)
def test_what_comes_over_the_pipe_is_checked(program: str, said: str) -> None:
    assert said in str(refusal(program))


def test_a_refusal_keeps_its_code_its_text_and_its_step() -> None:
    error = refusal(answering(b'{"code": 49, "text": "Invalid credentials", "step": "bind"}'))
    assert (error.code, str(error), error.step) == (49, "Invalid credentials", "bind")


def test_an_object_that_is_not_there_is_none() -> None:
    async def ask(process: DirectoryProcess) -> object:
        return await process.read("CN=x", ["cn"])

    assert with_process(answering(b'{"code": 32, "text": ""}'), ask) is None


@pytest.mark.conformance("MQDSSM-element-configuration_nc")
@pytest.mark.parametrize(
    "root",
    [
        {},
        {"root": {}},
        {"root": {"highestcommittedusn": ["many"]}},
        {"root": {"highestcommittedusn": ["1"]}},
        {"root": {"highestcommittedusn": ["1"], "defaultnamingcontext": ["DC=x"]}},
        {"root": []},
        {"root": {"defaultnamingcontext": [7]}},
    ],
)
def test_a_root_without_what_is_needed_is_refused(root: dict[str, object]) -> None:
    with pytest.raises(DirectoryError, match="root DSE"):
        read_root(root)


def test_a_replica_that_has_read_nothing_is_unavailable(tmp_path: Path) -> None:
    replica = LdapReplica(Settings("corp.test"), tmp_path)
    replica.load()
    with pytest.raises(DirectoryUnavailableError, match="nothing was read"):
        replica()
    assert replica.offline
