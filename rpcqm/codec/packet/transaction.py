"""TransactionHeader: the place of a transactional message in its sequence."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Self
from uuid import UUID

from rpcqm.codec.layout import (
    BitField,
    Bits,
    Buffer,
    Structure,
    UInt32,
    WireType,
    take,
)
from rpcqm.codec.packet.types import TxSequenceID


class TransactionFlags(Bits):
    """TransactionHeader.Flags: connector GUID, final ack, first, last, transaction."""

    CG = BitField(0)
    FA = BitField(1)
    FM = BitField(2)
    LM = BitField(3)
    ID = BitField(4, 20)


NO_TRANSACTION_FLAGS = TransactionFlags(0)
NO_SEQUENCE = TxSequenceID()
FIRST_NUMBER = 1
"""TxSequenceNumber of a message that is in no sequence of a transfer yet (G467)."""


@dataclass(frozen=True, slots=True)
class TransactionHeaderStart(Structure):
    """The fields that every TransactionHeader has."""

    flags: Annotated[TransactionFlags, WireType("I")]
    tx_sequence_id: Annotated[
        TxSequenceID, WireType("Q", TxSequenceID.from_value, attrgetter("value"))
    ]
    tx_sequence_number: UInt32
    previous_tx_sequence_number: UInt32


TRANSACTION_HEADER_SIZE = TransactionHeaderStart.size()


@dataclass(frozen=True, slots=True)
class TransactionHeader:
    """[MS-MQMQ] 2.2.20.5; `connector_qm_guid` is there when flags.CG is set."""

    flags: TransactionFlags = NO_TRANSACTION_FLAGS
    tx_sequence_id: TxSequenceID = NO_SEQUENCE
    tx_sequence_number: int = 0
    previous_tx_sequence_number: int = 0
    connector_qm_guid: UUID | None = None

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where the next one starts; raises DecodeError."""
        start = TransactionHeaderStart.decode(buffer, offset)
        position, connector = offset + TRANSACTION_HEADER_SIZE, None
        if start.flags.CG:
            connector = UUID(bytes_le=take(buffer, position, 16, "ConnectorQMGuid"))
            position += 16
        header = cls(
            start.flags,
            start.tx_sequence_id,
            start.tx_sequence_number,
            start.previous_tx_sequence_number,
            connector,
        )
        return header, position

    def encode(self) -> bytes:
        """The header's bytes; raises ValueError for values that do not fit."""
        if bool(self.flags.CG) != (self.connector_qm_guid is not None):
            raise ValueError("Flags.CG tells whether there is a ConnectorQMGuid")
        start = TransactionHeaderStart(
            self.flags,
            self.tx_sequence_id,
            self.tx_sequence_number,
            self.previous_tx_sequence_number,
        )
        return start.encode() + (self.connector_qm_guid.bytes_le if self.connector_qm_guid else b"")
