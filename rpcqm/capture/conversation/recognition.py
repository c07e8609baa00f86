"""Finds the interface of calls whose bind was not captured: the one whose types they have."""

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.interfaces import Context, known_interfaces
from rpcqm.codec.interface import Interface, TransferSyntax
from rpcqm.rpc.pdu import SyntaxId

MOST_CALLS = 64
"""How many calls of a context are tried before it stays unknown: each costs a decoding."""

Candidate = tuple[Interface, TransferSyntax]


class Recognition:
    """Narrows down what the calls of one context can be."""

    def __init__(self) -> None:
        self._candidates: list[Candidate] = [
            (interface, syntax)
            for interface in known_interfaces().values()
            for syntax in TransferSyntax
        ]
        self._calls = 0

    def look(
        self, identifier: int, opnum: int, request: bytes, response: bytes, big_endian: bool
    ) -> Context | None:
        """The context, once there is only one interface that has all calls so far."""
        if not self._candidates or self._calls == MOST_CALLS:
            return None
        self._calls += 1
        self._candidates = [
            each for each in self._candidates if _fits(each, opnum, request, response, big_endian)
        ]
        if len(self._candidates) != 1:
            return None
        interface, syntax = self._candidates[0]
        return Context(identifier, SyntaxId(interface.uuid, *interface.version), syntax.uuid)


def _fits(
    candidate: Candidate, opnum: int, request: bytes, response: bytes, big_endian: bool
) -> bool:
    """Whether both stubs are those of a method, to the last octet."""
    interface, syntax = candidate
    operation = interface.operations[opnum] if opnum < len(interface.operations) else None
    if operation is None or (big_endian and syntax is TransferSyntax.NDR64):
        return False
    codec = operation.codec(syntax, big_endian)
    try:
        return all(
            len(each.encode(each.decode(stub))) == len(stub)
            for each, stub in ((codec.request, request), (codec.response, response))
        )
    except (DecodeError, ValueError):
        return False
