"""Runs rules: reads them from the queue manager, and reports their state."""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import ServerUnreachableError
from rpcqm.codec.trigger_report import Answer, NumberedRule, Report
from rpcqm.codec.trigger_rule import Mode, TriggerRule
from rpcqm.triggers.conditions import Conditions
from rpcqm.triggers.evaluator import Evaluates
from rpcqm.triggers.progress import Progress
from rpcqm.triggers.queue_access import TriggerQueue, open_queue
from rpcqm.triggers.rule_worker import ERRORS, Acts, RuleWorker, Sleep, Surroundings

REPORTED_EVERY = 1.0
"""Seconds between reports; events are reported sooner."""
SOONEST = 0.1
HELD_WITHOUT_ANSWER = 10_000
"""Milliseconds without an answer, after which the actions in progress are ended: another service
may begin after fifteen seconds (G642)."""
GRACE = 10.0
"""Seconds for actions in progress when the service is stopped."""

_log = get_logger("triggers")

Connect = Callable[[], QueueManagerClient]
OpenAt = Callable[[QueueManagerClient, TriggerRule], AbstractAsyncContextManager[TriggerQueue]]


@dataclass(slots=True)
class _Working:
    """A rule that runs."""

    worker: RuleWorker
    task: asyncio.Task[None]


