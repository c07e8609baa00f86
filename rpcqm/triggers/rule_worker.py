"""Runs one rule: looks at its queue, acts for messages, waits after failures.

With a parallelism of 1, messages are processed in the order of their queue: a failed one is tried
again before any other. With more, others go on meanwhile.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from rpcqm.base.clock import Clock
from rpcqm.base.errors import DecodeError, MQError, RpcFault
from rpcqm.base.log import get_logger
from rpcqm.base.retry import delay_after
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.target import ServerUnreachableError
from rpcqm.codec.trigger_report import LONGEST_OUTCOME, MOST_COUNTED, RuleReport
from rpcqm.codec.trigger_rule import Mode, TriggerRule
from rpcqm.triggers.conditions import Conditions
from rpcqm.triggers.evaluator import EvaluationError
from rpcqm.triggers.outcome import Outcome, Result, trouble
from rpcqm.triggers.progress import Progress
from rpcqm.triggers.queue_access import RuleProblemError, Send, TakenMessage, TriggerQueue

ERRORS = (MQError, RpcFault, DecodeError, ServerUnreachableError)
"""What calls to a queue manager raise."""
LOOK_AGAIN = 60_000
"""Milliseconds after which a rule looks again at messages that other readers may have returned."""
_SHARE = 20
"""Looking again takes at most one part in so many of the time."""
_SECOND = 1_000

_log = get_logger("triggers")

Open = Callable[[TriggerRule], AbstractAsyncContextManager[TriggerQueue]]
Sleep = Callable[[float], Awaitable[None]]


class Acts(Protocol):
    """Runs the action of a rule for a message."""

    def missing(self, rule: TriggerRule) -> str:
        """The reason why a rule cannot work before any message is taken; "" without one."""

    async def act(self, rule: TriggerRule, message: ReceivedMessage, send: Send) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts that all rules share; `tell` is called when there is something to report."""

    open: Open
    actions: Acts
    clock: Clock
    sleep: Sleep
    tell: Callable[[], None]


