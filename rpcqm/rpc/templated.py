"""A call that a template has recognised, until it is answered."""

from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import ContextHandle
from rpcqm.rpc.interface_registry import CarefulPath


class TemplatedCall:
    """A call that waits for the end of the turn, using its handle together with others.

    Make one only after `handle.join()` has said yes, or without a handle where calls that use it
    do not wait for each other.
    """

    __slots__ = ("_handle", "_path", "call")

    def __init__(self, call: Call, path: CarefulPath, handle: ContextHandle | None) -> None:
        self.call = call
        self._path = path
        self._handle = handle
        path.pend(call, 1)

    def answer(self, stub: bytes) -> None:
        """Answer it."""
        self._path.pend(self.call, -1)
        self.call.association.send_response(self.call, stub)
        if self._handle is not None:
            self._handle.leave()

    def carefully(self) -> None:
        """Have it run as if no template had taken it."""
        self._path.pend(self.call, -1)
        if self._handle is not None:
            self._handle.leave()
        self._path.run_carefully(self.call)

    def rehearse(self) -> bytes:
        """Run it up to the commit, for a comparison; what it would be answered with."""
        return self._path.rehearse(self.call)
