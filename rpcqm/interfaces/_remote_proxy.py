"""Remote queues that clients read through us as their supporting server ([MS-MQMP] 3.1.1.4).

The service gives the functions that call the other queue manager ([MS-MQQP] 3.2).
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from rpcqm.base.allowance import Allowance
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import MQ_ACTION_RECEIVE
from rpcqm.qm.remote_reading import RemotelyRead, RemoteReader, read_and_end
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import ContextHandle


class RemoteNumbers(NamedTuple):
    """The numbers from R_QMOpenRemoteQueue at the other queue manager."""

    queue: int
    descriptor: int
    context: int


OpenRemote = Callable[[str, RemoteNumbers, str], Completion[RemoteReader]]
"""Takes over a queue at a machine, by the numbers it has there, for the SID of a caller."""


@dataclass(eq=False, slots=True)
class RemoteQueueProxyHandle:
    """An RPC_QUEUE_HANDLE for a remote queue ([MS-MQMP] 3.1.1.5).

    `cursors` are its CursorProxy elements ([MS-MQMP] 3.1.1.6): ours to theirs. `allowance` counts
    them for the client (G129). `receiving` says whether the client has opened the queue for
    receiving, and not for peeking only.
    """

    context: int
    owner: str
    reader: RemoteReader
    path_name: str
    format_name: FormatName
    receiving: bool
    allowance: Allowance
    cursors: dict[int, int] = field(default_factory=dict)

    def require_receiving(self) -> None:
        """Raise MQError(MQ_ERROR_ACCESS_DENIED) for a handle that was opened for peeking."""
        if not self.receiving:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "not opened for receiving")

    async def purge(self) -> None:
        """Remove all messages over there ([MS-MQMP] 3.1.4.22)."""
        await self.reader.purge()

    def remote_cursor(self, cursor: int) -> int:
        """The other side's number of a cursor (0: no cursor); raises MQError for an unknown one."""
        return self._counterpart(cursor) if cursor else 0

    def _counterpart(self, cursor: int) -> int:
        try:
            return self.cursors[cursor]
        except KeyError:
            raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, f"cursor {cursor:#x}") from None

    async def create_cursor(self) -> int:
        """A cursor over there, under a number of ours ([MS-MQMP] 3.1.5.4)."""
        self.allowance.take()
        try:
            remote = await self.reader.create_cursor()
        except BaseException:
            self.allowance.give_back()
            raise
        number = 0
        while not number or number in self.cursors:
            number = secrets.randbits(32)
        self.cursors[number] = remote
        return number

    async def close_cursor(self, cursor: int) -> None:
        """Close a cursor here and its counterpart over there ([MS-MQMP] 3.1.4.19)."""
        remote = self._counterpart(cursor)
        del self.cursors[cursor]
        self.allowance.give_back()
        await self.reader.close_cursor(remote)


class RemoteQueueProxies:
    """The proxies of all clients, by the clients' 32-bit numbers ([MS-MQMP] 3.1.1.4)."""

    def __init__(self, open_remote: OpenRemote | None) -> None:
        self._open_remote = open_remote
        self._by_context: dict[int, RemoteQueueProxyHandle] = {}

    async def open(
        self,
        call: Call,
        place: tuple[str, str],
        name: FormatName,
        numbers: RemoteNumbers,
        receiving: bool,
    ) -> tuple[ContextHandle, int]:
        """Take a queue over for a client; its handle and number ([MS-MQMP] 3.1.4.17).

        `place` is the path name of the queue, and the machine that has it.
        """
        if self._open_remote is None:
            raise MQError(
                HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE, "no reading from elsewhere"
            )
        path, machine = place
        owner, allowance = call.identity.sid, call.association_group.cursors
        reader = await self._open_remote(machine, numbers, owner)
        proxy = RemoteQueueProxyHandle(0, owner, reader, path, name, receiving, allowance)
        while not proxy.context or proxy.context in self._by_context:
            proxy.context = secrets.randbits(32)
        try:
            handle = call.open_context_handle("RPC_QUEUE_HANDLE", proxy, self._run_down)
        except BaseException:
            reader.close()
            raise
        self._by_context[proxy.context] = proxy
        return handle, proxy.context

    def find(self, call: Call, number: int) -> RemoteQueueProxyHandle | None:
        """The proxy that a caller has under a number; None if he has not opened it (G43)."""
        proxy = self._by_context.get(number)
        return proxy if proxy is not None and proxy.owner == call.identity.sid else None

    def close(self, proxy: RemoteQueueProxyHandle) -> None:
        """Close a proxy and its remote queue, ignoring errors there ([MS-MQMP] 3.1.4.18)."""
        if self._by_context.pop(proxy.context, None) is not None:
            proxy.allowance.give_back(len(proxy.cursors))
            proxy.cursors.clear()
            proxy.reader.close()

    def _run_down(self, handle: ContextHandle) -> None:
        """[MS-MQMP] 3.1.7.1 RPC_QUEUE_HANDLE Context Handle Rundown Routine."""
        self.close(handle.value)


def proxy_of(handle: ContextHandle) -> RemoteQueueProxyHandle | None:
    """The proxy behind an RPC_QUEUE_HANDLE; None for a local queue."""
    value = handle.value
    return value if isinstance(value, RemoteQueueProxyHandle) else None


async def read_through(
    call: Call,
    proxy: RemoteQueueProxyHandle,
    action: int,
    timeout: int,
    cursor: int,
    translate: Callable[[RemotelyRead], HResult],
) -> HResult:
    """Read for a client ([MS-MQMP] 3.1.5.3); acknowledge the message once it is translated.

    Returns the status of `translate`, or of the end of the read; raises the other side's refusals
    as MQError.
    """
    if action == MQ_ACTION_RECEIVE:
        proxy.require_receiving()
    pending = proxy.reader.read(action, timeout, proxy.remote_cursor(cursor))
    call.on_abandoned(pending.cancel)
    status = HResult.MQ_ERROR

    def keep(message: RemotelyRead) -> bool:
        nonlocal status
        status = translate(message)
        return status is HResult.MQ_OK and not call.abandoned

    await read_and_end(proxy.reader, pending, keep)
    return status
