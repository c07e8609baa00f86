"""A queue manager inside the process of a test, restarted on time that the test moves."""

import asyncio
import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rpcqm.client.passwords import nt_hash
from rpcqm.config import Configuration
from rpcqm.config.schema import StorageSection
from rpcqm.service.queue_manager_service import QueueManagerService
from tests.support.accounts import PASSWORD
from tests.support.api.programs import Program
from tests.support.clock import SimulatedClock
from tests.support.loop_thread import LoopThread

BOSS = "boss"


class RestartingService:
    """The service on free ports of loopback, and what an administrator asks by `/api/v1`."""

    def __init__(self, directory: Path) -> None:
        self._configuration = Configuration(
            data_dir=directory / "data",
            name="here",
            epm_port=0,
            rpc_port=0,
            qm2qm_port=-1,
            binary_port=-1,
            dcom_port=-1,
            console_port=0,
            storage=StorageSection(reserve=1),
        )
        self.clock = SimulatedClock()
        self._loop = LoopThread(asyncio.new_event_loop())
        self.start()

    def start(self) -> None:
        self.service = QueueManagerService(self._configuration, clock=self.clock)
        self._loop.run(self.service.start())
        self.program = Program(self.service.ready.endpoints["console"], BOSS, PASSWORD)

    def stop(self) -> None:
        self.program.close()
        self._loop.run(self.service.stop())

    def end(self) -> None:
        self.stop()
        self._loop.end()

    def down(self, milliseconds: int) -> None:
        """Stop, and start again so much later."""
        self.stop()
        self.clock.advance(milliseconds)
        self.start()

    def advance(self, milliseconds: int) -> None:
        """Let time pass while it runs, and run what falls due on the way."""
        self._loop.do(partial(self.clock.advance_with, self.service._engine.timers, milliseconds))

    def add(self, name: str, *groups: str) -> None:
        """An account."""
        accounts = self.service._accounts
        added = self._loop.do(partial(accounts.add, name, nt_hash(PASSWORD), groups))
        self._loop.until(partial(getattr, added, "done"))

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What the administrator is told; the request must succeed."""
        answer = self.program.ask(method, path, body)
        assert answer.status < 300, (method, path, answer)
        return answer.value if answer.body else None

    def send(self, who: str, queue: str, **members: object) -> str:
        """The identifier of a message that somebody sends."""
        program = Program(self.service.ready.endpoints["console"], who, PASSWORD)
        path = f"/queues/-/messages/batch?queue={quote(queue, safe='')}"
        answer = program.ask("POST", path, {"messages": [members]})
        program.close()
        assert answer.status == 201, answer
        return str(answer.value["ids"][0])

    def classes(self, path: str, member: str = "messages") -> list[str]:
        """The classes of messages that a request tells."""
        return [str(each["class"]) for each in self.ask("GET", path)[member]]


@contextlib.contextmanager
def restarting_service(directory: Path) -> Iterator[RestartingService]:
    service = RestartingService(directory)
    try:
        service.add(BOSS, "administrators")
        yield service
    finally:
        service.end()
