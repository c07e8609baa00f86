"""Reads of one open queue that have begun and not ended ([MS-MQRR] 3.1.1.2, 3.1.1.3).

The specification has one table for all handles; here every handle has its own, by request id.
"""

from collections.abc import Iterator

from rpcqm.adm.transaction import Transaction
from rpcqm.base.clock import Deadlines
from rpcqm.base.errors import HResult, MQError

MAXIMUM_ENTRIES = 65_536
"""Reads of one open queue by RemoteRead that have begun and not ended.

This bounds the memory of one client.

Bound `rpc.pending_reads` [reads]: the read is refused with MQ_ERROR_INSUFFICIENT_RESOURCES.
"""


class PendingRequestEntry:
    """A receive that has begun ([MS-MQRR] 3.1.1.2).

    `lookup_identifier` is 0 until a message is locked; `cleanup` has the Pending Request Cleanup
    Timer, which runs from then on (G52).
    """

    __slots__ = ("cleanup", "lookup_identifier", "request_id", "transaction")

    def __init__(self, request_id: int, transaction: Transaction | None) -> None:
        self.request_id = request_id
        self.transaction = transaction
        self.lookup_identifier = 0
        self.cleanup: Deadlines | None = None

    def stop_timer(self) -> None:
        if self.cleanup is not None:
            self.cleanup.cancel(self)
            self.cleanup = None


class PendingRequestTable:
    """The pending requests of one handle ([MS-MQRR] 3.1.1.3).

    A peek has no entry; while it waits its request id is taken all the same (G52).
    """

    __slots__ = ("_entries", "_peeks")

    def __init__(self) -> None:
        self._entries: dict[int, PendingRequestEntry] = {}
        self._peeks: set[int] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[PendingRequestEntry]:
        return iter(list(self._entries.values()))

    def require_free(self, request_id: int) -> None:
        """Check that a read may begin under a request id.

        Raises MQError: INVALID_PARAMETER if the id is in use, INSUFFICIENT_RESOURCES if the handle
        has too many reads.
        """
        if request_id in self._entries or request_id in self._peeks:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"request {request_id} is pending")
        if len(self._entries) + len(self._peeks) >= MAXIMUM_ENTRIES:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many pending requests")

    def begin_receive(
        self, request_id: int, transaction: Transaction | None
    ) -> PendingRequestEntry:
        """The entry of a receive that begins; raises MQError as `require_free` raises it."""
        self.require_free(request_id)
        entry = self._entries[request_id] = PendingRequestEntry(request_id, transaction)
        return entry

    def begin_peek(self, request_id: int) -> None:
        """Reserve the request id of a waiting peek."""
        self._peeks.add(request_id)

    def end_peek(self, request_id: int) -> None:
        self._peeks.discard(request_id)

    def find(self, request_id: int) -> PendingRequestEntry:
        """The entry of a receive.

        Raises MQError as [MS-MQRR] 3.1.4.9 has it: INVALID_HANDLE when the handle has no entry
        at all, else INVALID_PARAMETER.
        """
        entry = self.of(request_id)
        if entry is not None:
            return entry
        if not self._entries:
            raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "nothing is pending on this handle")
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"request {request_id} is not pending")

    def of(self, request_id: int) -> PendingRequestEntry | None:
        """The entry of a receive, or None."""
        return self._entries.get(request_id)

    def restore(self, entry: PendingRequestEntry) -> None:
        """Put a removed entry back."""
        self._entries[entry.request_id] = entry

    def forget_message(self, lookup_identifier: int) -> None:
        """Forget the receive that has locked a message, if there is one."""
        for entry in self:
            if entry.lookup_identifier == lookup_identifier:
                self.remove(entry)

    def remove(self, entry: PendingRequestEntry) -> bool:
        """Forget an entry and stop its timer; False if it was forgotten before."""
        entry.stop_timer()
        if self._entries.get(entry.request_id) is not entry:
            return False
        del self._entries[entry.request_id]
        return True
