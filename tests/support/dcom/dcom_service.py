"""A queue manager with COM objects inside the process of a test, with time that the test moves.

The classes are the test's own: `Waiting` has one method that waits until the test lets it go on.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar
from unittest import mock
from uuid import UUID

from rpcqm.base.completion import Completion
from rpcqm.config import Configuration
from rpcqm.config.dcom_section import DcomSection
from rpcqm.config.schema import StorageSection
from rpcqm.dcom.com_object import ComCall, ComObject
from rpcqm.service.dcom import DcomDoor
from rpcqm.service.queue_manager_service import QueueManagerService
from tests.support.accounts import NT_HASH
from tests.support.clock import SimulatedClock
from tests.support.loop_thread import LoopThread

CLSID_WAITING = UUID("6d1f0f5e-0000-4000-8000-000000000001")
DISPENSER = "IMSMQTransactionDispenser3"
TRANSACTION = "IMSMQTransaction3"


class Made(ComObject):
    """What `BeginTransaction` of Waiting gives."""

    INTERFACES: ClassVar[tuple[str, ...]] = (TRANSACTION,)

    def __init__(self) -> None:
        self.ends = 0

    def released(self) -> None:
        self.ends += 1


class Waiting(ComObject):
    """An object whose `BeginTransaction` waits: `waits` are the outcomes it waits for.

    While `at_once`, it gives a new object without waiting, one of `given`.
    """

    INTERFACES: ClassVar[tuple[str, ...]] = (DISPENSER,)
    WAITING = frozenset({"BeginTransaction"})

    def __init__(self, made: "list[Waiting]") -> None:
        made.append(self)
        self.ends = self.abandoned = 0
        self.waits: list[Completion[Made | None]] = []
        self.at_once = False
        self.given: list[Made] = []

    def BeginTransaction(self, call: ComCall) -> "Completion[Made | None] | Made":
        if self.at_once:
            self.given.append(Made())
            return self.given[-1]
        outcome: Completion[Made | None] = Completion()
        self.waits.append(outcome)
        call.call.on_abandoned(self._abandon)
        return outcome

    def _abandon(self) -> None:
        self.abandoned += 1

    def released(self) -> None:
        self.ends += 1


@dataclass
class DcomService:
    """The running service; `made` are all objects of the class that clients have made."""

    service: QueueManagerService
    loop: LoopThread
    clock: SimulatedClock
    made: list[Waiting] = field(default_factory=list)

    @property
    def door(self) -> DcomDoor:
        door = self.service._dcom
        assert door is not None
        return door

    @property
    def activators(self) -> tuple[str, int]:
        return self.service.ready.endpoints["epm"]

    def advance(self, milliseconds: int) -> None:
        """Let time pass, and run what falls due on the way."""
        self.loop.do(partial(self.clock.advance_with, self.service._engine.timers, milliseconds))

    def until(self, condition: Callable[[], bool]) -> None:
        self.loop.until(condition)


@contextlib.contextmanager
def in_process(directory: Path, section: DcomSection | None = None) -> Iterator[DcomService]:
    """A service on free ports of loopback, whose only class is Waiting, with alice and bob."""
    configuration = Configuration(
        data_dir=directory / "data",
        epm_port=0,
        rpc_port=0,
        qm2qm_port=-1,
        binary_port=-1,
        dcom_port=0,
        dcom=section or DcomSection(enabled=True),
        storage=StorageSection(reserve=1),
    )
    clock = SimulatedClock()
    made: list[Waiting] = []
    loop = LoopThread(asyncio.new_event_loop())
    service = QueueManagerService(configuration, clock=clock)
    classes = mock.patch(
        "rpcqm.service.dcom.coclasses", return_value={CLSID_WAITING: partial(Waiting, made)}
    )
    with classes:
        loop.run(service.start())
    try:
        for name in ("alice", "bob"):
            added = loop.do(partial(service._accounts.add, name, bytes.fromhex(NT_HASH)))
            loop.until(partial(getattr, added, "done"))
        yield DcomService(service, loop, clock, made)
    finally:
        loop.run(service.stop())
        loop.end()
