"""A transaction of the store: changes that become durable as a whole or not at all."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rpcqm.store.changes import Backing, Changes
from rpcqm.store.express import ExpressBodies
from rpcqm.store.index import QueueIndex
from rpcqm.store.records import (
    CLASS_SHIFT,
    FLAG_EXPRESS,
    FLAG_PURGE_PENDING,
    FLAGS_MASK,
    NEVER,
    NO_MOVES,
    POSITION,
    POSITION_KEY,
    SERIAL,
    STAGED,
    STAGED_KEY,
    STAGED_MESSAGE,
    STAGED_OPERATION,
    Family,
    Moves,
    PositionRecord,
)
from rpcqm.store.run_changes import FEWEST, Batch, insert_batch, remove_run
from rpcqm.store.uncommitted import (
    TRANSACTION_ID_LENGTH,
    UncommittedOperation,
    UncommittedTransaction,
)

_position_key = POSITION_KEY.pack
_position = POSITION.pack
_serial = SERIAL.pack

_publish, _withdraw = QueueIndex.publish, QueueIndex.withdraw
_discard, _come_back = QueueIndex.discard, QueueIndex.come_back
_count_moves, _amend = QueueIndex.count_moves, QueueIndex.amend
_unlock, _restore_lock, _undrop = QueueIndex.unlock, QueueIndex.restore_lock, QueueIndex.undrop
_discard_body = ExpressBodies.discard
_new_position: Callable[[tuple[int, int, int, int, int]], PositionRecord] = partial(
    tuple.__new__, PositionRecord
)
"""Makes a Position without the detour over its keywords."""


def _forget_index(store: Backing, queue_id: int) -> None:
    store.forget_index(queue_id)


def _charge_staged(store: Backing, operation: UncommittedOperation) -> None:
    store.charge_staged(operation)


def _release_staged(store: Backing, operation: UncommittedOperation) -> None:
    store.release_staged(operation)


class StoreTransaction(Changes):
    """One synchronous block of changes: `with store.transaction("name") as txn:`.

    Nothing of it is visible before it is as durable as promised, except that removed messages
    are LEAVING at once. An exception that leaves the block undoes all of it; only numbers taken
    from counters are not given again.

    Queues are named by their queue id (u32), messages by queue id and lookup identifier (u64).
    Methods raise PositionStateError when a message is not there or not in the right state, and
    have done nothing then.
    """

    __slots__ = ()

    # Messages

    def insert(
        self,
        queue_id: int,
        lookup_identifier: int,
        packet: bytes,
        *,
        arrival: int,
        expiry: int = NEVER,
        flags: int = 0,
        durable: bool = True,
        consequence: bool = False,
        dead_letter_class: int = 0,
    ) -> int:
        """Store a message, visible after the commit; returns its serial.

        Times are milliseconds since 1970; `flags` are the caller's own (0 to 0x3F),
        `dead_letter_class` is the reason of a dead letter (0 for other messages). A message that is
        not `durable` is express: it lives until the next restart. One that follows from a removal
        (`consequence`: an acknowledgement) is accepted on a full disk as well; any other raises
        MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) there.
        """
        store = self._store
        size = len(packet)
        if durable and not consequence:
            store.admit(size)
        serial = store.counters.serial.take()
        index = store.index(queue_id)
        written = flags | dead_letter_class << CLASS_SHIFT
        value = _position(serial, arrival, expiry, size, written, 0, 0, 0)
        if not durable:
            flags |= FLAG_EXPRESS
            store.keep_express(serial, packet)
            self.steps.append((None, _discard_body, store.express, serial))
        index.expect(lookup_identifier, _new_position((serial, size, arrival, expiry, flags)))
        self.steps.append((_publish, _withdraw, index, lookup_identifier))
        if durable:
            key = _position_key(queue_id, lookup_identifier)
            self.operations.append((_serial(serial), packet, store.body_handle))
            self.operations.append((key, value, store.position_handle))
            self.size += size
            self.sync = True
        if dead_letter_class:
            index.count_moves(lookup_identifier, NO_MOVES._replace(message_class=dead_letter_class))
            self.steps.append((None, _count_moves, index, lookup_identifier, NO_MOVES))
        self.messages += 1
        return serial

    def insert_many(
        self,
        queue_id: int,
        keys: Sequence[int],
        packets: Sequence[bytes],
        *,
        arrival: int,
        expiries: Sequence[int] | None = None,
        flags: int | Sequence[int] = 0,
        durable: bool = True,
        consequence: bool = False,
    ) -> None:
        """Store messages of one queue as `insert` would each, in order; all of them or none.

        Keys are lookup identifiers of any priorities. Without `expiries` no message expires.
        `runs.cut` says how many fit into one synced write. Raises as `insert`, and ValueError if
        sequences differ in length.
        """
        if len(keys) == len(packets) == 1 and expiries is None and isinstance(flags, int):
            self.insert(
                queue_id,
                keys[0],
                packets[0],
                arrival=arrival,
                flags=flags,
                durable=durable,
                consequence=consequence,
            )
            return
        batch = Batch(queue_id, keys, packets, arrival, expiries, flags, durable, consequence)
        if len(packets) < FEWEST:
            self._insert_few(batch)
        else:
            insert_batch(self, self._store, batch)

    def _insert_few(self, batch: Batch) -> None:
        """Insert messages, one by one; all of them or none."""
        if batch.durable and not batch.consequence:
            self._store.admit(sum(map(len, batch.packets)))
        steps, operations = len(self.steps), len(self.operations)
        before = self.size, self.messages, self.sync
        try:
            for key, packet, expiry, flags in batch.each():
                self.insert(
                    batch.queue_id,
                    key,
                    packet,
                    arrival=batch.arrival,
                    expiry=expiry,
                    flags=flags,
                    durable=batch.durable,
                    consequence=True,
                )
        except BaseException:
            self.undo_until(steps)
            del self.operations[operations:]
            self.size, self.messages, self.sync = before
            raise

    def remove(self, queue_id: int, lookup_identifier: int, *, sync: bool = True) -> None:
        """Remove a message and its packet; it is LEAVING now and gone after the commit.

        A message that is not visible yet, because its own commit is on its way, can be removed
        too; it will never be seen as available. Without `sync` it may be there again after a
        crash, unless something that was synced came later.
        """
        position = self._take(queue_id, lookup_identifier, sync)
        if position.flags & FLAG_EXPRESS:
            self.steps.append((_discard_body, None, self._store.express, position.serial))
        else:
            self.operations.append((_serial(position.serial), None, self._store.body_handle))
        self.messages += 1

    def remove_many(
        self, queue_id: int, keys: Sequence[int], *, sync: bool = True, unwanted: int = 0
    ) -> None:
        """Remove messages of one queue as `remove` would each; all of them or none.

        It is quickest where they are neighbours, in the order of the queue. Raises
        PositionStateError also if one has any of the `unwanted` flags.
        """
        if len(keys) == 1 and not unwanted:
            self.remove(queue_id, keys[0], sync=sync)
        elif keys:
            remove_run(self, self._store, queue_id, keys, sync, unwanted)

    def _take(self, queue_id: int, lookup_identifier: int, sync: bool = True) -> PositionRecord:
        """Begin the removal of a position, without its packet."""
        index = self._store.index(queue_id)
        position, state = index.leave(lookup_identifier)
        self.steps.append((_discard, _come_back, index, lookup_identifier, state))
        if not position.flags & FLAG_EXPRESS:
            key = _position_key(queue_id, lookup_identifier)
            self.operations.append((key, None, self._store.position_handle))
            self.sync = self.sync or sync
        return position

    def rehome(
        self,
        queue_id: int,
        lookup_identifier: int,
        target_queue_id: int,
        target_lookup_identifier: int,
        *,
        arrival: int | None = None,
        expiry: int | None = None,
        flags: int | None = None,
        moves: Moves | None = None,
    ) -> None:
        """Move a message to another queue, a journal or a dead-letter queue; no byte is copied.

        Absent arguments leave their values unchanged.
        """
        index = self._store.index(queue_id)
        old = index.removable(lookup_identifier)
        new = PositionRecord(
            old.serial,
            old.size,
            old.arrival if arrival is None else arrival,
            old.expiry if expiry is None else expiry,
            old.flags if flags is None else flags & FLAGS_MASK | old.flags & FLAG_EXPRESS,
        )
        moves = index.moves(lookup_identifier) if moves is None else moves
        target = self._store.index(target_queue_id)
        target.expect(target_lookup_identifier, new)
        self.steps.append((_publish, _withdraw, target, target_lookup_identifier))
        self._take(queue_id, lookup_identifier)
        if any(moves):
            target.count_moves(target_lookup_identifier, moves)
            self.steps.append((None, _count_moves, target, target_lookup_identifier, NO_MOVES))
        if not new.flags & FLAG_EXPRESS:
            self._write_position(target_queue_id, target_lookup_identifier, new, moves)
        self.messages += 1

    def update_position(
        self,
        queue_id: int,
        lookup_identifier: int,
        *,
        flags: int | None = None,
        moves: Moves | None = None,
    ) -> None:
        """Change the flags or the counts of a message, which the caller should have locked.

        Unlike other changes they are seen in the index at once.
        """
        index = self._store.index(queue_id)
        position = index.expected(lookup_identifier)
        before = (lookup_identifier, position.flags, index.moves(lookup_identifier))
        if flags is not None:
            position = position._replace(flags=flags & FLAGS_MASK | position.flags & FLAG_EXPRESS)
        if moves is None:
            moves = before[2]
        if not position.flags & FLAG_EXPRESS:
            self._write_position(queue_id, lookup_identifier, position, moves)
        index.amend(lookup_identifier, position.flags, moves)
        self.steps.append((None, _amend, index, *before))

    def purge(self, queue_id: int, lookup_identifier: int) -> None:
        """Mark a locked message PURGE_PENDING, now and, for a durable one, over a restart."""
        index = self._store.index(queue_id)
        position = index.expected(lookup_identifier)
        index.purge(lookup_identifier)
        self.steps.append((None, _restore_lock, index, lookup_identifier))
        if not position.flags & FLAG_EXPRESS:
            marked = position._replace(flags=position.flags | FLAG_PURGE_PENDING)
            moves = index.moves(lookup_identifier)
            self._write_position(queue_id, lookup_identifier, marked, moves)

    def _write_position(
        self, queue_id: int, key: int, position: PositionRecord, moves: Moves
    ) -> None:
        serial, size, arrival, expiry, flags = position
        aborts, moved, last, message_class = moves
        flags |= message_class << CLASS_SHIFT
        value = _position(serial, arrival, expiry, size, flags, aborts, moved, last)
        self.operations.append((_position_key(queue_id, key), value, self._store.position_handle))
        self.sync = True

    def lock(self, queue_id: int, lookup_identifier: int, owner: object) -> bool:
        """Lock an available message until the block fails; False if it is not available."""
        index = self._store.index(queue_id)
        if not index.lock(lookup_identifier, owner):
            return False
        self.steps.append((None, _unlock, index, lookup_identifier))
        return True

    def drop_index(self, queue_id: int) -> None:
        """Forget a deleted queue, all of whose messages this or an earlier block removed."""
        index = self._store.index(queue_id)
        index.drop()
        self.steps.append((None, _undrop, index))
        self.steps.append((_forget_index, None, self._store, queue_id))

    # Small records

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        """Write a record of QUEUE, META, STREAM or HISTORY."""
        self.operations.append((key, value, self._store.handles[family]))
        self.size += len(value)
        self.sync = True

    def delete(self, family: Family, key: bytes) -> None:
        """Delete a record of QUEUE, META, STREAM or HISTORY."""
        self.operations.append((key, None, self._store.handles[family]))
        self.sync = True

    def change_many(self, family: Family, changes: Mapping[bytes, bytes | None]) -> None:
        """Write records, and delete those without a value, as `put` and `delete` each."""
        if changes:
            handle = self._store.handles[family]
            self.operations.extend([(key, value, handle) for key, value in changes.items()])
            self.size += sum([len(value) for value in changes.values() if value])
            self.sync = True

    # Operations of open transactions

    def stage(self, transaction_id: bytes, data: bytes) -> int:
        """Keep an operation of an open transaction; returns its number.

        `data` is the queue manager's own. It is written but not synced: recovery drops it.
        """
        return self._stage(transaction_id, STAGED_OPERATION, 0, 0, 0, data).number

    def stage_message(
        self, transaction_id: bytes, queue_id: int, packet: bytes, data: bytes
    ) -> int:
        """Keep a message that an open transaction sends to a queue; returns its number.

        It is charged to the queue now. Raises MQError as `insert` does.
        """
        store = self._store
        size = len(packet)
        store.admit(size)
        serial = store.counters.serial.take()
        operation = self._stage(transaction_id, STAGED_MESSAGE, queue_id, serial, size, data)
        self.operations.append((_serial(serial), packet, store.body_handle))
        self.size += size
        store.charge_staged(operation)
        self.steps.append((None, _release_staged, store, operation))
        return operation.number

    def _stage(
        self, transaction_id: bytes, kind: int, queue_id: int, serial: int, size: int, data: bytes
    ) -> UncommittedOperation:
        staged = self._staged(transaction_id)
        number = staged.next_number
        staged.next_number += 1
        operation = UncommittedOperation(number, data, queue_id, serial or None, size)
        staged.operations[number] = operation
        self.steps.append((None, dict.pop, staged.operations, number))
        value = STAGED.pack(kind, queue_id, serial, size) + data
        self._put_staged(transaction_id, number, value)
        return operation

    def _staged(self, transaction_id: bytes) -> UncommittedTransaction:
        """The staged operations of a transaction; raises ValueError if its id is not 16 bytes."""
        staged = self._store.uncommitted.get(transaction_id)
        if staged is None:
            if len(transaction_id) != TRANSACTION_ID_LENGTH:
                raise ValueError(f"a transaction is named by {TRANSACTION_ID_LENGTH} bytes")
            staged = self._store.uncommitted[transaction_id] = UncommittedTransaction(
                transaction_id
            )
            self.steps.append((None, dict.pop, self._store.uncommitted, transaction_id))
        return staged

    def _put_staged(self, transaction_id: bytes, number: int, value: bytes | None) -> None:
        key = STAGED_KEY.pack(transaction_id, number)
        self.operations.append((key, value, self._store.handles[Family.STAGED]))

    def insert_staged(
        self,
        transaction_id: bytes,
        number: int,
        lookup_identifier: int,
        *,
        arrival: int,
        expiry: int = NEVER,
        flags: int = 0,
        packet: bytes | None = None,
    ) -> int:
        """Put a staged message into its queue, perhaps with another packet; returns its serial.

        Call `unstage` for the transaction in the same block.
        """
        store = self._store
        operation = store.uncommitted[transaction_id].operations[number]
        serial = operation.serial
        if serial is None or not operation.charged:
            raise ValueError("the staged operation has no message to insert")
        size = operation.size if packet is None else len(packet)
        index = store.index(operation.queue_id)
        position = PositionRecord(serial, size, arrival, expiry, flags)
        index.expect(lookup_identifier, position)
        self.steps.append((_publish, _withdraw, index, lookup_identifier))
        store.release_staged(operation)
        self.steps.append((None, _charge_staged, store, operation))
        if packet is not None:
            self.operations.append((_serial(serial), packet, store.body_handle))
            self.size += size
        self._write_position(operation.queue_id, lookup_identifier, position, NO_MOVES)
        self.messages += 1
        return serial

    def unstage(self, transaction_id: bytes) -> None:
        """Forget the staged operations of a transaction that commits here or is aborted."""
        staged = self._store.uncommitted.pop(transaction_id, None)
        if staged is None:
            return
        self.steps.append((None, dict.__setitem__, self._store.uncommitted, transaction_id, staged))
        for operation in staged.operations.values():
            self._drop_staged(transaction_id, operation)

    def _drop_staged(self, transaction_id: bytes, operation: UncommittedOperation) -> None:
        self._put_staged(transaction_id, operation.number, None)
        if operation.serial is not None and operation.charged:
            self.operations.append((_serial(operation.serial), None, self._store.body_handle))
            self.steps.append((_release_staged, None, self._store, operation))
