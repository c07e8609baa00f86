"""From captured to live: what a server chose when it was recorded, and what it chooses now."""

import functools
import re
import time
from collections.abc import Collection, Iterable
from typing import Any, TypeVar
from uuid import UUID, uuid4

from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.codec.interface import Operation, Value
from rpcqm.codec.ndr.layout import reachable
from rpcqm.codec.packet.base import SIGNATURE_OCTETS
from rpcqm.codec.packet.fields import PRIORITY, SIGNATURE
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.codec.types.mqmq import OBJECTID, QUEUE_FORMAT
from rpcqm.codec.types.mqvalues import INFINITE

LEARNT = {
    "phCursor": "cursor",
    "hCursor": "cursor",
    "pMoveContext": "move context",
    "pdwContext": "context",
    "dwpContext": "context",
    "pdwQMContext": "context",
    "phQueue": "queue handle",
    "dwpQueue": "queue handle",
}
"""Parameters of responses, and members of theirs, by which a server hands something out."""
USED = {
    "hCursor": "cursor",
    "Cursor": "cursor",
    "ullContextTo": "move context",
    "dwContext": "context",
    "dwQMContext": "context",
    "hQMContext": "context",
    "dwpContext": "context",
    "dwpRemoteContext": "context",
    "hQueue": "queue handle",
    "pQueue": "queue handle",
    "hRemoteQueue": "queue handle",
    "dwQueue": "queue handle",
    "dwpQueue": "queue handle",
    "LookupId": "lookup identifier",
    "LookupIdentifier": "lookup identifier",
}
"""Parameters of requests, and members of theirs, by which a client names it again."""

QUEUE_MANAGER = "queue manager"

_DEEPEST = 6
"""How deep structures are searched: no type of the IDL nests deeper."""

Kind = TypeVar("Kind", bound=Value)

NO_HANDLE = bytes(20)
_PRIORITY_AT, _PRIORITY = PRIORITY
_ADDRESS = re.compile(r"(?i)(TCP:|OS:)([^\\/]+)(.*)", re.DOTALL)


class Mapping:
    """Pairs of captured and live values, by what they are; each captured one has one live one."""

    def __init__(self, machine: str = ".", address: str = "127.0.0.1") -> None:
        self._machine = machine
        self._address = address
        self._live: dict[tuple[str, object], Any] = {}

    def learn(self, kind: str, captured: object, live: object) -> None:
        self._live[kind, captured] = live

    def agrees(self, kind: str, captured: object, live: object) -> bool:
        """Whether a live value is what stands for the captured one; the first time it is."""
        return bool(self._live.setdefault((kind, captured), live) == live)

    def live(self, kind: str, captured: object) -> Any:
        """What stands for a captured value; the value itself when that was never learnt."""
        return self._live.get((kind, captured), captured)

    def knows(self, kind: str, captured: object) -> bool:
        """Whether something stands for a captured value."""
        return (kind, captured) in self._live

    def client(self, captured: UUID) -> UUID:
        """Who a captured queue manager is now: somebody new, so that nothing is a duplicate."""
        live = self.live(QUEUE_MANAGER, captured)
        if live == captured:
            live = uuid4()
            self.learn(QUEUE_MANAGER, captured, live)
        return UUID(str(live))

    # Requests.

    def request(self, call: CapturedCall) -> Any:
        """The request to send instead of the captured one."""
        captured, operation = call.decoded_request(), call.operation
        made = _copied(captured)
        for handle in operation.context_handles if operation else ():
            octets = getattr(made, handle.name, None)
            if "in" in handle.direction and isinstance(octets, bytes):
                setattr(made, handle.name, self.live("handle", octets))
        self._use(made)
        _postpone(made, call)
        if operation is None or _may_name(operation):
            self._named(made, _DEEPEST)
        return made

    def _use(self, made: Value) -> None:
        for name in made.__slots__:
            kind = USED.get(name)
            if kind is not None and isinstance(inner := getattr(made, name), int) and inner:
                setattr(made, name, self.live(kind, inner))

    def _named(self, value: object, depth: int) -> None:
        """Replace names of machines, identifiers of messages and numbers in what was copied."""
        if isinstance(value, QUEUE_FORMAT) and isinstance(value.u.value, str):
            value.u.value = self.direct_name(value.u.value)
        elif isinstance(value, OBJECTID):
            known = self.live("message", (value.Lineage, value.Uniquifier))
            value.Lineage, value.Uniquifier = known
        elif isinstance(value, Value) and depth:
            for name in value.__slots__:
                inner = getattr(value, name, None)
                if isinstance(inner, Value):
                    self._named(inner, depth - 1)
                    if depth and type(inner) not in (QUEUE_FORMAT, OBJECTID):
                        self._use(inner)

    def direct_name(self, name: str) -> str:
        """A direct format name without its DIRECT=, of the live machine."""
        found = _ADDRESS.fullmatch(name)
        if found is None:
            return name
        kind = found[1].upper()
        return found[1] + (self._address if kind == "TCP:" else self._machine) + found[3]

    # Responses.

    def response(self, call: CapturedCall, captured: Value, live: Value) -> None:
        """Learn from two answers to the same question."""
        operation = call.operation
        for handle in operation.context_handles if operation else ():
            if "out" in handle.direction:
                pair = getattr(captured, handle.name, None), getattr(live, handle.name, None)
                if isinstance(pair[0], bytes) and NO_HANDLE not in pair:
                    self.learn("handle", *pair)
        self._hand_out(captured, live)
        if operation is not None and _hands_out_inside(operation):
            self._look_inside(captured, live, _DEEPEST)
        self._message(captured, live)

    def _hand_out(self, captured: Value, live: Value) -> None:
        for name in captured.__slots__:
            kind = LEARNT.get(name)
            if kind is not None and getattr(captured, name):
                self.learn(kind, getattr(captured, name), getattr(live, name))

    def _look_inside(self, captured: Value, live: Value, depth: int) -> None:
        for name in captured.__slots__ if depth else ():
            one, other = getattr(captured, name, None), getattr(live, name, None)
            if isinstance(one, Value) and isinstance(other, type(one)):
                self._hand_out(one, other)
                self._look_inside(one, other, depth - 1)

    def _message(self, captured: object, live: object) -> None:
        """The lookup identifier of a message that was read: its priority and its number."""
        pair = [_lookup_identifier(response) for response in (captured, live)]
        if None not in pair:
            self.learn("lookup identifier", *pair)


