"""Requests that have shapes, and what shapes tell of values."""

import random
import uuid
from typing import Any

import pytest
from hypothesis import strategies as st

from rpcqm.codec.interface import NULL, TransferSyntax, load
from rpcqm.codec.ndr.trace import Counts, Read, Tracing
from rpcqm.codec.types.mqmq import OBJECTID, QUEUE_FORMAT, QUEUE_FORMAT_u
from rpcqm.codec.types.qmcomm import (
    CACTransferBufferV1,
    CACTransferBufferV1_Send,
    CACTransferBufferV1_u,
    CACTransferBufferV2,
)
from rpcqm.codec.types.qmcomm2 import rpc_ACSendMessageExRequest
from rpcqm.fast.doors.rpc_send import HOLES
from rpcqm.fast.formats.stub_cut import Holes
from rpcqm.fast.formats.stub_shapes import StubShape, StubShapes
from tests.support.codec.interfaces import INTERFACES


def as_told(value: object) -> set[object]:
    """What a shape may tell of a value: arrays and strings of characters as octets, UUIDs too."""
    if isinstance(value, str):
        return {(value + end).encode("utf-16-le", "surrogatepass") for end in ("", "\0")}
    return {value.bytes_le} if isinstance(value, uuid.UUID) else {value}


SEND = load("qmcomm2").operation("rpc_ACSendMessageEx")
SYNTAXES = pytest.mark.parametrize("syntax", list(TransferSyntax), ids=lambda each: each.name)
TRACING = {syntax: SEND.tracing(syntax) for syntax in TransferSyntax}
NUMBERS = st.integers(0, 0xFFFF_FFFF)
OCTETS = st.integers(0, 0xFF)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


def queue_format(kind: int, value: Any) -> QUEUE_FORMAT:
    return QUEUE_FORMAT(m_qft=kind, m_SuffixAndFlags=0, u=QUEUE_FORMAT_u(kind, value))


QUEUE_FORMATS = st.one_of(
    st.none(),
    st.builds(queue_format, st.just(3), NAMES),
    st.builds(queue_format, st.just(1), st.uuids()),
)


@st.composite
def sends(draw: Any) -> rpc_ACSendMessageExRequest:
    """What applications send, with everything that can be in it."""
    body = draw(st.sampled_from([None, NULL]) | st.binary(max_size=60))
    title = draw(st.sampled_from([None, NULL]) | NAMES.map(lambda text: text + "\0"))
    size = len(body) if isinstance(body, bytes) else 0
    identifier = st.builds(OBJECTID, Lineage=st.uuids(), Uniquifier=NUMBERS)
    arm = CACTransferBufferV1_Send(
        pAdminQueueFormat=draw(QUEUE_FORMATS), pResponseQueueFormat=draw(QUEUE_FORMATS)
    )
    old = CACTransferBufferV1(
        uTransferType=0,
        u=CACTransferBufferV1_u(0, arm),
        ppMessageID=draw(st.none() | identifier),
        ppCorrelationID=draw(st.none() | st.binary(min_size=20, max_size=20)),
        pPriority=draw(st.none() | OCTETS),
        pDelivery=draw(st.none() | st.integers(0, 1)),
        pAcknowledge=draw(st.none() | OCTETS),
        pApplicationTag=draw(st.none() | NUMBERS),
        ppBody=body,
        ulBodyBufferSizeInBytes=size,
        ulAllocBodyBufferInBytes=size + draw(st.integers(0, 9)) if size else size,
        pBodySize=draw(st.none() | NUMBERS),
        ppTitle=title,
        ulTitleBufferSizeInWCHARs=(
            len(title.encode("utf-16-le")) // 2 if isinstance(title, str) else 0
        ),
        ulAbsoluteTimeToQueue=draw(NUMBERS),
        ulRelativeTimeToLive=draw(NUMBERS),
        pulPrivLevel=draw(st.none() | st.just(0)),
        pulBodyType=draw(st.none() | NUMBERS),
        pulVersion=draw(st.none() | st.just(16)),
    )
    return rpc_ACSendMessageExRequest(
        hQueue=draw(st.binary(min_size=20, max_size=20)),
        ptb=CACTransferBufferV2(old=old, pbFirstInXact=draw(st.none() | OCTETS)),
        pMessageID=draw(st.none() | identifier),
    )


def changed(request: rpc_ACSendMessageExRequest, source: random.Random) -> None:
    """Put something else in every hole of a request, of another size where it has one."""
    old, arm = request.ptb.old, request.ptb.old.u.value
    assert isinstance(arm, CACTransferBufferV1_Send)
    request.hQueue = source.randbytes(20)
    old.ulAbsoluteTimeToQueue, old.ulRelativeTimeToLive = source.choices(range(1 << 32), k=2)
    if old.pPriority is not None:
        old.pPriority = source.randrange(256)
    if isinstance(old.ppCorrelationID, bytes):
        old.ppCorrelationID = source.randbytes(20)
    if isinstance(old.ppBody, bytes):
        old.ppBody = source.randbytes(source.choice([0, 1, 2, 3, 4, 5, 1000, 70_000]))
        old.ulBodyBufferSizeInBytes = len(old.ppBody)
        old.ulAllocBodyBufferInBytes = len(old.ppBody) + source.randrange(3)
    if isinstance(old.ppTitle, str):
        old.ppTitle = "é\0x" * source.randrange(5)
        old.ulTitleBufferSizeInWCHARs = len(old.ppTitle)
    for each in (arm.pAdminQueueFormat, arm.pResponseQueueFormat):
        if each is not None:
            each.u.value = uuid.UUID(int=source.getrandbits(128)) if each.m_qft == 1 else "a€𝄞" * 7


OPERATIONS = [
    pytest.param(load(name).operation(each.name), id=f"{name}-{each.name}")
    for name in INTERFACES
    for each in load(name).declaration.own
]


def plain(**more: Any) -> rpc_ACSendMessageExRequest:
    arm = CACTransferBufferV1_u(0, CACTransferBufferV1_Send())
    old = CACTransferBufferV1(uTransferType=0, u=arm, **more)
    buffer = CACTransferBufferV2(old=old)
    return rpc_ACSendMessageExRequest(hQueue=bytes(20), ptb=buffer, pMessageID=None)


def plain_stub(**more: Any) -> bytes:
    return SEND.encode_request(TransferSyntax.NDR, plain(**more))


def shapes() -> StubShapes:
    return StubShapes(lambda: TRACING[TransferSyntax.NDR], HOLES)


def body(octets: bytes) -> dict[str, Any]:
    size = len(octets)
    return {
        "ppBody": octets,
        "ulBodyBufferSizeInBytes": size,
        "ulAllocBodyBufferInBytes": size,
    }


def learned_with_some_holes(
    tracing: Tracing, stub: bytes, source: random.Random
) -> tuple[StubShape | None, Holes]:
    """The shape of any stub whose holes are some of its fields."""
    events = tracing.trace(stub).events
    paths = sorted({e.path for e in events if isinstance(e, Read) and e.path})
    counted = [e for e in events if isinstance(e, Counts)]
    sizes = {e.size for e in counted} | {e.length for e in counted}
    holes = Holes(
        values=tuple(path for path in paths if path not in sizes and source.random() < 0.7),
        sizes=tuple(path for path in paths if path in sizes),
    )
    return StubShape.learn(tracing, stub, holes), holes
