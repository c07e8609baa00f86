"""NDR: our generated codecs against impacket's classes, on the calls that matter most.

Encoding goes from the same values in memory to octets: impacket's call object is made and
filled on the way, as it must be for every call.  What finished objects alone cost is shown
beside it.  Decoding goes from octets to an object of which the fields can be read.
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[2]))

from catalogue import rows_of
from figures import Figure, attempt, figure
from harness import Pairs, pairs, per_second

from rpcqm.codec.interface import Operation, TransferSyntax, load
from rpcqm.codec.ndr.impacket_classes import impacket_module
from rpcqm.codec.ndr.values import Value
from rpcqm.codec.types.mqmq import OBJECTID, QUEUE_FORMAT, XACTUOW, QUEUE_FORMAT_u
from rpcqm.codec.types.qmcomm import (
    CACTB_SEND,
    CACTransferBufferV1,
    CACTransferBufferV1_Send,
    CACTransferBufferV1_u,
    CACTransferBufferV2,
)
from rpcqm.codec.types.qmcomm2 import rpc_ACSendMessageExRequest
from rpcqm.codec.types.remoteread import (
    R_StartReceiveRequest,
    R_StartReceiveResponse,
    SectionBuffer,
)
from tests.support.codec.impacket_values import to_impacket

BODY = bytes(range(256)) * 4
GUID = UUID("4a4f1cf8-0f2b-4b5a-8d70-0fb6c1a3d9b1")


@dataclass(frozen=True, slots=True)
class Case:
    """One request or response, and what is asked of its codec."""

    name: str
    interface: str
    operation: str
    value: Value
    timed: bool = False
    """Whether the time that decoding takes is a row too."""

    @property
    def response(self) -> bool:
        return type(self.value).__name__.endswith("Response")


def start_receive() -> R_StartReceiveRequest:
    return R_StartReceiveRequest(
        phContext=bytes(range(20)),
        LookupId=1 << 40,
        hCursor=0,
        ulAction=0x80000000,
        ulTimeout=0xFFFFFFFF,
        dwRequestId=7,
        dwMaxBodySize=4_000_000,
        dwMaxCompoundMessageSize=0,
    )


def start_receive_response() -> R_StartReceiveResponse:
    section = SectionBuffer(
        SectionBufferType=0, SectionSizeAlloc=len(BODY), SectionSize=len(BODY), pSectionBuffer=BODY
    )
    return R_StartReceiveResponse(
        pdwArriveTime=1_700_000_000,
        pSequenceId=1 << 40,
        pdwNumberOfSections=1,
        ppPacketSections=[section],
        result=0,
    )


def send_message() -> rpc_ACSendMessageExRequest:
    """A message with every property that a sender sets."""
    queue = QUEUE_FORMAT(m_qft=3, u=QUEUE_FORMAT_u(3, "OS:orders.example.com\\private$\\replies"))
    title = "An order of the usual size\0"
    old = CACTransferBufferV1(
        uTransferType=CACTB_SEND,
        u=CACTransferBufferV1_u(
            CACTB_SEND,
            CACTransferBufferV1_Send(pAdminQueueFormat=queue, pResponseQueueFormat=queue),
        ),
        pClass=0,
        ppMessageID=OBJECTID(Lineage=GUID, Uniquifier=12345),
        ppCorrelationID=bytes(20),
        pSentTime=1_700_000_000,
        pArrivedTime=1_700_000_000,
        pPriority=3,
        pDelivery=1,
        pAcknowledge=0,
        pAuditing=0,
        pApplicationTag=42,
        ppBody=BODY,
        ulBodyBufferSizeInBytes=len(BODY),
        ulAllocBodyBufferInBytes=len(BODY),
        pBodySize=len(BODY),
        ppTitle=title,
        ulTitleBufferSizeInWCHARs=len(title),
        pulTitleBufferSizeInWCHARs=len(title),
        ulAbsoluteTimeToQueue=1_700_345_600,
        pulRelativeTimeToQueue=345_600,
        ulRelativeTimeToLive=0xFFFFFFFF,
        pulRelativeTimeToLive=0xFFFFFFFF,
        pTrace=0,
        pulSenderIDType=1,
        ppSenderID=bytes(28),
        pulSenderIDLenProp=28,
        pulPrivLevel=0,
        pAuthenticated=0,
        pulHashAlg=0x800C,
        pulEncryptAlg=0x6610,
        uSenderIDLen=28,
        ppSrcQMID=GUID,
        pUow=XACTUOW(rgb=bytes(16)),
        pulBodyType=8,
        pulVersion=0x10,
        pulProvType=24,
        pulAuthProvNameLenProp=0,
        ppConnectorType=UUID(int=0),
    )
    transfer = CACTransferBufferV2(
        old=old,
        pbFirstInXact=1,
        pbLastInXact=1,
        ppXactID=OBJECTID(Lineage=GUID, Uniquifier=3),
    )
    return rpc_ACSendMessageExRequest(hQueue=bytes(range(20)), ptb=transfer)


def cases() -> list[Case]:
    return [
        Case("R_StartReceive request", "remoteread", "R_StartReceive", start_receive(), True),
        Case(
            "R_StartReceive response, 1 KiB",
            "remoteread",
            "R_StartReceive",
            start_receive_response(),
        ),
        Case(
            "CACTransferBufferV2, 1 KiB",
            "qmcomm2",
            "rpc_ACSendMessageEx",
            send_message(),
            True,
        ),
    ]


def start_receive_by_impacket(module: Any, value: R_StartReceiveRequest) -> Any:
    """What a script of impacket's does, without the detours of a general conversion."""
    call = module.R_StartReceive()
    call["phContext"] = value.phContext
    call["LookupId"] = value.LookupId
    call["hCursor"] = value.hCursor
    call["ulAction"] = value.ulAction
    call["ulTimeout"] = value.ulTimeout
    call["dwRequestId"] = value.dwRequestId
    call["dwMaxBodySize"] = value.dwMaxBodySize
    call["dwMaxCompoundMessageSize"] = value.dwMaxCompoundMessageSize
    return call


