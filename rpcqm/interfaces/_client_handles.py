"""Handles that qmcomm and qmcomm2 share ([MS-MQMP] 3.1.1.2 to 3.1.1.10).

Context handles belong to the association group that opened them. The 32-bit numbers beside them
do not: they are random, and good for the identity that opened the queue only (G43).
"""

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import RemoteReadState
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.transaction import Transaction
from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.origin import RPC, origin_of_peer
from rpcqm.interfaces._authentication import CallAdmission, require_level
from rpcqm.interfaces._open_queues import held_by
from rpcqm.interfaces._remote_proxy import OpenRemote, RemoteQueueProxies, proxy_of
from rpcqm.interfaces._wrong_numbers import WrongNumbers
from rpcqm.qm.opening import Opening
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.transactions import Transactions
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.context_handle import ContextHandle
from rpcqm.rpc.interface_registry import NCACN_IP_TCP


class LocalQueueContextHandle:
    """An RPC_QUEUE_HANDLE on a queue of this queue manager ([MS-MQMP] 3.1.1.3)."""

    __slots__ = ("open_queue_descriptor_reference", "owner")

    def __init__(self, descriptor: OpenQueueDescriptor, owner: str) -> None:
        self.open_queue_descriptor_reference = descriptor
        self.owner = owner


class RemoteQueueOpenContextHandle(LocalQueueContextHandle):
    """A PCTX_OPENREMOTE_HANDLE_TYPE ([MS-MQMP] 3.1.1.8); `reader` is the SID that took it over.

    `minimum_level` is the level of protection that every later call needs.
    """

    __slots__ = ("minimum_level", "reader")

    def __init__(
        self, descriptor: OpenQueueDescriptor, owner: str, minimum_level: AuthenticationLevel
    ) -> None:
        super().__init__(descriptor, owner)
        self.minimum_level = minimum_level
        self.reader: str | None = None


