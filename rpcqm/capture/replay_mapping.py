"""From captured to live: what a server chose when it was recorded, and what it chooses now."""

import re
from typing import Any

from rpcqm.capture.binary_conversation import SIGNATURE
from rpcqm.capture.call import Call
from rpcqm.codec.interface import Value
from rpcqm.codec.types.mqmq import OBJECTID, QUEUE_FORMAT

LEARNT = {
    "phCursor": "cursor",
    "pMoveContext": "move context",
    "pdwContext": "context",
    "dwpContext": "context",
    "pdwQMContext": "context",
    "phQueue": "queue handle",
}
"""Parameters of responses by which a server hands something out."""
USED = {
    "hCursor": "cursor",
    "ullContextTo": "move context",
    "dwContext": "context",
    "dwQMContext": "context",
    "hQMContext": "context",
    "LookupId": "lookup identifier",
    "LookupIdentifier": "lookup identifier",
}
"""Parameters of requests by which a client names it again."""

NO_HANDLE = bytes(20)
_SEQUENTIAL_BITS = 56
_ADDRESS = re.compile(r"(?i)(TCP:|OS:)([^\\/]+)(.*)", re.DOTALL)


class Mapping:
    """Pairs of captured and live values, by what they are; each captured one has one live one."""

    def __init__(self, machine: str = ".", address: str = "127.0.0.1") -> None:
        self._machine = machine
        self._address = address
        self._live: dict[tuple[str, Any], Any] = {}

    def learn(self, kind: str, captured: Any, live: Any) -> None:
        self._live[kind, captured] = live

    def agrees(self, kind: str, captured: Any, live: Any) -> bool:
        """Whether a live value is what stands for the captured one; the first time it is."""
        return bool(self._live.setdefault((kind, captured), live) == live)

    def live(self, kind: str, captured: Any) -> Any:
        """What stands for a captured value; the value itself when that was never learnt."""
        return self._live.get((kind, captured), captured)

    # Requests.

    def request(self, call: Call) -> Any:
        """The request to send instead of the captured one."""
        captured, operation = call.decoded_request(), call.operation
        made = _copied(captured)
        for handle in operation.context_handles if operation else ():
            octets = getattr(made, handle.name, None)
            if "in" in handle.direction and isinstance(octets, bytes):
                setattr(made, handle.name, self.live("handle", octets))
        for name in made.__slots__:
            kind = USED.get(name)
            if kind is not None and getattr(made, name):
                setattr(made, name, self.live(kind, getattr(made, name)))
        self._named(made, 4)
        return made

    def _named(self, value: Any, depth: int) -> None:
        """Replace names of machines and identifiers of messages in what was copied."""
        if isinstance(value, QUEUE_FORMAT) and isinstance(value.u.value, str):
            value.u.value = self.direct_name(value.u.value)
        elif isinstance(value, OBJECTID):
            known = self.live("message", (value.Lineage, value.Uniquifier))
            value.Lineage, value.Uniquifier = known
        elif isinstance(value, Value) and depth:
            for name in value.__slots__:
                self._named(getattr(value, name, None), depth - 1)

    def direct_name(self, name: str) -> str:
        """A direct format name without its DIRECT=, of the live machine."""
        found = _ADDRESS.fullmatch(name)
        if found is None:
            return name
        kind = found[1].upper()
        return found[1] + (self._address if kind == "TCP:" else self._machine) + found[3]

    # Responses.

    def response(self, call: Call, captured: Any, live: Any) -> None:
        """Learn from two answers to the same question."""
        operation = call.operation
        for handle in operation.context_handles if operation else ():
            if "out" in handle.direction:
                pair = getattr(captured, handle.name, None), getattr(live, handle.name, None)
                if isinstance(pair[0], bytes) and NO_HANDLE not in pair:
                    self.learn("handle", *pair)
        for name in captured.__slots__:
            kind = LEARNT.get(name)
            if kind is not None and getattr(captured, name):
                self.learn(kind, getattr(captured, name), getattr(live, name))
        self._message(captured, live)

    def _message(self, captured: Any, live: Any) -> None:
        """The lookup identifier of a message that was read: its priority and its number."""
        pair = [_lookup_identifier(response) for response in (captured, live)]
        if None not in pair:
            self.learn("lookup identifier", *pair)


def _lookup_identifier(response: Any) -> int | None:
    sections = getattr(response, "ppPacketSections", None)
    if not sections or not getattr(response, "pSequenceId", 0):
        return None
    octets = getattr(sections[0], "pSectionBuffer", None) or b""
    if octets[4:8] != SIGNATURE:
        return None
    return (7 - (octets[2] & 7)) << _SEQUENTIAL_BITS | int(response.pSequenceId)


def _copied(value: Any) -> Any:
    """A structure with copies of the structures in it; arrays are shared."""
    made = object.__new__(type(value))
    for name in value.__slots__:
        inner = getattr(value, name, None)
        setattr(made, name, _copied(inner) if isinstance(inner, Value) else inner)
    return made