class RuleWorker:
    """One rule; `run` goes on until `drain`, or until it is cancelled."""

    def __init__(
        self, rule: TriggerRule, progress: Progress, conditions: Conditions, around: Surroundings
    ) -> None:
        self.rule, self.progress = rule, progress
        self._conditions, self._around = conditions, around
        self._clock = around.clock
        self._draining = False
        self._wake = asyncio.Event()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._waiting: dict[int, int] = {}
        """When messages that have failed are tried again (monotonic ms), by lookup identifier."""
        self._error: Exception | None = None
        self._queue_trouble = self._action_trouble = ""
        self._troubles, self._trouble_until = 0, 0
        self._looked_for = 0
        self._look_again_at = self._clock.monotonic() + LOOK_AGAIN
        self._rounds = 0
        self._last_run, self._outcome = 0, ""
        self._done = self._failed = self._poisoned = 0

    # Telling

    def report(self) -> RuleReport:
        """The state of the rule, with the counts since the last report that arrived."""
        due = [*self._waiting.values(), *([self._trouble_until] if self._action_trouble else [])]
        ahead = max(0, min(due) - self._clock.monotonic()) if due else 0
        return RuleReport(
            running=len(self._running),
            last_run=self._last_run,
            outcome=self._outcome,
            trouble=self._queue_trouble or self._action_trouble,
            next_try=self._clock.now() + ahead if due else 0,
            done=self._done,
            failed=self._failed,
            poisoned=self._poisoned,
            position=self.progress.position(),
        )

    def reported(self, told: RuleReport) -> None:
        """Note that a report arrived."""
        self._done -= told.done
        self._failed -= told.failed
        self._poisoned -= told.poisoned

    # Running

    def drain(self) -> None:
        """Begin no more actions; `run` ends after those in progress."""
        self._draining = True
        self._wake.set()

    async def run(self) -> None:
        """Work until `drain`; an unusable queue is tried again."""
        try:
            while not self._draining:
                await self._use_queue()
        finally:
            await self._end_all()

    async def _use_queue(self) -> None:
        try:
            async with self._around.open(self.rule) as queue:
                if not self.progress.begin(queue.made):
                    self._waiting.clear()
                self._queue_trouble = ""
                await self._work(queue)
        except (*ERRORS, RuleProblemError) as error:
            await self._end_all()
            self._error = None
            self._note_queue_trouble(f"{self.rule.queue} cannot be used: {error}")
            await self._until(self._pause(self._trouble_until))

    async def _work(self, queue: TriggerQueue) -> None:
        while not self._draining:
            if self._error is not None:
                raise self._error
            now = self._clock.monotonic()
            if self._trouble_until > now:
                await self._until(self._pause(self._trouble_until))
            elif len(self._running) >= self.rule.parallelism:
                await self._until(*self._running.values())
            else:
                await self._begin_next(queue, now)
        await self._finish_all()
        if self._error is not None:
            raise self._error

    async def _begin_next(self, queue: TriggerQueue, now: int) -> None:
        due = [key for key, at in self._waiting.items() if at <= now]
        if due:
            key = min(due)
            del self._waiting[key]
            self._start(queue, key)
        elif self._waiting and (self.rule.parallelism == 1 or len(self._waiting) >= MOST_COUNTED):
            await self._until(self._pause(min(self._waiting.values())))
        elif (key := await self._timed(self._found(queue)) or 0) != 0:
            self._rounds = 0
            self._start(queue, key)
        else:
            await self._idle(queue)

    async def _idle(self, queue: TriggerQueue) -> None:
        """Wait for messages, for the end of an action, or for the time of a retry."""
        now = self._clock.monotonic()
        if self.rule.mode != Mode.PEEK and now >= self._look_again_at:
            self.progress.look_again()
            self._look_again_at = now + max(LOOK_AGAIN, _SHARE * self._looked_for)
            self._looked_for = 0
        waits: list[Coroutine[Any, Any, None]] = [queue.wait(self._rounds)]
        if self._waiting:
            waits.append(self._pause(min(self._waiting.values())))
        self._rounds += 1
        await self._until(*waits, *self._running.values())

    async def _timed(self, looking: Coroutine[Any, Any, int | None]) -> int | None:
        begun = self._clock.monotonic()
        try:
            return await looking
        finally:
            self._looked_for += self._clock.monotonic() - begun

    async def _found(self, queue: TriggerQueue) -> int | None:
        """The next message that may meet the conditions, None at the end of the queue."""
        progress = self.progress
        after = progress.seen[0]
        while not self._draining and self._error is None:
            message = await queue.next_after(after)
            if message is None:
                return None
            key = message.lookup_identifier
            if progress.has_seen(key):
                after = max(key, progress.seen_in_lane_of(key))
                continue
            after = key
            progress.saw(key)
            if self._is_new(key) and self._conditions.may_hold(message):
                return key
        return None

    def _is_new(self, key: int) -> bool:
        """Whether a message is neither in progress nor given up."""
        given_up = self.rule.poison_after and (
            self.progress.failures.get(key, 0) >= self.rule.poison_after
        )
        return key not in self._running and key not in self._waiting and not given_up

    # One message

    def _start(self, queue: TriggerQueue, key: int) -> None:
        self.progress.outstanding.add(key)
        self._running[key] = asyncio.ensure_future(self._handle(queue, key))
        self._around.tell()

    async def _handle(self, queue: TriggerQueue, key: int) -> None:
        try:
            outcome = await self._outcome_of(queue, key)
        except (*ERRORS, RuleProblemError) as error:
            self._error = error
            self._waiting[key] = self._clock.monotonic()
        except asyncio.CancelledError:
            self._waiting[key] = self._clock.monotonic()
            raise
        else:
            self._settle(key, outcome)
        finally:
            self._running.pop(key, None)
            self._wake.set()
            self._around.tell()

    async def _outcome_of(self, queue: TriggerQueue, key: int) -> Outcome | None:
        """The outcome for a message; None if it is gone, or does not meet the conditions."""
        try:
            if self.rule.mode == Mode.PEEK or self.rule.looks_at_body:
                message = await queue.whole(key)
                if message is None or not await self._conditions.hold(message):
                    return None
                if self.rule.mode == Mode.PEEK:
                    return await self._around.actions.act(self.rule, message, queue.send)
        except EvaluationError as error:
            return self._not_evaluated(key, error)
        if told := self._around.actions.missing(self.rule):
            return trouble(told)
        taken = await queue.take(key)
        return None if taken is None else await self._act_for(taken, key)

    def _not_evaluated(self, key: int, error: EvaluationError) -> Outcome | None:
        """A wrong expression is trouble for every message; a slow one skips this message."""
        if error.is_wrong:
            return trouble(f"a condition cannot be used: {error}")
        _log.warning(
            "a condition of a trigger took too long",
            trigger=self.rule.name,
            queue=self.rule.queue,
            lookup_id=key,
        )
        return None

    async def _act_for(self, taken: TakenMessage, key: int) -> Outcome:
        try:
            outcome = await self._around.actions.act(self.rule, taken.message, taken.send)
        except BaseException:
            with contextlib.suppress(*ERRORS):
                await asyncio.shield(taken.give_back())
            raise
        if outcome.result is Result.DONE or (
            outcome.result is Result.FAILED and self.rule.mode == Mode.RECEIVE
        ):
            await taken.finish()
        elif outcome.result is Result.FAILED and self._is_last_try(key) and self.rule.poison_queue:
            return await self._put_aside(taken, outcome)
        else:
            await taken.give_back()
        return outcome

    async def _put_aside(self, taken: TakenMessage, outcome: Outcome) -> Outcome:
        """Put a message aside; if that is impossible it stays, and the rule waits."""
        target = self.rule.poison_queue
        try:
            await taken.put_aside(target)
        except MQError as error:
            with contextlib.suppress(*ERRORS):
                await taken.give_back()
            return trouble(f"{outcome.told}; it cannot be put aside in {target}: {error}")
        return outcome

    def _is_last_try(self, key: int) -> bool:
        failures = self.progress.failures.get(key, 0) + 1
        return 0 < self.rule.poison_after <= failures

    # What has come of it

    def _settle(self, key: int, outcome: Outcome | None) -> None:
        if outcome is None:
            self.progress.finish(key)
            return
        self._last_run, self._outcome = self._clock.now(), outcome.told[:LONGEST_OUTCOME]
        if outcome.result is Result.TROUBLE:
            self._note_action_trouble(outcome.told)
            self._waiting[key] = self._trouble_until
            return
        self._action_trouble, self._troubles = "", 0
        if outcome.result is Result.DONE:
            self._done += 1
            self.progress.finish(key)
            _log.info("a trigger has acted", trigger=self.rule.name, outcome=outcome.told)
        else:
            self._settle_failure(key, outcome)

    def _settle_failure(self, key: int, outcome: Outcome) -> None:
        self._failed += 1
        count = self.progress.count_failure(key)
        last = self.rule.mode == Mode.RECEIVE or 0 < self.rule.poison_after <= count
        _log.warning(
            "a trigger has failed",
            trigger=self.rule.name,
            queue=self.rule.queue,
            lookup_id=key,
            failures=count,
            outcome=outcome.told,
            given_up=last,
        )
        if not last:
            delay = self._delay(count)
            self._waiting[key] = self._clock.monotonic() + delay
            return
        self.progress.outstanding.discard(key)
        if self.rule.mode == Mode.RECEIVE:
            self.progress.finish(key)
            return
        self._poisoned += 1
        if self.rule.mode == Mode.PEEK or self.rule.poison_queue:
            self.progress.finish(key)

    def _delay(self, failures: int) -> int:
        """Milliseconds until the next try."""
        longest = self.rule.longest_back_off * _SECOND
        return min(delay_after(failures, self.rule.back_off * _SECOND), longest)

    def _note_action_trouble(self, told: str) -> None:
        self._action_trouble = told
        self._wait_for_better_times()

    def _note_queue_trouble(self, told: str) -> None:
        self._queue_trouble = told
        self._wait_for_better_times()
        self._around.tell()

    def _wait_for_better_times(self) -> None:
        self._troubles += 1
        self._trouble_until = self._clock.monotonic() + self._delay(self._troubles)

    # Waiting

    async def _pause(self, until: int) -> None:
        """Sleep until a moment of the monotonic clock."""
        while (left := until - self._clock.monotonic()) > 0:
            await self._around.sleep(left / _SECOND)

    async def _until(self, *events: Coroutine[Any, Any, None] | asyncio.Task[None]) -> None:
        """Wait for one of several events, or for a wake-up; raises the errors of the waits."""
        self._wake.clear()
        own = [asyncio.ensure_future(each) for each in events if not isinstance(each, asyncio.Task)]
        waking = asyncio.ensure_future(self._wake.wait())
        given = [each for each in events if isinstance(each, asyncio.Task)]
        if self._draining or self._error is not None:
            self._wake.set()
        try:
            await asyncio.wait([*own, waking, *given], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waking.cancel()
            for each in own:
                if not each.done():
                    each.cancel()
            outcomes = await asyncio.gather(*own, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome

    async def _finish_all(self) -> None:
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def _end_all(self) -> None:
        """End the actions in progress; their messages return to the queue."""
        running = list(self._running.values())
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._running.clear()
        for key in list(self._waiting):
            self._waiting[key] = min(self._waiting[key], self._clock.monotonic())
