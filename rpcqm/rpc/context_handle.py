"""Context handles: what a client gets, and how long it means something.

A handle lives in the association group in which it was made ([MS-RPCE] 3.3.1.4.1). It knows the
interface that made it, its type, its owner and the level that its user must have. It ends by
being closed or by rundown, once.
"""

import secrets
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import NONE

HANDLE_LENGTH = 20
NULL_HANDLE = bytes(HANDLE_LENGTH)

Rundown = Callable[["ContextHandle"], None]

_log = get_logger("rpc")


class ContextHandle:
    """One open handle; `value` is the interface's own.

    `wire` are the 20 octets a client holds. `minimum_level` is what every later call needs; an
    interface may raise it. `closed` is set before the rundown or the close is told.
    """

    __slots__ = (
        "_busy",
        "_carry_out",
        "_draining",
        "_joined",
        "_rundown",
        "_waiting",
        "closed",
        "closing",
        "interface",
        "minimum_level",
        "owner",
        "type_name",
        "value",
        "wire",
    )

    def __init__(
        self,
        type_name: str,
        value: object,
        rundown: Rundown | None,
        interface: object,
        owner: Identity,
        minimum_level: AuthenticationLevel,
    ) -> None:
        self.wire = bytes(4) + secrets.token_bytes(16)
        self.type_name = type_name
        self.value: Any = value  # its interface knows the type
        self.interface = interface
        self.owner = owner
        self.minimum_level = minimum_level
        self.closed = False
        self.closing = False
        self._rundown = rundown
        self._busy = False
        self._draining = False
        self._joined = 0
        self._carry_out: Callable[[], None] | None = None
        self._waiting: deque[Callable[[], None]] = deque()

    def try_acquire(self) -> bool:
        """Take the handle for a serialized call, unless another one uses it or waits for it.

        Calls that have joined are carried out first, since they came first.
        """
        if self._joined and self._carry_out is not None:
            self._carry_out()
        if self._busy or self._waiting:
            return False
        self._busy = True
        return True

    def acquire(self, start: Callable[[], None]) -> None:
        """Run `start` when no other serialized call uses the handle: now, or in its turn."""
        if self.try_acquire():
            start()
        else:
            self._waiting.append(start)

    def join(self, carry_out: Callable[[], None]) -> bool:
        """Take the handle for a call that a shortcut has taken; such calls share it.

        They are carried out in the order in which they came (G300), by `carry_out` when that is
        called. False while another call uses the handle or waits for it.
        """
        if self._waiting or (self._busy and not self._joined):
            return False
        self._busy = True
        self._joined += 1
        self._carry_out = carry_out
        return True

    def leave(self) -> None:
        """End a call that has joined."""
        self._joined -= 1
        if self._joined:
            return
        if self._waiting:
            self.release()
        else:
            self._busy = False

    def release(self) -> None:
        """End the serialized call that runs, and start the next."""
        self._busy = False
        if self._draining:
            return
        self._draining = True
        while self._waiting and not self._busy:
            self._busy = True
            self._waiting.popleft()()
        self._draining = False

    def run_down(self) -> None:
        """Tell the interface, once, that no client can use the handle any more."""
        self.closed = True
        rundown, self._rundown = self._rundown, None
        if rundown is not None:
            try:
                rundown(self)
            except Exception:  # the other handles of the group must be run down as well
                _log.exception("rundown failed", type_name=self.type_name)

    def forget(self) -> None:
        """Mark the handle as closed, without a rundown: its interface has ended what it meant."""
        self.closed = True
        self._rundown = None


class ContextHandleTable:
    """The context handles of one association group."""

    __slots__ = ("_ended", "_handles", "_limit")

    def __init__(self, limit: int) -> None:
        self._handles: dict[bytes, ContextHandle] = {}
        self._limit = limit
        self._ended = False

    def __len__(self) -> int:
        return len(self._handles)

    def __iter__(self) -> Iterator[ContextHandle]:
        return iter(self._handles.values())

    def open(
        self,
        type_name: str,
        value: object,
        rundown: Rundown | None,
        interface: object,
        owner: Identity,
        minimum_level: AuthenticationLevel = NONE,
    ) -> ContextHandle:
        """A new handle; raises RpcFault if the group has enough of them, or has ended."""
        if self._ended:
            raise RpcFault(FaultStatus.nca_s_comm_failure, "the client is gone")
        if len(self._handles) >= self._limit:
            raise RpcFault(FaultStatus.nca_s_fault_remote_no_memory, "too many context handles")
        handle = ContextHandle(type_name, value, rundown, interface, owner, minimum_level)
        self._handles[handle.wire] = handle
        return handle

    def find(self, wire: bytes) -> ContextHandle:
        """The open handle with these octets; raises RpcFault (G53) if no open handle has them."""
        handle = self._handles.get(wire)
        if handle is None or handle.closing:
            raise _mismatch("unknown or closed")
        return handle

    def close(self, handle: ContextHandle) -> None:
        """Forget a handle whose meaning the interface has ended."""
        self._handles.pop(handle.wire, None)
        handle.forget()

    def run_down(self, handle: ContextHandle) -> None:
        """Forget a handle and have its meaning ended."""
        self._handles.pop(handle.wire, None)
        handle.run_down()

    def run_down_all(self) -> None:
        """Run every handle down, because the last connection of the group is gone."""
        self._ended = True
        while self._handles:
            self.run_down(next(iter(self._handles.values())))


def check_use(
    handle: ContextHandle,
    identity: Identity,
    level: AuthenticationLevel,
    interface: object | None,
    type_name: str | None,
) -> None:
    """Whether a caller may use the handle.

    `interface` is the one called when handles are strict, `type_name` the parameter's type when
    they are type-strict, else None. Raises RpcFault: nca_s_fault_context_mismatch for a foreign
    handle (G53), RPC_S_ACCESS_DENIED for a level below the one recorded.
    """
    if interface is not None and handle.interface is not interface:
        raise _mismatch("of another interface")
    if type_name is not None and handle.type_name != type_name:
        raise _mismatch("of another type")
    if handle.owner.sid != identity.sid:
        raise _mismatch("of another identity")
    if level < handle.minimum_level:
        raise RpcFault(
            FaultStatus.RPC_S_ACCESS_DENIED, f"the handle needs {handle.minimum_level.name}"
        )


def _mismatch(reason: str) -> RpcFault:
    return RpcFault(FaultStatus.nca_s_fault_context_mismatch, f"context handle {reason}")