class TriggerService:
    """Runs the rules of one queue manager until `stop`; `connect` makes a client of it."""

    def __init__(
        self,
        connect: Connect,
        actions: Acts,
        evaluator: Evaluates,
        clock: Clock,
        sleep: Sleep,
        open_at: OpenAt = open_queue,
    ) -> None:
        self._connect = connect
        self._open_at = open_at
        self._evaluator = evaluator
        self._clock = clock
        self._sleep = sleep
        self._around = Surroundings(self._opened, actions, clock, sleep, self._tell)
        self._instance = secrets.token_hex(8)
        self._holder = f"{socket.gethostname()}, process {os.getpid()}"
        self._client: QueueManagerClient | None = None
        self._generation = -1
        self._working: dict[str, _Working] = {}
        self._drained: dict[str, _Working] = {}
        """Earlier versions of changed rules, which run to their end."""
        self._ending: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._answered = clock.monotonic()
        self._other = ""
        self._lost = False

    def stop(self) -> None:
        """Begin no more actions, and end when those in progress have ended, or after `GRACE`."""
        self._stopping.set()
        self._changed.set()

    async def run(self) -> None:
        """Work until `stop`; raises MQError if the account may not run triggers."""
        try:
            while not self._stopping.is_set():
                await self.synchronize()
                await self._pause()
            await self._finish()
        finally:
            await self._end_all()
            await self._disconnect()

    def _tell(self) -> None:
        self._changed.set()

    async def _pause(self) -> None:
        """Wait until there is something to report, or until a report is due."""
        await self._sleep(SOONEST)
        waiting = asyncio.ensure_future(self._changed.wait())
        timer = asyncio.ensure_future(self._sleep(REPORTED_EVERY))
        try:
            await asyncio.wait([waiting, timer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            timer.cancel()
            await asyncio.gather(waiting, timer, return_exceptions=True)

    # The queue manager

    async def synchronize(self, stops: bool = False) -> None:
        """Report, and apply changes of the rules."""
        self._changed.clear()
        at_work = {**self._drained, **self._working}
        told = {identifier: each.worker.report() for identifier, each in at_work.items()}
        report = Report(self._instance, self._holder, self._generation, stops, told)
        try:
            answer = await self._client_here().triggers.report(report)
        except ERRORS as error:
            await self._note_silence(error)
        else:
            await self._take(answer)
            if not answer.other:
                for identifier, each in told.items():
                    at_work[identifier].worker.reported(each)

    def _client_here(self) -> QueueManagerClient:
        if self._client is None:
            self._client = self._connect()
        return self._client

    @asynccontextmanager
    async def _opened(self, rule: TriggerRule) -> AsyncIterator[TriggerQueue]:
        async with self._open_at(self._client_here(), rule) as queue:
            yield queue

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _note_silence(self, error: Exception) -> None:
        """Try again later; end the actions in progress after a long time without an answer."""
        if isinstance(error, MQError) and error.status is HResult.MQ_ERROR_ACCESS_DENIED:
            raise error
        if not self._lost:
            self._lost = True
            _log.warning("the queue manager does not answer", reason=str(error))
        if isinstance(error, ServerUnreachableError):
            await self._disconnect()
        if self._clock.monotonic() - self._answered >= HELD_WITHOUT_ANSWER:
            await self._end_all()

    async def _take(self, answer: Answer) -> None:
        self._answered = self._clock.monotonic()
        if self._lost:
            self._lost = False
            _log.info("the queue manager answers again")
        if answer.other:
            await self._wait_for(answer.other)
            return
        if self._other:
            _log.info("the other service of triggers has stopped; this one works now")
            self._other = ""
        if answer.rules is not None:
            self._generation = answer.generation
            self._apply(answer.rules)

    async def _wait_for(self, other: str) -> None:
        """Wait while another service works, and log that once."""
        if other != self._other:
            self._other = other
            _log.warning("another service of triggers works; this one waits", other=other)
        await self._end_all()

    # Rules

    def _apply(self, rules: tuple[NumberedRule, ...]) -> None:
        known = {each.identifier for each in rules}
        self._drained = {key: each for key, each in self._drained.items() if key in known}
        wanted = {each.identifier: each for each in rules if each.rule.enabled}
        for identifier, working in list(self._working.items()):
            new = wanted.get(identifier)
            if new is None or new.rule != working.worker.rule:
                self._drain(identifier)
        for identifier, numbered in wanted.items():
            if identifier not in self._working:
                self._begin(numbered)

    def _drain(self, identifier: str) -> None:
        working = self._working.pop(identifier)
        working.worker.drain()
        self._drained[identifier] = working
        self._ending.add(working.task)
        working.task.add_done_callback(self._ending.discard)

    def _begin(self, numbered: NumberedRule) -> None:
        identifier, rule = numbered.identifier, numbered.rule
        before = self._drained.pop(identifier, None)
        if before is None:
            progress = Progress(numbered.position, keeps=rule.mode == Mode.PEEK)
        else:
            progress = before.worker.progress
        conditions = Conditions(rule, self._evaluator)
        worker = RuleWorker(rule, progress, conditions, self._around)
        task = asyncio.ensure_future(_work(worker, None if before is None else before.task))
        task.add_done_callback(lambda ended: self._note_end(identifier, ended))
        self._working[identifier] = _Working(worker, task)

    def _note_end(self, identifier: str, ended: asyncio.Task[None]) -> None:
        """Restart a rule that ended by an internal error: it must not stop for ever."""
        if ended.cancelled() or ended.exception() is None:
            return
        _log.error("a trigger ended by an error", exc_info=ended.exception())
        if identifier in self._working and self._working[identifier].task is ended:
            del self._working[identifier]
            self._generation = -1

    async def _finish(self) -> None:
        """End in order: give actions in progress some time, and report to the queue manager."""
        for identifier in list(self._working):
            self._working[identifier].worker.drain()
        tasks = [*(each.task for each in self._working.values()), *self._ending]
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE)
        if not self._other:
            await self._end_tasks()
            await self.synchronize(stops=True)

    async def _end_tasks(self) -> None:
        tasks = [*(each.task for each in self._working.values()), *self._ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _end_all(self) -> None:
        """End everything that is under way; messages go back to their queues."""
        await self._end_tasks()
        self._working.clear()
        self._drained.clear()
        self._generation = -1


async def _work(worker: RuleWorker, before: asyncio.Task[None] | None) -> None:
    """Work on a rule once what was begun by its earlier form has ended."""
    if before is not None:
        await asyncio.wait([before])
    await worker.run()
