"""A queue for rules of triggers, in memory, and messages in it; time passes when a rule waits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.names.written import format_name
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.remote_read import MessagePacketExtension
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.trigger_report import NumberedRule
from rpcqm.codec.trigger_rule import Mode, TriggerRule
from rpcqm.triggers.conditions import Conditions
from rpcqm.triggers.evaluator import EvaluationError
from rpcqm.triggers.outcome import Outcome, done, failed, trouble
from rpcqm.triggers.progress import Progress
from rpcqm.triggers.queue_access import Send, TriggerQueue
from rpcqm.triggers.rule_worker import RuleWorker, Surroundings
from tests.support.clock import SimulatedClock

PLAIN = MessageAttributes(
    format_name("orders"), MessageIdentifier(UUID(int=7), 1), body=b"forty-two", label="one"
)
Does = Callable[[ReceivedMessage], Outcome]


def received(number: int = 1, **attributes: Any) -> ReceivedMessage:
    """A message with a sequential number, as a client gets it."""
    packet = build_user_message(replace(PLAIN, **attributes))
    return ReceivedMessage(packet, MessagePacketExtension(), number, 0)


class FakeTaken:
    """A message that was taken."""

    def __init__(self, queue: "FakeQueue", message: ReceivedMessage) -> None:
        self._queue, self.message = queue, message

    async def finish(self) -> None:
        self._queue.locked.discard(self.message.lookup_identifier)
        del self._queue.messages[self.message.lookup_identifier]

    async def give_back(self) -> None:
        self._queue.locked.discard(self.message.lookup_identifier)
        self._queue.given_back += 1

    async def put_aside(self, target: str) -> None:
        if target == "gone":
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND)
        self._queue.aside.append((target, self.message.label))
        await self.finish()

    async def send(self, queue: str, message: OutgoingMessage) -> None:
        self._queue.sent.append((queue, message.label))


class FakeQueue:
    """Messages by lookup identifier; `wait` in vain ends the test."""

    def __init__(self, made: int = 5) -> None:
        self.made = made
        self.messages: dict[int, ReceivedMessage] = {}
        self.locked: set[int] = set()
        self.aside: list[tuple[str, str]] = []
        self.sent: list[tuple[str, str]] = []
        self.given_back = 0
        self.when_idle: Callable[[], None] = lambda: None

    def put(self, label: str = "one", number: int | None = None, **attributes: Any) -> int:
        number = len(self.messages) + 1 if number is None else number
        message = received(number, label=label, **attributes)
        self.messages[message.lookup_identifier] = message
        return message.lookup_identifier

    async def next_after(self, lookup_identifier: int) -> ReceivedMessage | None:
        keys = [k for k in self.messages if k > lookup_identifier and k not in self.locked]
        return self.messages[min(keys)] if keys else None

    async def whole(self, lookup_identifier: int) -> ReceivedMessage | None:
        return self.messages.get(lookup_identifier)

    async def take(self, lookup_identifier: int) -> FakeTaken | None:
        if lookup_identifier not in self.messages or lookup_identifier in self.locked:
            return None
        self.locked.add(lookup_identifier)
        return FakeTaken(self, self.messages[lookup_identifier])

    async def send(self, queue: str, message: OutgoingMessage) -> None:
        self.sent.append((queue, message.label))

    async def wait(self, rounds: int) -> None:
        self.when_idle()
        await asyncio.sleep(0)


@dataclass
class FakeActions:
    """Notes for which messages something was done, and answers what a test says."""

    does: Does = lambda message: done("well")
    labels: list[str] = field(default_factory=list)
    absent: str = ""
    most_at_once: int = 0
    hold: asyncio.Event | None = None
    at_once: int = 0

    def missing(self, rule: TriggerRule) -> str:
        return self.absent

    async def act(self, rule: TriggerRule, message: ReceivedMessage, send: Send) -> Outcome:
        self.labels.append(message.label)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.hold is not None:
                await self.hold.wait()
            return self.does(message)
        finally:
            self.at_once -= 1


class FakeEvaluator:
    """Holds for bodies that have the expression in them."""

    error: EvaluationError | None = None

    async def holds(self, kind: str, expression: str, body: bytes) -> bool:
        if self.error is not None:
            raise self.error
        return expression.encode() in body


class World:
    """One rule at work on a queue, until nothing is left to do."""

    def __init__(self, rule: TriggerRule) -> None:
        self.rule = rule
        self.clock = SimulatedClock()
        self.queue = FakeQueue()
        self.actions = FakeActions()
        self.evaluator = FakeEvaluator()
        self.slept: list[float] = []
        self.unusable: list[Exception] = []
        self.progress = Progress(NumberedRule("r", rule).position, rule.mode == Mode.PEEK)
        self.worker = self._worker()

    def _worker(self) -> RuleWorker:
        around = Surroundings(self._open, self.actions, self.clock, self._sleep, lambda: None)
        return RuleWorker(self.rule, self.progress, Conditions(self.rule, self.evaluator), around)

    @asynccontextmanager
    async def _open(self, rule: TriggerRule) -> AsyncIterator[TriggerQueue]:
        if self.unusable:
            raise self.unusable.pop(0)
        yield self.queue

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.slept.append(seconds)
        self.clock.advance(round(seconds * 1000))

    def run(self, idle: int = 1) -> None:
        """Work until the rule has found nothing so often, with nothing waiting to be tried."""
        asyncio.run(self._run(idle))

    async def _run(self, idle: int) -> None:
        worker = self.worker = self._worker()
        left = idle

        def look() -> None:
            nonlocal left
            told = worker.report()
            if not told.running and not told.next_try:
                left -= 1
                if left <= 0:
                    worker.drain()

        self.queue.when_idle = look
        await asyncio.wait_for(worker.run(), 20)

    def restart(self) -> None:
        """Let another service go on where the queue manager knows this one to be."""
        position = self.progress.position()
        self.progress = Progress(position, self.rule.mode == Mode.PEEK)

    def fails(self, *labels: str, times: int = 1_000) -> None:
        """Let messages of these labels fail so often."""
        left = dict.fromkeys(labels, times)

        def does(message: ReceivedMessage) -> Outcome:
            if left.get(message.label, 0) > 0:
                left[message.label] -= 1
                return failed("badly")
            return done("well")

        self.actions.does = does

    def is_in_trouble(self, times: int) -> None:
        """Let nothing work so often."""
        left = times

        def does(message: ReceivedMessage) -> Outcome:
            nonlocal left
            left -= 1
            return trouble("nothing there") if left >= 0 else done("well")

        self.actions.does = does
