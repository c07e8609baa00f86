"""Transfers and transactions in what JSON has."""

from rpcqm.adm.queue import ConnectionHistoryEntry, OutgoingQueue, OutgoingTransferInfo
from rpcqm.adm.transaction import Transaction
from rpcqm.base.text import iso_time
from rpcqm.operations.account_names import AccountNames
from rpcqm.operations.sessions import IncomingSequence
from rpcqm.operations.shapes import described_outgoing


def described_transfer(queue: OutgoingQueue, info: OutgoingTransferInfo) -> dict[str, object]:
    """The same as `rpcqm explain QUEUE --json` tells of a queue to elsewhere."""
    return described_outgoing(queue) | {
        "last_acknowledged": info.eod_last_ack.seq_no,
        "last_acknowledged_time": iso_time(info.eod_last_ack_time or 0),
        "next_sequence": info.eod_next_seq.seq_no,
        "unacknowledged": info.eod_no_ack_count,
        "unread": info.eod_no_read_count,
        "resend_count": info.eod_resend_count,
        "resend_time": iso_time(info.eod_resend_time or 0),
        "connections": [described_connection(entry) for entry in queue.connection_history],
    }


def described_connection(entry: ConnectionHistoryEntry) -> dict[str, object]:
    """What has happened to a connection, by the name of its status."""
    return {
        "status": entry.status.name,
        "time": iso_time(entry.connection_history_time),
        "addresses": list(entry.address_list),
    }


def described_incoming(sequence: IncomingSequence) -> dict[str, object]:
    """How far the messages of one sender have come."""
    info = sequence.info
    return {
        "queue": sequence.queue,
        "format_name": info.format_name,
        "sender": str(info.sender_identifier),
        "sequence": str(info.sequence_identifier),
        "number": info.sequence_number,
        "last_arrival": iso_time(info.last_access_time or 0),
        "refused": info.reject_count,
    }


def described_transaction(transaction: Transaction, names: AccountNames) -> dict[str, object]:
    """A transaction that is open; its owner is told by its name."""
    operations = transaction.transactional_operation_collection
    owner = transaction.owner
    return {
        "id": str(transaction.identifier),
        "begun": iso_time(transaction.begun / 1000),
        "owner": None if owner is None else names.of(owner),
        "prepared": transaction.prepared,
        "operations": len(operations),
        "queues": sorted({each.queue.pathname or str(each.queue.label) for each in operations}),
    }
