"""The way of one outgoing queue to its HTTP name ([MC-MQSRM] 3.1.7, 3.1.6)."""

from typing import TYPE_CHECKING

from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo
from rpcqm.store.transaction import StoreTransaction

if TYPE_CHECKING:
    from rpcqm.srmp.connection.protocol import SrmpProtocol


class OutgoingTransfer:
    """Posts the messages of one outgoing queue, one at a time."""

    def __init__(self, protocol: "SrmpProtocol", queue: OutgoingQueue) -> None:
        self._protocol = protocol
        self.queue = queue

    def wake(self) -> None:
        """There is something to send."""

    def send(self) -> None:
        """Send the next message."""

    def removed(self, change: StoreTransaction, key: int) -> None:
        """A message has left the queue some other way."""

    def hold(self) -> None:
        """[MC-MQSRM] 3.1.7.4."""

    def resume(self) -> None:
        """[MC-MQSRM] 3.1.7.5."""

    def resend_now(self) -> None:
        """Send what is not acknowledged again."""

    def try_now(self) -> None:
        """Connect now, however often that has failed."""

    def disconnect(self) -> None:
        """Give up what is under way."""

    def stop(self) -> None:
        """The queue manager stops."""

    def show(self, info: OutgoingTransferInfo) -> None:
        """Tell administrators how far the stream has come."""
