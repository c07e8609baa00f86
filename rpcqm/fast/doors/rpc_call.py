"""A call that a template has recognised, until it is answered."""

from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import CarefulPath


class TemplatedCall:
    """A call that waits for the end of the turn; those that use its handle do not wait for it."""

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
        """Have it run as if no template had taken it."""
        self._path.pend(self.call, -1)
        self._path.run_carefully(self.call)
