"""What the binary protocol changes beside the store: kept as it was, and told."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy

from rpcqm.adm.queue import Queue
from rpcqm.base.clock import Timers
from rpcqm.binary.connection.incoming_transfers import IncomingTransfer, IncomingTransfers
from rpcqm.binary.sequence import OrderAckSchedule
from rpcqm.qm.history_records import HistoryRecords, Remembered, decode_many
from rpcqm.qm.message_history import MessageIDHistory
from rpcqm.qm.message_trace import MessageTrace

Place = tuple[IncomingTransfer, Queue]
"""A transfer, and the queue that its messages go to."""


# The history of duplicates


def _copied_records(records: HistoryRecords) -> HistoryRecords:
    made = copy(records)
    made._record_of, made._left = records._record_of.copy(), records._left.copy()
    return made


@contextmanager
def history_kept(history: MessageIDHistory) -> Iterator[None]:
    """Let be as before what is remembered within the block."""
    before = dict(vars(history))
    history._entries, history._contents = history._entries.copy(), history._contents.copy()
    history._shares = None if history._shares is None else history._shares.copied()
    history._stale = dict(history._stale)
    history._records = _copied_records(history._records)
    try:
        yield
    finally:
        if before["_timer"] is None:
            history.stop()
        vars(history).update(before)


def told_of_history(history: MessageIDHistory) -> list[object]:
    """What is remembered, in order, and what is to be forgotten."""
    return [*history._entries.items(), *history._contents.items(), *history._stale.items()]


def apart(
    history: MessageIDHistory, key: bytes, value: bytes | None
) -> Iterator[tuple[bytes, bytes | None]]:
    """A change of a record as changes of records of each message, as if it came alone."""
    if value is None or not key.startswith(history.prefix_of_many):
        yield key, value
        return
    time, identifiers = decode_many(value)
    for identifier in identifiers:
        yield history.prefix + identifier, Remembered(time, "", b"", identifier).encode()


# Incoming transfers


def _copied_schedule(schedule: OrderAckSchedule) -> OrderAckSchedule:
    """One like it, whose timer nobody runs."""
    made = copy(schedule)
    made._timers = Timers(schedule._clock)
    if schedule._timer is not None:
        made._timer = made._timers.call_later(0, made.stop)
    return made


@contextmanager
def _transfer_kept(transfer: IncomingTransfer) -> Iterator[None]:
    before = dict(vars(transfer))
    transfer.incoming, transfer._owed = transfer.incoming.copy(), transfer._owed.copy()
    transfer.schedule = _copied_schedule(transfer.schedule)
    try:
        yield
    finally:
        vars(transfer).update(before)


@contextmanager
def transfers_kept(transfers: IncomingTransfers, places: Collection[Place]) -> Iterator[None]:
    """Let be as before what becomes of transfers to queues within the block."""
    fed, kept = set(transfers.fed), transfers._kept
    new = [transfer for transfer, queue in places if not _is_shown(transfers, transfer, queue)]
    queues = {transfer.key: queue.queue_id for transfer, queue in places}
    transfers._kept = kept.copied()
    with ExitStack() as stack:
        for transfer, _ in places:
            stack.enter_context(_transfer_kept(transfer))
        yield
    transfers.fed, transfers._kept = fed, kept
    for transfer, _ in places:
        transfers.show(transfer)
    for transfer in new:
        transfers._arrivals.forget_transfer_info(
            queues[transfer.key], transfer.name, transfer.source
        )


def _is_shown(transfers: IncomingTransfers, transfer: IncomingTransfer, queue: Queue) -> bool:
    return (queue.queue_id, transfer.source, transfer.name) in transfers._arrivals._infos


def told_of_transfer(transfer: IncomingTransfer) -> dict[str, object]:
    """What there is to know of it, but for when its timer is due."""
    return {
        "records": (transfer.encode(), transfer.encode_rejected()),
        "durable": transfer.incoming.durable,
        "accessed": transfer.last_access_time,
        "way back": (transfer.address, transfer.queue_id),
        "owed": list(transfer._owed),
        "acknowledges": transfer.schedule._timer is not None,
    }


def shown(transfers: IncomingTransfers, transfer: IncomingTransfer) -> tuple[object, ...] | None:
    """What administrators are shown of a transfer, None if nothing."""
    queue = transfers._queue_manager.queue_collection.get(transfer.queue_id)
    if queue is None or not _is_shown(transfers, transfer, queue):
        return None
    info = transfers._arrivals.transfer_info(queue, transfer.name, transfer.source)
    counts = info.sequence_identifier, info.sequence_number, info.reject_count
    return *counts, info.last_access_time


# The trace of what was sent


def copied_trace(
    trace: MessageTrace, queue: Queue | None = None, keys: Iterable[int] = ()
) -> MessageTrace:
    """One like it, with only these messages of a queue that were sent, or with all of them."""
    made = MessageTrace(trace._clock)
    made._told = trace._told.copy()
    places = list(trace._sent) if queue is None else [(queue.queue_id, key) for key in keys]
    for place in filter(trace._sent.__contains__, places):
        made._sent[place] = trace._sent[place]
        made._steps[place] = trace._steps[place]
    return made