@dataclass(frozen=True, slots=True)
class Both:
    """One direction in both codecs."""

    ours: Callable[[], object]
    theirs: Callable[[], object]


def directions(case: Case, operation: Operation) -> dict[str, Both]:
    """Encoding, encoding of a finished object, and decoding."""
    codecs = operation.codec(TransferSyntax.NDR)
    ours = codecs.response if case.response else codecs.request
    module = impacket_module(case.interface)
    declaration = operation.declaration
    fill = partial(to_impacket, module, declaration, case.value, case.response, False)
    if isinstance(case.value, R_StartReceiveRequest):
        fill = partial(start_receive_by_impacket, module, case.value)
    theirs = fill()
    their_class: Any = type(theirs)
    stub = ours.encode(case.value)
    assert ours.decode(stub) == ours.decode(theirs.getData()) == case.value
    encode = partial(ours.encode, case.value)
    return {
        "encode": Both(encode, lambda: fill().getData()),
        "encode, finished object": Both(encode, theirs.getData),
        "decode": Both(partial(ours.decode, stub), partial(their_class, stub)),
    }


def measured(both: Both) -> Pairs:
    return pairs(lambda: per_second(both.ours, 0.05), lambda: per_second(both.theirs, 0.2))


def figures(case: Case) -> list[Figure]:
    operation = load(case.interface).operation(case.operation)
    results = {d: measured(both) for d, both in directions(case, operation).items()}
    ours = sum(1 / results[d].ours for d in ("encode", "decode"))
    theirs = sum(1 / results[d].theirs for d in ("encode", "decode"))
    decode = partial(per_second, directions(case, operation)["decode"].ours, 0.05)
    whole = figure(f"{case.name}, both ways", theirs / ours)
    found = [whole.explained(os.getpid(), decode)]
    for direction, result in results.items():
        note = f"{1e6 / result.ours:.2f} against {1e6 / result.theirs:.0f} microseconds"
        found.append(figure(f"{case.name}, {direction}", result.ratio, note))
    if case.timed:
        made = figure(f"{case.name}, time to decode", 1e6 / max(decode() for _ in range(20)))
        found.append(made.explained(os.getpid(), decode))
    return found


def run() -> Iterator[Figure]:
    for case in cases():
        names = [row.name for row in rows_of("ndr") if row.name.startswith(f"{case.name}, ")]
        yield from attempt(names, partial(figures, case))
