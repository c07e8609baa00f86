"""The hook by which tests compare this room with the careful path.

An observer is made with each queue manager whose process has RPCQM_OBSERVER in its environment,
which names it (`package.module:name`). It is called before and after a run, and changes nothing.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import CarefulPath
from rpcqm.store.transaction import StoreTransaction

if TYPE_CHECKING:
    from rpcqm.binary.connection.protocol import BinaryProtocol
    from rpcqm.fast.doors.session_arrival import ArrivalObserver
    from rpcqm.fast.doors.session_outgoing import LeavingObserver

VARIABLE = "RPCQM_OBSERVER"

Apart = Callable[[bytes, bytes | None], Iterable[tuple[bytes, bytes | None]]]
"""Gives the keys and values of the records that are equivalent to one record."""


class Observer(Protocol):
    """Compares runs with their requests; `compared` counts the compared requests."""

    compared: int

    def at_one_time(self) -> AbstractContextManager[None]:
        """Stop the clock within the block."""

    def keeping(self) -> AbstractContextManager[None]:
        """Restore within the block what a careful path changes outside the store."""

    def rehearse(self, requests: Iterable[object]) -> Any:
        """Go the careful way with each request, and undo it; returns the argument for `compare`."""

    def compare(
        self,
        rehearsal: Any,
        change: StoreTransaction,
        answers: list[bytes],
        *,
        together: bool = False,
        apart: Apart | None = None,
    ) -> None:
        """Compare the commit of a run.

        Records written `together` appear once for many writes of the careful path. `apart` gives
        the careful path's records for one record of the run.
        """

    def compare_call(self, call: Call, path: CarefulPath, templated: bytes) -> None:
        """Compare the answer of a call; the commit of the careful path is undone."""

    def compare_answer(self, careful: bytes, templated: bytes) -> None:
        """Compare the answers of a read."""

    def of_arrivals(
        self, engine: QueueManagerEngine, protocol: "BinaryProtocol"
    ) -> "ArrivalObserver":
        """The comparison of packets that sessions take together."""

    def of_leaving(
        self, engine: QueueManagerEngine, protocol: "BinaryProtocol"
    ) -> "LeavingObserver":
        """The comparison of messages that sessions send, and remove, together."""

    def equal(self, what: str, careful: object, templated: object) -> None:
        """Compare one value."""


def observer_of(engine: QueueManagerEngine) -> Observer | None:
    """The observer of a queue manager before its start; None unless the environment names one."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    module, _, name = named.partition(":")
    made: Observer = getattr(import_module(module), name)(engine)
    return made
