"""Steps of the model that are about transactions."""

from collections.abc import Callable
from uuid import UUID, uuid4

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import OperationType
from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import Queue
from rpcqm.adm.transaction import Transaction
from rpcqm.base.completion import Completion, completed
from rpcqm.codec.packet.enums import MessageClass
from tests.model.choices import Dice, has_received, received_in
from tests.model.comparing import Comparing
from tests.model.elements import MDescriptor, MTransaction


class Transacting(Comparing):
    """Begins, joins, leaves and ends transactions of both queue managers."""

    descriptors: list[tuple[OpenQueueDescriptor, MDescriptor]]
    transactions: list[tuple[UUID, MTransaction]]

    def _join(self, dice: Dice, wanted: bool) -> tuple[Transaction | None, MTransaction | None]:
        """A transaction of both, open mostly; an ended one is stood in for."""
        if not wanted:
            return None, None
        identifier, naive = self._transaction(dice, lambda naive: not naive.prepared)
        collection = self.qm.engine.queue_manager.transaction_collection
        return collection.get(identifier) or Transaction(identifier, ended=True), naive

    def _transaction(
        self, dice: Dice, liked: Callable[[MTransaction], object]
    ) -> tuple[UUID, MTransaction]:
        """One that goes on and is liked, mostly."""
        self.begin(dice)
        going = [pair for pair in self.transactions if not pair[1].ended and liked(pair[1])]
        return dice.of(self.transactions if dice.one_in(12) or not going else going)

    def end_transactional(self, dice: Dice) -> None:
        """Of a message that a transaction has received, mostly."""
        there = [pair for pair in self.descriptors if pair[1].queue is not None]
        if not there:
            return
        real, naive = dice.of([pair for pair in there if has_received(pair[1])] or there)
        queue = real.queue_reference
        assert queue is not None
        body = self._body_in(naive.queue, dice)
        held = received_in(naive)
        if held and not dice.one_in(5):
            body = dice.of(held)
        if body is None:
            return
        known, delete = body, dice.one_in(3)
        position = MessagePosition(queue, self._key_in(queue, known))
        holder = queue.message_position_list.owner(position.lookup_identifier)
        transaction = holder if isinstance(holder, Transaction) else Transaction(UUID(int=0))
        self.both(
            lambda: self.qm.engine.messages.dequeue_message_end(
                real, position, delete, transaction, delivered=True
            ),
            lambda: self.naive.end_transactional(naive, known, delete),
        )

    def reject(self, dice: Dice) -> None:
        """As R_SetUserAcknowledgementClass does with a message that a transaction holds."""
        found = [
            (identifier, naive, operation)
            for identifier, naive in self.transactions
            for operation in naive.operations
            if operation[0] == "receive" and not naive.ended and not naive.prepared
        ]
        if not found:
            return
        identifier, naive, (_, queue, message) = dice.of(found)
        naive.rejected.add(message.body)
        transaction = self.qm.engine.queue_manager.transaction_collection[identifier]
        for operation in transaction.transactional_operation_collection:
            real = self.real_queue(queue)
            if (
                operation.operation_type is OperationType.DEQUEUE
                and operation.queue is real
                and operation.lookup_identifier == self._key_in(operation.queue, message.body)
            ):
                operation.dequeue_reason = MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED
        if dice.one_in(2):
            self.finish(dice)

    def begin(self, dice: Dice) -> None:
        """Another one, when few are open."""
        going = sum(not naive.ended and not naive.prepared for _, naive in self.transactions)
        if not going or (going < 3 and dice.one_in(4)):
            identifier = uuid4()
            self.qm.engine.transactions.create_transaction(identifier)
            self.transactions.append((identifier, self.naive.begin()))
            ended = [pair for pair in self.transactions if pair[1].ended]
            self.transactions = [p for p in self.transactions if p not in ended[:-3]]

    def finish(self, dice: Dice) -> None:
        busy = [naive for _, naive in self.transactions if naive.operations and not naive.ended]
        if not busy and not dice.one_in(6):
            return
        identifier, naive = self._transaction(dice, lambda naive: naive.operations)
        how = dice.of(["commit", "abort", "commit", "abort", "prepare"])
        events = self.qm.engine.transactions
        if how == "commit":
            self.call(
                lambda: events.transaction_commit(identifier), lambda: self.naive.commit(naive)
            )
        elif how == "abort":
            self.call(lambda: events.transaction_abort(identifier), lambda: self.naive.abort(naive))
        else:

            def prepare() -> Completion[None]:
                events.transaction_prepare(identifier)
                return completed(None)

            self.call(prepare, lambda: self.naive.prepare(naive))

    def _key_in(self, queue: Queue, body: bytes) -> int:
        """The identifier of a message in a queue; a journal gives new ones."""
        index = self.qm.store.index(queue.queue_id)
        for key in list(index.keys()):
            if self.qm.engine.positions.message_at(queue, key).attributes.body == body:
                return key
        return self.messages[body].lookup_identifier
