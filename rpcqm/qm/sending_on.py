"""Several messages that leave their queue in one commit: for nobody, or for new ones elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.completion import Completion
from rpcqm.base.identity import Identity
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.positions import Positions, purge_reason
from rpcqm.qm.program_work import ProgramWork, Sending
from rpcqm.qm.sent_keys import Identifiers
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction


@dataclass(eq=False, repr=False)
class SendingOn:
    """What operators do to messages that nobody holds; each call is one commit, or nothing."""

    _store: Store
    _positions: Positions
    _program_work: ProgramWork

    def send_on(
        self,
        identity: Identity,
        queue: Queue,
        sendings: Sequence[tuple[int, Sending]],
        *,
        leaves: bool,
    ) -> Completion[Identifiers]:
        """Send messages anew, each for one of a queue by its lookup identifier.

        Those for which they are sent leave the queue in the same commit if `leaves` says so
        (G613). Raises as `ProgramWork.perform` does; nothing has happened then.
        """
        wanted = [sending for _, sending in sendings]
        also = partial(self._take, queue, sendings) if leaves else None
        return self._program_work.perform(identity, wanted, also=also)

    def _take(
        self, queue: Queue, sendings: Sequence[tuple[int, Sending]], change: StoreTransaction
    ) -> None:
        for key, sending in sendings:
            self._positions.sent_on(change, queue, key, str(sending.name))

    def remove(self, queue: Queue, keys: Sequence[int]) -> Completion[None]:
        """Receive messages for nobody; those of an outgoing queue have not been delivered."""
        reason = MessageClass.MQMSG_CLASS_ACK_RECEIVE
        if isinstance(queue, OutgoingQueue):
            reason = purge_reason(queue)
        with self._store.transaction("remove") as change:
            for key in keys:
                self._positions.message_position_deleted(change, queue, key, reason)
            return change.committed
