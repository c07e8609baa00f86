"""What an outgoing queue has still to send, apart from what has arrived and is kept."""

from typing import NamedTuple

from rpcqm.adm.queue import OutgoingQueue


class Unsent(NamedTuple):
    """Messages, and when the oldest of them came, in milliseconds since 1970 (0 without any)."""

    messages: int
    oldest: int


def unsent(queue: OutgoingQueue) -> Unsent:
    """The messages that do not merely wait for their final acknowledgement.

    Those that wait for it have arrived ([MS-MQQB] 3.1.5.6, AwaitingFinalACKTable): no connection
    is needed for them, and they may be kept for as long as the receiver takes.
    """
    positions, info = queue.message_position_list, queue.outgoing_transfer_info_reference
    if info is None or not info.eod_no_read_count:
        return Unsent(positions.count, positions.oldest() if positions.count else 0)
    count = max(positions.count - info.eod_no_read_count, 0)
    return Unsent(count, _oldest_behind(queue, info.last_arrived) if count else 0)


def _oldest_behind(queue: OutgoingQueue, key: int) -> int:
    """When the oldest message came that can be sent, or is behind what has arrived in order.

    Without looking at each message that has arrived: there may be a hundred thousand.
    """
    positions = queue.message_position_list
    keys = (positions.first_available(), positions.next(key, available=False))
    found = (positions.position(key) for key in keys if key is not None)
    return min((each.arrival for each in found if each is not None), default=positions.oldest())
