"""The hook by which tests compare what this room does with the careful path.

An observer is made with each queue manager whose process has RPCQM_OBSERVER in its environment,
which names it (`package.module:name`). It is asked before and after a run, and changes nothing.
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
"""Tells keys and values of the records that are the same as one record."""


class Observer(Protocol):
    """Compares runs with their requests; `compared` is how many requests it has compared."""

    compared: int

    def at_one_time(self) -> AbstractContextManager[None]:
        """Let no time pass within the block."""

    def keeping(self) -> AbstractContextManager[None]:
        """Keep as it is what a careful path changes beside the store."""

    def rehearse(self, requests: Iterable[object]) -> Any:
        """Go the careful way with each request, and take it back; what `compare` takes."""

    def compare(
        self,
        rehearsal: Any,
        change: StoreTransaction,
        answers: list[bytes],
        *,
        together: bool = False,
        apart: Apart | None = None,
    ) -> None:
        """Compare what a run is about to commit.

        What is written `together` writes records once that the careful path writes again and again.
        `apart` tells what one record of the run is on the careful path.
        """

    def compare_call(self, call: Call, path: CarefulPath, templated: bytes) -> None:
        """Compare what a call is answered with; what the careful path commits is taken back."""

    def compare_answer(self, careful: bytes, templated: bytes) -> None:
        """Compare what a read is answered with."""

    def of_arrivals(
        self, engine: QueueManagerEngine, protocol: "BinaryProtocol"
    ) -> "ArrivalObserver":
        """What compares packets that sessions take together."""

    def of_leaving(
        self, engine: QueueManagerEngine, protocol: "BinaryProtocol"
    ) -> "LeavingObserver":
        """What compares messages that sessions send, and remove, together."""

    def equal(self, what: str, careful: object, templated: object) -> None:
        """Compare one thing."""


def observer_of(engine: QueueManagerEngine) -> Observer | None:
    """The observer of a queue manager that has not started; None unless its process has one."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    module, _, name = named.partition(":")
    made: Observer = getattr(import_module(module), name)(engine)
    return made
