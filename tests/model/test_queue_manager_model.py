"""The real queue manager against the naive one, under random interleavings.

`RPCQM_MODEL_EXAMPLES` and `RPCQM_MODEL_STEPS` make it look deeper.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.enums import MessageSeekAction
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.transaction import Transaction
from rpcqm.base.completion import Completion
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE, QueueShareMode
from tests.model.choices import (
    ACCESS,
    ACKNOWLEDGEMENTS,
    ASKED,
    NAMES,
    ON_HELD,
    OPERATIONS,
    PARTS,
    TIMEOUTS,
    Dice,
    can_join,
    has_messages,
    waits,
)
from tests.model.elements import (
    MCursor,
    MDescriptor,
    MMessage,
    MQueue,
    MTransaction,
    Outcome,
)
from tests.model.naive import NaiveQueueManager
from tests.model.transacting import Transacting
from tests.support.queue_manager import MEMORY, RunningQueueManager


class QueueManagerModel(Transacting, RuleBasedStateMachine):
    """Every step does the same to both and compares what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="rpcqm-model-", dir=MEMORY))
        self.qm = self.running()
        self.naive = NaiveQueueManager(self.qm.clock.now())
        self.calls: list[tuple[Completion[Any], Outcome]] = []
        self.descriptors: list[tuple[OpenQueueDescriptor, MDescriptor]] = []
        self.cursors: list[tuple[Cursor, MCursor]] = []
        self.transactions: list[tuple[UUID, MTransaction]] = []
        self.messages: dict[bytes, Message] = {}
        self.ended: list[tuple[OpenQueueDescriptor, MDescriptor, bytes]] = []
        self.number = 0
        self.bodies: dict[MessageIdentifier, bytes] = {}
        self.structure_changed = True
        self.steps = 0

    def running(self) -> RunningQueueManager:
        """The real queue manager, which begins with nothing."""
        return RunningQueueManager(self.directory)

    def teardown(self) -> None:
        self.qm.stop()
        shutil.rmtree(self.directory)

    @initialize(journaling=st.booleans())
    def begin_with_something(self, journaling: bool) -> None:
        """Two queues, each open for reading, a subqueue, cursors and a transaction."""
        self.qm.create(r"private$\acks")
        self._create("a", True, journaling, None)
        self._create("b", False, journaling, None)
        for name, part in (("a", ""), ("b", ""), ("a", ";one"), ("b", ";two")):
            self._open(self.naive.queues[name], part, "receive", False)
        for number in range(6):
            self.open_cursor(Dice(number))
        self.begin(Dice(0))
        self.settle(Dice(0))

    @rule(operation=st.sampled_from(OPERATIONS), seed=st.integers(0, 0xFFFF_FFFF))
    def step(self, operation: str, seed: int) -> None:
        """The same small seeds come often: what they choose changes from step to step."""
        self.steps += 1
        if operation in ON_HELD:
            self._receive_in_transaction(Dice(seed + self.steps))
        getattr(self, operation)(Dice(seed * 1_009 + self.steps))

    def _queue(self, dice: Dice) -> MQueue:
        return dice.of([self.naive.queues[name] for name in sorted(self.naive.queues)])

    def _descriptor(self, dice: Dice) -> tuple[OpenQueueDescriptor, MDescriptor] | None:
        """An open queue, mostly one that still exists."""
        alive = [pair for pair in self.descriptors if pair[1].queue is not None]
        options = self.descriptors if dice.one_in(8) or not alive else alive
        return dice.of(options) if options else None

    # Queues

    def create(self, dice: Dice) -> None:
        name = dice.of(NAMES)
        if name not in self.naive.queues:
            quota = 1 if dice.one_in(2) else None
            self._create(name, dice.one_in(2), dice.one_in(2), quota)

    def _create(self, name: str, transactional: bool, journaling: bool, quota: int | None) -> None:
        queue = self.qm.engine.queues.new_queue(rf".\private$\{name}")
        queue.transactional, queue.journaling = transactional, journaling
        if quota is not None:
            queue.quota = quota
        self.structure_changed = True
        self.qm.engine.queues.create_queue(queue)
        self.naive.create(name, transactional, journaling, quota)

    def change(self, dice: Dice) -> None:
        """Other quotas, and journaling or not."""
        naive = self._queue(dice)
        real = self.real_queue(naive)
        assert real is not None
        naive.journaling = dice.one_in(2)
        naive.quota, naive.journal_quota = dice.of([None, None, 1]), dice.of([None, None, 0, 1])
        changes = {
            "journaling": naive.journaling,
            "quota": INFINITE if naive.quota is None else naive.quota,
            "journal_quota": INFINITE if naive.journal_quota is None else naive.journal_quota,
        }
        self.structure_changed = True
        self.qm.engine.queues.set_properties(real, changes)

    def delete(self, dice: Dice) -> None:
        if len(self.naive.queues) > 1:
            naive = self._queue(dice)
            real = self.real_queue(naive)
            assert real is not None
            self.structure_changed = True
            self.call(
                lambda: self.qm.engine.queues.delete_queue(real),
                lambda: self.naive.delete(naive.name),
            )

    def open(self, dice: Dice) -> None:
        main, part = self._queue(dice), dice.of(PARTS)
        access = dice.of(["receive", "receive", "receive", "peek", "move"])
        self._open(main, part, access, dice.one_in(6))

    def _open(self, main: MQueue, part: str, access: str, deny: bool) -> None:
        naive: MQueue | None = main
        if part == ";journal":
            naive, access = main.journal, "receive"
        elif part:
            naive = self.naive.subqueue(main, part[1:])
            self.structure_changed = True
        if naive is None:
            return
        target = naive
        name = rf"DIRECT=OS:.\private$\{main.name}{part}"
        share = QueueShareMode.DENY_RECEIVE if deny else QueueShareMode.DENY_NONE
        opened = self.both(
            lambda: self.qm.open(name, ACCESS[access], share),
            lambda: self.naive.open(target, access, deny),
        )
        if opened is not None:
            self.descriptors.append(opened)

    def close(self, dice: Dice) -> None:
        if self.descriptors:
            real, naive = self.descriptors.pop(dice.below(len(self.descriptors)))
            self.qm.engine.opening.close_queue(real)
            self.naive.close(naive)
            self.cursors = [(c, m) for c, m in self.cursors if m.descriptor is not naive]

    def purge(self, dice: Dice) -> None:
        naive = dice.of(self.naive.all_queues())
        real = self.real_queue(naive)
        if real is not None:
            queue = real
            self.call(
                lambda: self.qm.engine.queues.purge_queue(queue),
                lambda: self.naive.purge(naive),
            )

    # Sending

    def enqueue(self, dice: Dice) -> None:
        naive = self._queue(dice)
        joined, transaction = self._join(dice, naive.transactional and not dice.one_in(3))
        self._enqueue(
            naive,
            (joined, transaction),
            priority=dice.of([3, 3, 0, 7]),
            seconds=dice.of([None, None, None, 0, 1, 3]),
            express=joined is None and dice.one_in(4),
            size=dice.of([10, 10, 200]),
            open_when_locked=dice.one_in(4),
            dead_letter=dice.one_in(3),
            source_journal=dice.one_in(4),
            acknowledge=frozenset(asked for asked in ASKED if dice.one_in(4)),
        )
        if dice.one_in(2):
            self.settle(dice)

    def _enqueue(
        self,
        naive: MQueue,
        transactions: tuple[Transaction | None, MTransaction | None],
        *,
        priority: int = 3,
        seconds: int | None = None,
        express: bool = False,
        size: int = 10,
        open_when_locked: bool = False,
        dead_letter: bool = False,
        source_journal: bool = False,
        acknowledge: frozenset[str] = frozenset(),
    ) -> None:
        joined, transaction = transactions
        real = self.real_queue(naive)
        assert real is not None
        self.number += 1
        body = b"%04d" % self.number + bytes(size)
        message = self.qm.compose(
            real,
            body,
            joined,
            priority=priority,
            delivery_guarantee=0 if express else 1,
            time_to_be_received=0xFFFFFFFF if seconds is None else seconds,
            allow_peek_when_locked=open_when_locked,
            negative_journaling_requested=dead_letter,
            positive_journaling_requested=source_journal,
            acknowledgements_requested=sum(ASKED[asked] for asked in acknowledge),
            administration_queue_format_name=ACKNOWLEDGEMENTS if acknowledge else None,
        )
        sent = self.qm.clock.now() // 1000
        expiry = None if seconds is None else (sent + seconds) * 1000
        size = message.stored_size
        copy = MMessage(
            body,
            (0, 0),
            size,
            express,
            expiry,
            open_when_locked,
            transactional=joined is not None,
            dead_letter=dead_letter,
            source_journal=source_journal,
            acknowledge=acknowledge,
        )
        self.messages[body] = message
        self.bodies[message.attributes.identifier] = body
        queue = real
        self.call(
            lambda: self.qm.engine.messages.enqueue_message(queue, message, joined),
            lambda: self.naive.enqueue(naive, copy, priority, transaction),
        )

    def fill(self, dice: Dice) -> None:
        """Several plain messages, visible at once."""
        naive = self._queue(dice)
        for _ in range(1 + dice.below(4)):
            self._enqueue(naive, (None, None))
        self.settle(dice)

    # Reading

    def _receive_in_transaction(self, dice: Dice) -> None:
        """A message that asks for everything, for the steps that need one that is held."""
        ready = [pair for pair in self.descriptors if can_join(pair[1])]
        if not ready:
            return
        real, naive = dice.of(ready)
        queue = naive.queue
        assert queue is not None
        if queue is queue.main and not has_messages(naive):
            joined = self._join(dice, dice.one_in(2))
            self._enqueue(queue, joined, dead_letter=True, acknowledge=frozenset(ASKED))
            if joined[1] is not None:
                self.finish(dice)
            self.settle(dice)
        reader, transaction = self._join(dice, True)
        self.call(
            lambda: self.qm.engine.messages.dequeue_message(real, 0, None, reader),
            lambda: self.naive.receive(naive, 0, None, transaction),
        )

    def receive(self, dice: Dice) -> None:
        opened = self._descriptor(dice)
        if opened is None:
            return
        real, naive = opened
        timeout = dice.of(TIMEOUTS)
        how = dice.of(["plain", "two phases", "two phases", "transaction", "transaction"])
        sensible = naive.queue is not None and naive.queue.main.transactional
        if not sensible and not dice.one_in(4):
            how = how.replace("transaction", "plain")
        joined, transaction = self._join(dice, how == "transaction")
        cursor, naive_cursor = self._cursor(naive, dice, dice.one_in(2))
        number = dice.below(4)
        tag = (real.handle, number) if number else None
        wait = INFINITE if timeout is None else timeout
        two_phase = how == "two phases"
        self.call(
            lambda: self.qm.engine.messages.dequeue_message(
                real, wait, cursor, joined, tag, two_phase
            ),
            lambda: self.naive.receive(naive, timeout, naive_cursor, transaction, tag, two_phase),
        )

    def _cursor(
        self, descriptor: MDescriptor, dice: Dice, wanted: bool
    ) -> tuple[Cursor | None, MCursor | None]:
        found = [pair for pair in self.cursors if pair[1].descriptor is descriptor]
        return dice.of(found) if found and wanted else (None, None)

    def end(self, dice: Dice) -> None:
        reading = [pair for pair in self.descriptors if pair[1].reads]
        ended = [end for end in self.ended if end[1].queue is not None]
        if ended and (dice.one_in(6) or not reading):
            real, naive, body = dice.of(ended)
        elif reading:
            real, naive = dice.of(reading)
            body = dice.of(sorted(naive.reads))
            self.ended = [*self.ended[-3:], (real, naive, body)]
        else:
            return
        delete = dice.one_in(2)
        queue = real.queue_reference
        assert queue is not None
        position = MessagePosition(queue, self._key_in(queue, body))
        self.call(
            lambda: self.qm.engine.messages.dequeue_message_end(real, position, delete),
            lambda: self.naive.end(naive, body, delete),
        )

    def peek(self, dice: Dice) -> None:
        opened = self._descriptor(dice)
        if opened is None:
            return
        real, naive = opened
        timeout = dice.of(TIMEOUTS)
        wait = INFINITE if timeout is None else timeout
        cursor, naive_cursor = self._cursor(naive, dice, not dice.one_in(3))
        number = dice.below(4)
        tag = (real.handle, number) if number else None
        messages = self.qm.engine.messages
        if cursor is not None and dice.one_in(2):
            self.call(
                lambda: messages.peek_next_message(real, cursor, wait, tag),
                lambda: self.naive.peek(naive, timeout, naive_cursor, tag, True),
            )
        else:
            self.call(
                lambda: messages.peek_message(real, wait, cursor, tag),
                lambda: self.naive.peek(naive, timeout, naive_cursor, tag),
            )

    def lookup(self, dice: Dice) -> None:
        opened = self._descriptor(dice)
        if opened is None:
            return
        real, naive = opened
        body = self._body_in(naive.queue, dice)
        if body is None:
            return
        known = body
        action = dice.of(["CURRENT", "FIRST", "PREVIOUS", "NEXT", "LAST"])
        peek = dice.one_in(2)
        how = dice.of(["plain", "two phases", "transaction"])
        joined, transaction = self._join(dice, how == "transaction" and not peek)
        two_phase = how == "two phases"
        self.call(
            lambda: self.qm.engine.messages.read_message_by_lookup_identifier(
                real,
                self.messages[known].lookup_identifier,
                peek,
                MessageSeekAction[f"SEEK_{action}"],
                joined,
                two_phase,
            ),
            lambda: self.naive.lookup(naive, known, action, peek, transaction, two_phase),
        )

    def cancel(self, dice: Dice) -> None:
        there = [pair for pair in self.descriptors if pair[1].queue is not None]
        if not there:
            return
        real, naive = dice.of([pair for pair in there if waits(pair[1])] or there)
        queue, naive_queue = real.queue_reference, naive.queue
        assert queue is not None
        assert naive_queue is not None
        tags = [wait.tag for wait in naive_queue.waiting if wait.tag is not None]
        tag = dice.of(tags) if tags and not dice.one_in(4) else (real.handle, 1 + dice.below(3))
        self.both(
            lambda: self.qm.engine.readers.cancel_waiting_message_read_request(queue, tag),
            lambda: self.naive.cancel(naive_queue, tag),
        )

    def open_cursor(self, dice: Dice) -> None:
        opened = self._descriptor(dice)
        if opened is None:
            return
        real, naive = opened
        cursor, expected = self.qm.engine.readers.open_cursor(real), self.naive.open_cursor(naive)
        assert (cursor is None) == (expected is None)
        if cursor is not None and expected is not None:
            self.cursors.append((cursor, expected))

    def close_cursor(self, dice: Dice) -> None:
        if self.cursors:
            real, naive = dice.of(self.cursors)
            self.qm.engine.readers.close_cursor(real)
            self.naive.close_cursor(naive)

    # Moving

    def move(self, dice: Dice) -> None:
        there = [pair for pair in self.descriptors if pair[1].queue is not None]
        if not there:
            return
        real, naive = dice.of([pair for pair in there if has_messages(pair[1])] or there)
        source, target = naive.queue, None
        assert source is not None
        related = [
            (to_real.queue_reference, to.queue)
            for to_real, to in there
            if to.queue is not None and to.queue.main is source.main and to.queue is not source
        ]
        everything = [(to_real.queue_reference, to.queue) for to_real, to in there]
        to_real, target = dice.of(everything if dice.one_in(5) or not related else related)
        body = self._body_in(source, dice)
        joined, transaction = self._join(dice, dice.one_in(3))
        from_queue = real.queue_reference
        if body is None or from_queue is None or to_real is None or target is None:
            return
        known, to, naive_to = body, to_real, target
        position = MessagePosition(from_queue, self.messages[known].lookup_identifier)
        self.call(
            lambda: self.qm.engine.messages.move_message(position, to, joined),
            lambda: self.naive.move(source, known, naive_to, transaction),
        )

    # Time

    def settle(self, dice: Dice) -> None:
        self.qm.settle()
        self.naive.settle()
        self.structure_changed = False
        self.totals_are_the_same()

    def totals_are_the_same(self) -> None:
        """How large an acknowledgement is, is not the naive one's business."""
        acknowledgements = self.qm.store.index(self.qm.find(r"private$\acks").queue_id)
        assert self.qm.store.total.bytes - acknowledgements.account.bytes == self.naive.total

    def throttle(self, dice: Dice) -> None:
        """Begin Flow Control, something that could send, End Flow Control."""
        self.settle(dice)
        self.qm.engine.begin_flow_control()
        self.naive.throttled = True
        getattr(self, dice.of(["enqueue", "purge", "advance", "finish", "receive"]))(dice)
        self.settle(dice)
        self.qm.engine.end_flow_control()
        self.naive.throttled = False

    def advance(self, dice: Dice) -> None:
        self.settle(dice)
        milliseconds = dice.of([300, 1, 1_000, 5_000])
        self.qm.advance(milliseconds)
        self.naive.advance(milliseconds)

    def restart(self, dice: Dice) -> None:
        self.qm.restart()
        self.naive.restart()
        self._open_again()

    def crash(self, dice: Dice) -> None:
        """Queues come and go in commits of their own: those are settled before."""
        if self.structure_changed:
            self.settle(dice)
        self.both_look_alike()
        self.calls.clear()
        self.qm.crash()
        self.naive.crash()
        self._open_again()

    def _open_again(self) -> None:
        self.descriptors.clear()
        self.cursors.clear()
        self.totals_are_the_same()
        for name in sorted(self.naive.queues):
            self._open(self.naive.queues[name], "", "receive", False)

    # What everybody can see

    @invariant()
    def both_look_alike(self) -> None:
        self.every_call_is_answered_alike()
        self.every_queue_holds_the_same()
        self.every_acknowledgement_is_there()
        self.quotas_count_the_same()


QueueManagerModel.TestCase.settings = settings(
    max_examples=int(os.environ.get("RPCQM_MODEL_EXAMPLES", "50")),
    stateful_step_count=int(os.environ.get("RPCQM_MODEL_STEPS", "80")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

TestQueueManagerModel = QueueManagerModel.TestCase
