"""Targets of shapes: stubs that nearly match what was learned.

The first octet of an input says whose stub the rest is, and in which syntax.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.interface import Operation, TransferSyntax, load
from rpcqm.codec.types.mqmq import OBJECTID, QUEUE_FORMAT, XACTUOW, QUEUE_FORMAT_u
from rpcqm.codec.types.qmcomm import (
    CACTransferBufferV1,
    CACTransferBufferV1_Send,
    CACTransferBufferV1_u,
    CACTransferBufferV2,
)
from rpcqm.codec.types.qmcomm2 import rpc_ACReceiveMessageExRequest, rpc_ACSendMessageExRequest
from rpcqm.codec.types.remoteread import R_EndReceiveRequest, R_StartReceiveRequest
from rpcqm.fast.doors import rpc_end as _end_templates
from rpcqm.fast.doors import rpc_receive as _receive_templates
from rpcqm.fast.doors import rpc_send as _send_templates
from rpcqm.fast.doors import rpc_start as _start_templates
from rpcqm.fast.formats.stub_check import value_at
from rpcqm.fast.formats.stub_cut import Holes
from rpcqm.fast.formats.stub_shapes import StubShapes
from tests.fuzz.mutation import LONGEST, mutated
from tests.fuzz.target import Run, Target, Violation
from tests.support.fast.stub_shapes import as_told
from tests.support.rpc.dependent_client import receiving_buffer

OPERATIONS: tuple[tuple[Operation, Holes], ...] = (
    (load("qmcomm2").operation("rpc_ACSendMessageEx"), _send_templates.HOLES),
    (load("qmcomm2").operation("rpc_ACReceiveMessageEx"), _receive_templates.HOLES),
    (load("remoteread").operation("R_StartReceive"), _start_templates.HOLES),
    (load("remoteread").operation("R_EndReceive"), _end_templates.HOLES),
)
"""Those that templates recognise, with the holes that these have."""
KINDS = [(operation, holes, each) for operation, holes in OPERATIONS for each in TransferSyntax]
HANDLE = bytes(range(20))


def _name(kind: int, value: Any) -> QUEUE_FORMAT:
    return QUEUE_FORMAT(m_qft=kind, u=QUEUE_FORMAT_u(kind, value))


def _send(arm: CACTransferBufferV1_Send, **fields: Any) -> rpc_ACSendMessageExRequest:
    body, title = fields.get("ppBody"), fields.get("ppTitle")
    old = CACTransferBufferV1(
        uTransferType=0,
        u=CACTransferBufferV1_u(0, arm),
        ulBodyBufferSizeInBytes=len(body or b""),
        ulAllocBodyBufferInBytes=len(body or b""),
        ulTitleBufferSizeInWCHARs=len(title or ""),
        ulAbsoluteTimeToQueue=77,
        pulVersion=16,
        **fields,
    )
    identifier = OBJECTID(Lineage=UUID(int=0))
    return rpc_ACSendMessageExRequest(
        hQueue=HANDLE, ptb=CACTransferBufferV2(old=old), pMessageID=identifier
    )


def _sends() -> Iterator[rpc_ACSendMessageExRequest]:
    none = CACTransferBufferV1_Send()
    text = CACTransferBufferV1_Send(pResponseQueueFormat=_name(3, r"OS:host\private$\answers"))
    both = CACTransferBufferV1_Send(
        pAdminQueueFormat=_name(3, "OS:a\\b"), pResponseQueueFormat=_name(1, UUID(int=9))
    )
    yield _send(none, ppBody=b"octets", pPriority=3, pDelivery=1, pApplicationTag=7)
    yield _send(none)
    yield _send(text, ppBody=b"seventeen octets!", ppTitle="a label\0", ppCorrelationID=HANDLE)
    yield _send(both, ppTitle="another\0", pBodySize=4, pulBodyType=8, pPriority=0)


def _receives() -> Iterator[rpc_ACReceiveMessageExRequest]:
    for action, timeout in ((0, 0), (0x80000000, 9)):
        buffer = receiving_buffer(action=action, timeout=timeout)
        yield rpc_ACReceiveMessageExRequest(hQMContext=7, ptb=buffer)
    own = XACTUOW(rgb=bytes(16))
    sizes: dict[str, Any] = dict.fromkeys(
        ("ulTitleBufferSizeInWCHARs", "pulTitleBufferSizeInWCHARs"), 20
    )
    buffer = receiving_buffer(16, pUow=own, pPriority=0, pClass=0, ppTitle="\0" * 20, **sizes)
    yield rpc_ACReceiveMessageExRequest(hQMContext=7, ptb=buffer)


def _requests(operation: Operation) -> Iterable[Any]:
    if operation.name == "R_EndReceive":
        return [R_EndReceiveRequest(phContext=HANDLE, dwAck=ack, dwRequestId=7) for ack in (1, 2)]
    if operation.name == "R_StartReceive":
        more = {"hCursor": 0, "ulTimeout": 9, "dwMaxBodySize": 8, "dwMaxCompoundMessageSize": 8}
        return [
            R_StartReceiveRequest(
                phContext=HANDLE, LookupId=5, ulAction=action, dwRequestId=7, **more
            )
            for action in (0, 0x80000000)
        ]
    return _receives() if operation.name == "rpc_ACReceiveMessageEx" else _sends()


def _seeds() -> Iterator[bytes]:
    for number, (operation, _, syntax) in enumerate(KINDS):
        for request in _requests(operation):
            yield bytes((number,)) + operation.encode_request(syntax, request)


SEVERAL = 28
"""Stubs of one kind after which it is known, and its length as well."""


class _Known:
    """The shapes of every kind, which learn what is fed as well."""

    def __init__(self) -> None:
        self._shapes = [
            StubShapes(partial(operation.tracing, syntax), holes)
            for operation, holes, syntax in KINDS
        ]
        for octets in _seeds():
            for _ in range(SEVERAL):
                self.run(octets)

    def run(self, octets: bytes) -> Hashable:
        """A stub: what is told of it is what the careful decoder tells, or nothing."""
        number = octets[0] % len(KINDS) if octets else 0
        (operation, holes, syntax), stub = KINDS[number], octets[1:]
        found = self._shapes[number].find(stub)
        try:
            request = operation.decode_request(syntax, stub)
        except DecodeError as error:
            self._shapes[number].note(stub)
            if found is not None:
                raise Violation(f"a stub of {operation.name} is told and refused") from error
            raise
        if found is None:
            return number, self._shapes[number].note(stub) is not None, len(self._shapes[number])
        for path, value in zip(holes.values, found[1], strict=True):
            if value not in as_told(value_at(request, path)):
                raise Violation(f"{path} is told otherwise than it is")
        sizes = (len(value).bit_length() for value in found[1] if isinstance(value, bytes))
        return number, tuple(sizes)


@contextmanager
def _opened() -> Iterator[Run]:
    yield _Known().run


def _nearly(random: Random, octets: bytes, others: Sequence[bytes]) -> bytes:
    """One octet is another one, or something is of another size and its counts say so, or not."""
    stub, chosen = bytearray(octets[1:]), random.random()
    if chosen < 0.2 or len(stub) < 60:
        return octets[:1] + mutated(random, bytes(stub), [octets[1:]])
    if chosen < 0.45:
        for _ in range(random.randrange(1, 3)):
            stub[random.randrange(len(stub))] = random.choice((0, 1, 2, 255, random.randrange(256)))
    else:
        _resize(random, stub)
    return octets[:1] + bytes(stub[:LONGEST])


def _resize(random: Random, stub: bytearray) -> None:
    """Change equal words, or most of them, and put in or take out as many octets somewhere."""
    words = {at: int.from_bytes(stub[at : at + 4], "little") for at in range(0, len(stub) - 3, 4)}
    size = random.choice([each for each in words.values() if 0 < each < 4_096] or [1])
    by, sure = random.choice((-4, -2, -1, 1, 2, 3, 4, 8, 24)), random.random() < 0.7
    for at, word in words.items():
        if word == size and (sure or random.random() < 0.8):
            stub[at : at + 4] = max(0, word + by).to_bytes(4, "little")
    place = random.randrange(len(stub) // 2, len(stub) + 1)
    change = random.choice((1, 2, 4)) * by if random.random() < 0.5 else by + 3 & -4
    if change > 0:
        stub[place:place] = random.randbytes(change)
    else:
        del stub[place : place - change]


TARGETS = (Target("shape", _seeds, _opened, (DecodeError,), mutate=_nearly, share=20),)