@functools.cache
def _may_name(operation: Operation) -> bool:
    """Whether a request of the operation may hold something to replace in its structures."""
    inside = [each for p in operation.declaration.parameters for each in reachable(p.type)]
    named = any(getattr(each, "name", "") in ("QUEUE_FORMAT", "OBJECTID") for each in inside)
    return named or _has_members(inside, USED)


@functools.cache
def _hands_out_inside(operation: Operation) -> bool:
    """Whether a response of the operation may hand something out in its structures."""
    parameters = (each for each in operation.declaration.parameters if each.out)
    return _has_members((each for p in parameters for each in reachable(p.type)), LEARNT)


def _has_members(types: Iterable[object], names: Collection[str]) -> bool:
    return any(each.name in names for made in types for each in getattr(made, "fields", ()))


def _postpone(made: object, call: CapturedCall) -> None:
    """A message that had a while to reach its queue has as long now."""
    buffer = getattr(getattr(made, "ptb", None), "old", None)
    if buffer is not None and 0 < buffer.ulAbsoluteTimeToQueue < INFINITE:
        later = (time.time_ns() - call.time) // 1_000_000_000
        due = buffer.ulAbsoluteTimeToQueue + later
        buffer.ulAbsoluteTimeToQueue = min(max(due, 0), INFINITE)


def _lookup_identifier(response: object) -> int | None:
    described = getattr(response, "lpRemoteReadDesc2", None)
    if described is not None:
        octets = getattr(described.pRemoteReadDesc, "lpBuffer", None)
        return _identifier(octets, described.SequentialId)
    sections = getattr(response, "ppPacketSections", None)
    sequence = getattr(response, "pSequenceId", 0)
    if not sections or not sequence:
        return None
    return _identifier(getattr(sections[0], "pSectionBuffer", None), sequence)


def _identifier(octets: object, sequence: int) -> int | None:
    if not isinstance(octets, bytes) or octets[SIGNATURE] != SIGNATURE_OCTETS:
        return None
    return (7 - (octets[_PRIORITY_AT] & _PRIORITY)) << SEQUENTIAL_BITS | int(sequence)


def _copied(value: Kind) -> Kind:
    """A structure with copies of the structures in it; arrays are shared."""
    made = object.__new__(type(value))
    for name in value.__slots__:
        inner = getattr(value, name, None)
        setattr(made, name, _copied(inner) if isinstance(inner, Value) else inner)
    return made
