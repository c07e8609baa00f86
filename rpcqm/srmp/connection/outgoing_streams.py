"""The streams that leave here: their ordinals, and their queues."""

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.clock import Clock
from rpcqm.qm.protocol_records import Changes, ProtocolRecords
from rpcqm.srmp.connection.stream_records import as_last_stream, last_stream
from rpcqm.srmp.outgoing_stream import next_stream


class OutgoingStreams:
    """Gives ordinals to streams, and finds the queue of a stream."""

    def __init__(self, clock: Clock, records: ProtocolRecords) -> None:
        self._clock = clock
        self._last = last_stream(records)
        self._queues: dict[int, OutgoingQueue] = {}

    def begin(self, queue: OutgoingQueue) -> tuple[int, Changes]:
        """The ordinal of a new stream, and the change that stores it ([MC-MQSRM] 3.1.3.1)."""
        self._last = next_stream(self._last, self._clock.now() // 1000)
        self.remember(self._last, queue)
        return self._last, as_last_stream(self._last)

    def remember(self, ordinal: int, queue: OutgoingQueue) -> None:
        self._queues[ordinal] = queue

    def forget(self, ordinal: int) -> None:
        self._queues.pop(ordinal, None)

    def queue(self, ordinal: int) -> OutgoingQueue | None:
        """The queue that sends a stream."""
        return self._queues.get(ordinal)
