"""The common parts of operations' templates: the shape of a call, its handle, its waiting."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Generic, TypeVar

from rpcqm.base.errors import RpcFault
from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.fast.formats.stub_shapes import Holes, StubShape, StubShapes
from rpcqm.fast.turn import Turn
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import ContextHandle
from rpcqm.rpc.dispatch import find_handle
from rpcqm.rpc.interface_registry import CarefulPath

Opened = TypeVar("Opened")


class Recognition:
    """The shapes of one operation's requests in one syntax.

    It recognises nothing while `turn.is_on` is False.
    """

    def __init__(
        self, turn: Turn, operation: Operation, syntax: TransferSyntax, holes: Holes
    ) -> None:
        self.turn = turn
        handles = operation.context_handles
        self._parameter = handles[0] if handles else None
        self.shapes = StubShapes(partial(operation.tracing, syntax), holes)

    def of(self, call: Call) -> tuple[StubShape, tuple[Any, ...]] | None:
        """The shape of a call and the values of its holes; other calls teach new shapes."""
        if not self.turn.is_on:
            return None
        found = self.shapes.find(call.stub_data)
        if found is None:
            self.shapes.note(call.stub_data)
        return found

    def handle(self, call: Call, wire: bytes) -> ContextHandle | None:
        """The handle in a call, if its caller may use it; None lets the careful path report why
        not."""
        assert self._parameter is not None
        try:
            return find_handle(call, self._parameter, wire)
        except RpcFault:
            return None


class HandleRecogniser(Recognition, ABC, Generic[Opened]):
    """Recognises requests whose first hole is a handle for an `Opened` object."""

    @abstractmethod
    def carry(self, call: Call, path: CarefulPath, opened: Opened, values: tuple[Any, ...]) -> bool:
        """Carry out a call with the values of its holes; False if anything is unusual."""

    def take(self, call: Call, path: CarefulPath) -> bool:
        """Carry out a repeated call (`rpc.interface_registry.Shortcut`)."""
        found = self.of(call)
        if found is None:
            return False
        values = found[1]
        handle = self.handle(call, values[0])
        return handle is not None and self.carry(call, path, handle.value, values)


class TemplatedCall:
    """A call that waits for the end of the turn; other calls of its handle need not wait for it."""

    __slots__ = ("_path", "call")

    def __init__(self, call: Call, path: CarefulPath) -> None:
        self.call = call
        self._path = path
        path.pend(call, 1)

    def answer(self, stub: bytes) -> None:
        """Answer it."""
        self._path.pend(self.call, -1)
        self.call.association.send_response(self.call, stub)

    def carefully(self) -> None:
        """Have the careful path run it."""
        self._path.pend(self.call, -1)
        self._path.run_carefully(self.call)
