"""The sequences of all outgoing queues: their identifiers and owners."""

from typing import Generic, TypeVar

from rpcqm.base.clock import Clock
from rpcqm.binary.connection.sequence_numbers import (
    LAST_SEQUENCE_KEY,
    last_sequence,
    last_sequence_record,
)
from rpcqm.binary.sequence import next_identifier
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.qm.protocol_records import ProtocolRecords

T = TypeVar("T")


class OutgoingSequences(Generic[T]):
    """Gives identifiers to sequences, and finds the owners of present ones."""

    def __init__(self, clock: Clock, records: ProtocolRecords) -> None:
        self._clock, self._records = clock, records
        self._last = last_sequence(records.get(LAST_SEQUENCE_KEY))
        self._owners: dict[int, T] = {}

    def first(self) -> TxSequenceID:
        """The first identifier of a queue; it becomes durable with the queue's first stamp."""
        self._last = next_identifier(self._last, self._clock.now() // 1000)
        self._records.write({LAST_SEQUENCE_KEY: last_sequence_record(self._last)})
        return self._last

    def free(self, following: TxSequenceID) -> TxSequenceID:
        """The identifier, or a later one if an older version has given it to another queue."""
        return self.first() if self.owner(following) is not None else following

    def remember(self, identifier: TxSequenceID, owner: T) -> None:
        self._owners[identifier.value] = owner

    def forget(self, identifier: TxSequenceID) -> None:
        self._owners.pop(identifier.value, None)

    def owner(self, identifier: TxSequenceID) -> T | None:
        """The transfer whose messages have numbers in a sequence."""
        return self._owners.get(identifier.value)
