"""The sending side of outgoing queues against a naive one, under random interleavings.

Messages are taken, given back, delivered, refused, acknowledged at last, purged and expire, over
restarts and crashes. `RPCQM_MODEL_EXAMPLES` makes it look deeper.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.codec.packet.enums import MessageClass
from tests.model.choices import Dice
from tests.support.qm.sending import keep_sending
from tests.support.queue_manager import MEMORY, RunningQueueManager

NAME = r"DIRECT=OS:other\private$\q"
RECEIVED, REJECTED = MessageClass.MQMSG_CLASS_ACK_RECEIVE, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
NEVER = 0xFFFF_FFFF


@dataclass
class Sent:
    """A message on its way, in order of sending; transactional ones are all of one priority."""

    body: bytes
    transactional: bool
    express: bool
    dead_letter: bool
    source_journal: bool
    expiry: int | None
    state: str = "available"


@dataclass
class Naive:
    """What waits, and what was kept."""

    waiting: list[Sent] = field(default_factory=list)
    kept: dict[str, list[Sent]] = field(
        default_factory=lambda: {"deadletter": [], "deadxact": [], "journal": []}
    )
    held: bool = False

    def first(self) -> Sent | None:
        return next((sent for sent in self.waiting if sent.state == "available"), None)

    def gone(self, sent: Sent, kept: str = "") -> None:
        self.waiting.remove(sent)
        if kept:
            self.kept[kept].append(sent)

    def dead(self, sent: Sent) -> None:
        place = "deadxact" if sent.transactional else "deadletter"
        self.gone(sent, place if sent.dead_letter else "")

    def release(self, sent: Sent, now: int) -> None:
        if sent.state == "purged":
            self.dead(sent)
        else:
            sent.state = "available"
            self.expire(now)

    def expire(self, now: int) -> None:
        for sent in list(self.waiting):
            if sent.state == "available" and sent.expiry is not None and sent.expiry <= now:
                self.dead(sent)

    def restart(self, now: int) -> None:
        for kept in self.kept.values():
            kept[:] = [sent for sent in kept if not sent.express]
        for sent in list(self.waiting):
            if sent.express:
                self.waiting.remove(sent)
            elif sent.state == "purged":
                self.dead(sent)
            elif sent.state == "taken":
                sent.state = "available"
        self.expire(now)


class TransferModel(RuleBasedStateMachine):
    """One outgoing queue, which stays because it is open or on hold."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="rpcqm-transfer-", dir=MEMORY))
        self.qm = RunningQueueManager(self.directory)
        self.naive = Naive()
        self.queue = keep_sending(self.qm, NAME)
        self.keys: dict[bytes, int] = {}
        self.number = 0

    def teardown(self) -> None:
        self.qm.stop()
        shutil.rmtree(self.directory)

    # What protocols and applications do

    @rule(seed=st.integers(0, 0xFFFF_FFFF))
    def send(self, seed: int) -> None:
        dice = Dice(seed)
        self.number += 1
        seconds = dice.of([None, None, 1, 4])
        transactional = dice.one_in(2)
        sent = Sent(
            b"%d" % self.number,
            transactional,
            not transactional and dice.one_in(4),
            dice.one_in(2),
            dice.one_in(2),
            None if seconds is None else (self.qm.clock.now() // 1000 + seconds) * 1000,
        )
        begin = self.qm.engine.transactions.create_transaction
        transaction = begin(uuid4()) if transactional else None
        self.qm.send(
            self.queue,
            sent.body,
            transaction,
            priority=0,
            delivery_guarantee=int(not sent.express),
            negative_journaling_requested=sent.dead_letter,
            positive_journaling_requested=sent.source_journal,
            time_to_reach_queue=NEVER if seconds is None else seconds,
        )
        if transaction is not None:
            self.qm.done(self.qm.engine.transactions.transaction_commit(transaction.identifier))
        self.naive.waiting.append(sent)
        self.naive.expire(self.qm.clock.now())

    @rule()
    def take(self) -> None:
        taken = self.qm.engine.transfer.lock_next(self.queue, self)
        expected = self.naive.first()
        assert (taken and taken.attributes.body) == (expected and expected.body)
        if taken is not None and expected is not None:
            self.keys[expected.body] = taken.lookup_identifier
            expected.state = "taken"

    @rule(seed=st.integers(0, 0xFFFF_FFFF), how=st.sampled_from(["release", "deliver", "fail"]))
    def decide(self, seed: int, how: str) -> None:
        """What becomes of a message that was taken, purged meanwhile or not."""
        sent = self._one(seed, "taken", "purged")
        if sent is None:
            return
        transfer, key = self.qm.engine.transfer, self.keys[sent.body]
        if how == "release":
            transfer.release(self.queue, key)
            self.qm.settle()
            self.naive.release(sent, self.qm.clock.now())
        elif how == "deliver":
            self.qm.done(transfer.delivered(self.queue, key, {b"last": sent.body}))
            self.naive.gone(sent, "journal" if sent.source_journal else "")
            assert self.qm.engine.protocol_records.get(b"last") == sent.body
        else:
            self.qm.done(transfer.failed(self.queue, key, REJECTED))
            self.naive.dead(sent)

    @rule(seed=st.integers(0, 0xFFFF_FFFF))
    def order_acknowledged(self, seed: int) -> None:
        sent = self._one(seed, "taken")
        if sent is not None and sent.transactional:
            key = self.keys[sent.body]
            self.qm.done(self.qm.engine.transfer.await_final_acknowledgement(self.queue, key))
            sent.state = "awaiting"

    @rule(seed=st.integers(0, 0xFFFF_FFFF), received=st.booleans())
    def finally_acknowledged(self, seed: int, received: bool) -> None:
        sent = self._one(seed, "awaiting")
        if sent is None:
            return
        message = self.qm.engine.positions.message_at(self.queue, self.keys[sent.body])
        end = self.qm.engine.transfer.final_acknowledgement
        identifier = message.attributes.identifier
        assert self.qm.done(end(identifier, RECEIVED if received else REJECTED))
        assert not self.qm.done(end(identifier, RECEIVED))
        if received:
            self.naive.gone(sent, "journal" if sent.source_journal else "")
        else:
            self.naive.dead(sent)

    def _one(self, seed: int, *states: str) -> Sent | None:
        found = [sent for sent in self.naive.waiting if sent.state in states]
        return Dice(seed).of(found) if found else None

    # What administrators, time and accidents do

    @rule()
    def purge(self) -> None:
        """What waits for its last acknowledgement has arrived already: it is purged later."""
        if any(sent.state == "awaiting" for sent in self.naive.waiting):
            return
        self.qm.done(self.qm.engine.queues.purge_queue(self.queue))
        for sent in list(self.naive.waiting):
            if sent.state == "available":
                self.naive.dead(sent)
            else:
                sent.state = "purged"

    @rule(seconds=st.sampled_from([1, 5]))
    def advance(self, seconds: int) -> None:
        self.qm.advance(seconds * 1000)
        self.naive.expire(self.qm.clock.now())

    @rule()
    def pause_or_resume(self) -> None:
        outgoing = self.qm.engine.outgoing
        (outgoing.resume_queue if self.naive.held else outgoing.pause_queue)(self.queue)
        self.naive.held = not self.naive.held
        self.qm.settle()

    @rule()
    def restart(self) -> None:
        self._again(self.qm.restart)

    @rule()
    def crash(self) -> None:
        """In the middle of a delivery, which has never been then."""
        sent = next((sent for sent in self.naive.waiting if sent.state == "taken"), None)
        if sent is not None:
            self.qm.engine.transfer.delivered(self.queue, self.keys[sent.body], {b"x": b"1"})
        self._again(self.qm.crash)
        assert self.qm.engine.protocol_records.get(b"x") is None

    def _again(self, begin: Callable[[], None]) -> None:
        begin()
        self.queue = keep_sending(self.qm, NAME)
        self.qm.settle()
        self.naive.restart(self.qm.clock.now())
        if self.queue.message_count == 0 and not self.naive.held:
            return
        found = self.qm.engine.outgoing.list()
        assert found == [self.queue]

    # What everybody can see

    @invariant()
    def both_look_alike(self) -> None:
        held = self.queue.state is OutgoingQueueState.ON_HOLD
        assert held == self.naive.held
        index = self.qm.store.index(self.queue.queue_id)
        found = [self._body(self.queue, key) for key in list(index.keys())]
        assert found == [sent.body for sent in self.naive.waiting]
        awaiting = [self._body(self.queue, key) for key in self._awaiting(self.queue)]
        assert awaiting == [sent.body for sent in self.naive.waiting if sent.state == "awaiting"]
        for name, kept in self.naive.kept.items():
            queue = self.qm.find(f"system$;{name}")
            assert sorted(self.qm.bodies(queue)) == sorted(sent.body for sent in kept), name

    def _awaiting(self, queue: OutgoingQueue) -> list[int]:
        held = self.qm.engine.transfer.held
        return sorted(key for number, key in held if number == queue.queue_id)

    def _body(self, queue: Queue, key: int) -> bytes:
        body: Any = self.qm.engine.positions.message_at(queue, key).attributes.body
        return bytes(body)


TransferModel.TestCase.settings = settings(
    max_examples=int(os.environ.get("RPCQM_MODEL_EXAMPLES", "30")),
    stateful_step_count=int(os.environ.get("RPCQM_MODEL_STEPS", "40")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

TestTransferModel = TransferModel.TestCase