class ClientHandles:
    """The tables of both interfaces, and the check whether a client may use them at all.

    `local` and `remote` are by descriptor handle, which is the 32-bit number that clients see;
    `proxies` are queues of other queue managers.
    """

    def __init__(
        self,
        queue_manager: QueueManager,
        clock: Clock,
        readers: WaitingReaders,
        opening: Opening,
        transactions: Transactions,
        open_remote: OpenRemote | None = None,
        admission: CallAdmission | None = None,
    ) -> None:
        self._queue_manager = queue_manager
        self._readers = readers
        self._opening = opening
        self._transactions = transactions
        self.admission = admission or CallAdmission()
        self.local: dict[int, LocalQueueContextHandle] = {}
        self.remote: dict[int, RemoteQueueOpenContextHandle] = {}
        self._wrong_numbers = WrongNumbers(clock)
        self.proxies = RemoteQueueProxies(open_remote)

    def admit(self, call: Call) -> None:
        """Serve dependent clients on the network only as a supporting server.

        MQError(MQ_ERROR_WKS_CANT_SERVE_CLIENT). Source: [MS-MQMP] 3.1.4, 3.1.5.
        """
        if not self.serves(call.transport):
            raise MQError(HResult.MQ_ERROR_WKS_CANT_SERVE_CLIENT)

    def serves(self, transport: str) -> bool:
        """Whether dependent clients are served over a transport."""
        return transport != NCACN_IP_TCP or self._queue_manager.supporting_server

    # RPC_QUEUE_HANDLE

    def open_local(self, call: Call, descriptor: OpenQueueDescriptor) -> ContextHandle:
        """A context handle on an open queue; closes the queue if the handle is refused."""
        self._readers.charge_cursors(descriptor, call.association_group.cursors)
        record = LocalQueueContextHandle(descriptor, call.identity.sid)
        try:
            handle = call.open_context_handle("RPC_QUEUE_HANDLE", record, self._run_down_local)
        except BaseException:
            self._opening.close_queue(descriptor)
            raise
        held_by(call, descriptor, handle)
        self.local[descriptor.handle] = record
        return handle

    def find_local(self, call: Call, number: int) -> OpenQueueDescriptor:
        """The queue that a caller has open under a number; MQError(MQ_ERROR_INVALID_HANDLE)."""
        return _owned(self.local.get(number), call)

    def close_local(self, handle: ContextHandle) -> None:
        """Close the queue of a handle, local or remote."""
        proxy = proxy_of(handle)
        if proxy is not None:
            self.proxies.close(proxy)
            return
        descriptor: OpenQueueDescriptor = handle.value.open_queue_descriptor_reference
        self.local.pop(descriptor.handle, None)
        self._opening.close_queue(descriptor)

    def _run_down_local(self, handle: ContextHandle) -> None:
        """[MS-MQMP] 3.1.7.1 RPC_QUEUE_HANDLE Context Handle Rundown Routine."""
        self.close_local(handle)

    # PCTX_OPENREMOTE_HANDLE_TYPE

    def open_remote(
        self, call: Call, descriptor: OpenQueueDescriptor, minimum_level: AuthenticationLevel
    ) -> ContextHandle:
        """A context handle on a queue that a remote reader has opened."""
        self._readers.charge_cursors(descriptor, call.association_group.cursors)
        record = RemoteQueueOpenContextHandle(descriptor, call.identity.sid, minimum_level)
        try:
            handle = call.open_context_handle(
                "PCTX_OPENREMOTE_HANDLE_TYPE", record, self.close_remote, minimum_level
            )
        except BaseException:
            self._opening.close_queue(descriptor)
            raise
        held_by(call, descriptor, handle)
        descriptor.remote_read_state = RemoteReadState.OPENED
        self.remote[descriptor.handle] = record
        return handle

    def find_remote(self, call: Call, number: int) -> OpenQueueDescriptor:
        """The queue that a remote reader has open; MQError(MQ_ERROR_INVALID_HANDLE).

        Only the identities that have opened it and taken it over know its number.
        """
        self.check_wrong_numbers(call)
        record = self.remote.get(number)
        if record is None or call.identity.sid not in (record.owner, record.reader):
            self.wrong_number(call)
            raise MQError(HResult.MQ_ERROR_INVALID_HANDLE)
        require_level(call, record.minimum_level)
        return record.open_queue_descriptor_reference

    def adopt_remote(self, call: Call, number: int) -> RemoteQueueOpenContextHandle:
        """Hand a queue over to its reader by qm2qm, once (G27).

        The reader is a supporting server, whose client has opened the queue ([MS-MQMP] 3.2.4.7).
        The number alone decides (G63), therefore wrong numbers are counted (G88). Raises
        MQError(MQ_ERROR_INVALID_PARAMETER) for a number without such a queue.
        """
        self._wrong_numbers.check(call)
        record = self.remote.get(number)
        if record is None or record.reader is not None:
            self._wrong_numbers.count(call)
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "not opened for a remote reader")
        require_level(call, record.minimum_level)
        descriptor = record.open_queue_descriptor_reference
        self._readers.charge_cursors(descriptor, call.association_group.cursors)
        record.reader = call.identity.sid
        descriptor.remote_read_state = RemoteReadState.READY_FOR_READ
        return record

    def wrong_number(self, call: Call) -> None:
        """Count a wrong number of Anonymous, which may be several callers."""
        if call.identity.is_anonymous:
            self._wrong_numbers.count(call)

    def check_wrong_numbers(self, call: Call) -> None:
        """Refuse an anonymous caller that has given too many wrong numbers."""
        if call.identity.is_anonymous:
            self._wrong_numbers.check(call)

    def release_remote(self, descriptor: OpenQueueDescriptor) -> None:
        """Close a queue that was handed over."""
        self.remote.pop(descriptor.handle, None)
        self._opening.close_queue(descriptor)

    def close_remote(self, handle: ContextHandle) -> None:
        """Close the queue, unless a reader has taken it over meanwhile (G27).

        Also [MS-MQMP] 3.1.7.2 PCTX_OPENREMOTE_HANDLE_TYPE Context Handle Rundown Routine.
        """
        descriptor: OpenQueueDescriptor = handle.value.open_queue_descriptor_reference
        if descriptor.remote_read_state is RemoteReadState.OPENED:
            self.remote.pop(descriptor.handle, None)
            self._opening.close_queue(descriptor)

    # RPC_INT_XACT_HANDLE

    def open_transaction(self, call: Call, transaction: Transaction) -> ContextHandle:
        """A context handle on an internal transaction, which its rundown aborts."""
        transaction.origin = origin_of_peer(call.peer, RPC)
        try:
            return call.open_context_handle(
                "RPC_INT_XACT_HANDLE", transaction, self._run_down_transaction
            )
        except BaseException:
            self._transactions.transaction_abort(transaction.identifier)
            raise

    def _run_down_transaction(self, handle: ContextHandle) -> None:
        """[MS-MQMP] 3.1.7.3 RPC_INT_XACT_HANDLE Context Handle Rundown Routine."""
        transaction: Transaction = handle.value
        if not transaction.ended:
            self._transactions.transaction_abort(transaction.identifier)

    # Cursors

    def create_cursor(self, descriptor: OpenQueueDescriptor) -> int:
        """The handle of a new cursor; raises MQError if the queue is deleted or has too many."""
        cursor = self._readers.open_cursor(descriptor)
        if cursor is None:
            raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "the queue has been deleted")
        return cursor.handle


def _owned(record: LocalQueueContextHandle | None, call: Call) -> OpenQueueDescriptor:
    if record is None or record.owner != call.identity.sid:
        raise MQError(HResult.MQ_ERROR_INVALID_HANDLE)
    return record.open_queue_descriptor_reference
