"""The target of whole calls: stub data of every method against a real queue manager."""

import tempfile
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from rpcqm.codec.idl.tree import ContextHandleType, Pointer
from rpcqm.codec.interface import Operation, TransferSyntax, load
from rpcqm.codec.ndr.classes import message
from tests.fuzz.mutation import mutated
from tests.fuzz.target import Run, Target, Violation
from tests.fuzz.targets_codec import examples
from tests.support.queue_manager import MEMORY, SETTINGS, RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, Caller, PendingCall
from tests.unit.interfaces.test_bad_input import SERVED, Victim, held

SYNTAXES = tuple(TransferSyntax)
TEMPLATED = (
    "rpc_ACSendMessageEx",
    "rpc_ACReceiveMessageEx",
    "R_StartReceive",
    "R_EndReceive",
)
CALLS_OF_A_CLIENT = 64
"""After so many calls a client is lost, with what it has open and waits for."""


def _marker(number: int) -> int:
    return 0x5EA1ED00 + number


@cache
def _markers() -> dict[str, Any]:
    """What stands in stubs for what only a run knows: handles, by the names of `held`."""
    with _victim() as victim:
        known = held(victim.connect(), victim.qm, victim.queue())
    markers: dict[str, Any] = {}
    for number, (name, value) in enumerate(known.items()):
        if isinstance(value, bytes):
            markers[name] = b"\0\0\0\0" + name.encode()[:16].ljust(16, b".")
        elif name in ("hQMContext", "hCursor", "hQueue"):
            markers[name] = _marker(number)
        else:
            markers[name] = value
    return markers


@contextmanager
def _victim() -> Iterator[Victim]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        qm = RunningQueueManager(Path(directory), replace(SETTINGS, supporting_server=True))
        try:
            yield Victim(qm)
        finally:
            qm.stop()


def _seeds() -> Iterable[bytes]:
    """Requests of each method in both syntaxes, as they are and with what a client holds."""
    known = _markers()
    for index, (_, operation) in enumerate(SERVED):
        for request in examples(operation.declaration, False):
            for number, syntax in enumerate(SYNTAXES):
                yield _input(index, number, operation.encode_request(syntax, request))
            _make_sensible(operation, request, known)
            for number, syntax in enumerate(SYNTAXES):
                yield _input(index, number, operation.encode_request(syntax, request))


def _input(index: int, syntax: int, stub: bytes) -> bytes:
    return bytes([index, syntax]) + stub


def _make_sensible(operation: Operation, request: Any, known: dict[str, Any]) -> None:
    for parameter in message(operation.declaration, response=False).parameters:
        inner = parameter.type.to if isinstance(parameter.type, Pointer) else parameter.type
        key = inner.name if isinstance(inner, ContextHandleType) else parameter.name
        if key in known and type(getattr(request, parameter.name)) is type(known[key]):
            setattr(request, parameter.name, known[key])


class Session:
    """Clients of one queue manager, one after the other, each in both syntaxes."""

    def __init__(self, victim: Victim) -> None:
        self.victim = victim
        self.calls = 0
        self.callers: list[Caller] = []
        self.known: dict[bytes, bytes] = {}

    def run(self, octets: bytes) -> Hashable:
        """One call, answered or waiting; what failed inside is a violation."""
        if self.calls % CALLS_OF_A_CLIENT == 0:
            self._begin()
        self.calls += 1
        index, syntax = (octets + b"\0\0")[:2]
        name, operation = SERVED[index % len(SERVED)]
        stub = octets[2:]
        for marker, real in self.known.items():
            stub = stub.replace(marker, real)
        offered = load(name).syntaxes
        caller = self.callers[syntax % len(SYNTAXES) if len(offered) > 1 else 0]
        call = caller.send_stub(load(name), operation, stub)
        caller.settle()
        if self.victim.failures:
            raise Violation(f"{operation.name} failed inside")
        return operation.name, outcome_of(call)

    def _begin(self) -> None:
        """Lose the client and its handles, see that nobody else lost anything, and start anew."""
        for caller in self.callers:
            caller.lose()
        self.victim.check()
        server = self.victim.server
        first = server.connect(ADMINISTRATOR)
        held_now = held(first, self.victim.qm, self.victim.queue())
        second = server.connect(ADMINISTRATOR, group_id=first.group_id, syntax=TransferSyntax.NDR64)
        self.callers = [first, second]
        self.known = {
            _wire(marker): _wire(held_now[name])
            for name, marker in _markers().items()
            if marker != held_now[name] and isinstance(marker, bytes | int)
        }


def _wire(value: bytes | int) -> bytes:
    return value if isinstance(value, bytes) else value.to_bytes(4, "little")


def outcome_of(call: PendingCall) -> Hashable:
    if call.fault is not None:
        return "fault", call.fault
    if call.response is None:
        return "waits"
    return getattr(call.response, "result", 0)


@contextmanager
def _opened() -> Iterator[Run]:
    for name, operation in SERVED:
        if operation.name in TEMPLATED:
            for syntax in load(name).syntaxes:
                request = next(iter(examples(operation.declaration, False)))
                # What it compiles stays; the first input shall not pay for it.
                operation.tracing(syntax).trace(operation.encode_request(syntax, request))
    with _victim() as victim:
        yield Session(victim).run


def _call_mutated(random: Random, octets: bytes, others: Sequence[bytes]) -> bytes:
    """As it is at times, for its effects; else mostly the same method."""
    chosen = random.random()
    if chosen < 0.1:
        return octets
    if chosen < 0.12:
        return mutated(random, octets, others)
    return octets[:2] + mutated(random, octets[2:], [octets[2:]])


TARGETS = (Target("call", _seeds, _opened, mutate=_call_mutated, share=25, lifetime=2_000),)
