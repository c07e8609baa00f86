"""What clients say to send and to receive durably, and how the C log server answers.

Sending is rpc_ACSendMessageEx of recoverable messages; receiving is R_StartReceive with the whole
body, then R_EndReceive, which removes the message durably: two calls a message.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from random import Random
from uuid import UUID

from authenticated import Connection
from harness import Copy, Script
from streams import Prepare, streams, varied

from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.transfer_buffer import transfer_buffer_of
from rpcqm.codec.interface import TransferSyntax, Value
from rpcqm.codec.interface import load as load_interface
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.types import mqmq, qmcomm, qmcomm2, remoteread
from rpcqm.rpc.constants import WHOLE, AuthenticationLevel, PfcFlags
from rpcqm.rpc.pdu import Bind, BindAck, ContextAnswer, ContextElement, Request, Response, SyntaxId
from rpcqm.rpc.presentation import NDR

QUEUE = "bench"
CONFIGURATION = """\
[security]
allow_nonauthenticated_rpc = true
allow_unprotected_rpc = true
supporting_server = true
[storage]
quota = 67108864
"""
INTERFACES = ("qmcomm", "qmcomm2", "remoteread")
HANDLE = bytes(range(100, 120))
FRAGMENT = 5840
PART = FRAGMENT - 24
LEAST_TURNS = 8
"""Calls with each handle, so that not all of them are outstanding when the run begins."""


def bind(*names: str) -> bytes:
    """A bind with a presentation context for each interface, in their order."""
    interfaces = [load_interface(name) for name in names]
    elements = [
        ContextElement(number, SyntaxId(interface.uuid, *interface.version), (NDR,))
        for number, interface in enumerate(interfaces)
    ]
    return Bind(
        call_id=1,
        pfc_flags=WHOLE | PfcFlags.PFC_CONC_MPX,
        max_xmit_frag=FRAGMENT,
        max_recv_frag=FRAGMENT,
        p_context_elem=tuple(elements),
    ).pack()


BIND_ACK = BindAck(
    call_id=1,
    max_xmit_frag=FRAGMENT,
    max_recv_frag=FRAGMENT,
    assoc_group_id=1,
    sec_addr=b"2103",
    p_result_list=(ContextAnswer(0, 0, NDR),),
).pack()


def fragments(stub: bytes, make: Callable[[int, bytes], bytes]) -> bytes:
    """The PDUs that carry stub data, one after the other."""
    parts = [stub[start : start + PART] for start in range(0, len(stub), PART)]
    flags = [PfcFlags(0) for _ in parts]
    flags[0] |= PfcFlags.PFC_FIRST_FRAG
    flags[-1] |= PfcFlags.PFC_LAST_FRAG
    return b"".join(map(make, flags, parts))


def request(interface: str, operation: str, context: int, value: Value) -> bytes:
    called = load_interface(interface).operation(operation)
    stub = called.encode_request(TransferSyntax.NDR, value)

    def make(flags: int, part: bytes) -> bytes:
        return Request(
            call_id=2,
            pfc_flags=flags,
            p_cont_id=context,
            opnum=called.opnum,
            alloc_hint=len(stub),
            stub_data=part,
        ).pack()

    return fragments(stub, make)


def response(interface: str, operation: str, value: Value) -> bytes:
    stub = load_interface(interface).operation(operation).encode_response(TransferSyntax.NDR, value)

    def make(flags: int, part: bytes) -> bytes:
        return Response(
            call_id=2, pfc_flags=flags, p_cont_id=0, alloc_hint=len(stub), stub_data=part
        ).pack()

    return fragments(stub, make)


HERE_NAME = rf"DIRECT=TCP:127.0.0.1\private$\{QUEUE}"


def direct_name(name: str = HERE_NAME) -> mqmq.QUEUE_FORMAT:
    return queue_format_of(FormatName.parse(name))


def opening_for_sending(to: str = HERE_NAME) -> qmcomm.rpc_QMOpenQueueInternalRequest:
    return qmcomm.rpc_QMOpenQueueInternalRequest(
        pQueueFormat=direct_name(to),
        dwDesiredAccess=2,
        dwShareMode=0,
        hRemoteQueue=0,
        lplpRemoteQueueName=None,
        dwpQueue=0,
        pLicGuid=UUID(int=1),
        lpClientName="bench",
        dwRemoteProtocol=0,
        dwpRemoteContext=0,
    )


def open_for_sending(to: str = HERE_NAME) -> bytes:
    return request("qmcomm", "rpc_QMOpenQueueInternal", 0, opening_for_sending(to))


def opened_for_sending() -> bytes:
    value = qmcomm.rpc_QMOpenQueueInternalResponse(
        lplpRemoteQueueName=None, pdwQMContext=0, phQueue=HANDLE, result=0
    )
    return response("qmcomm", "rpc_QMOpenQueueInternal", value)


def message(size: int, handle: bytes = HANDLE) -> qmcomm2.rpc_ACSendMessageExRequest:
    buffer = transfer_buffer_of(OutgoingMessage(body=bytes(size)), 0)
    identifier = mqmq.OBJECTID(Lineage=UUID(int=0))
    return qmcomm2.rpc_ACSendMessageExRequest(hQueue=handle, ptb=buffer, pMessageID=identifier)


def send(size: int) -> bytes:
    return request("qmcomm2", "rpc_ACSendMessageEx", 1, message(size))


def sent() -> bytes:
    identifier = mqmq.OBJECTID(Lineage=UUID(int=1), Uniquifier=1)
    value = qmcomm2.rpc_ACSendMessageExResponse(pMessageID=identifier, result=0)
    return response("qmcomm2", "rpc_ACSendMessageEx", value)


def open_for_receiving(context: int = 0, access: int = 1) -> bytes:
    value = remoteread.R_OpenQueueRequest(
        pQueueFormat=direct_name(),
        dwAccess=access,
        dwShareMode=0,
        pClientId=UUID(int=1),
        fNonRoutingServer=1,
        Major=6,
        Minor=1,
        BuildNumber=7601,
        fWorkgroup=1,
    )
    return request("remoteread", "R_OpenQueue", context, value)


def start_receive(
    size: int, context: int = 0, action: int = 0, lookup_identifier: int = 0
) -> bytes:
    value = remoteread.R_StartReceiveRequest(
        phContext=HANDLE,
        LookupId=lookup_identifier,
        hCursor=0,
        ulAction=action,
        ulTimeout=0,
        dwRequestId=1,
        dwMaxBodySize=size,
        dwMaxCompoundMessageSize=size,
    )
    return request("remoteread", "R_StartReceive", context, value)


def started(size: int) -> bytes:
    """A response as long as ours: headers of a packet are some 400 bytes."""
    packet = bytes(size + 400)
    section = remoteread.SectionBuffer(
        SectionBufferType=0,
        SectionSizeAlloc=len(packet),
        SectionSize=len(packet),
        pSectionBuffer=packet,
    )
    value = remoteread.R_StartReceiveResponse(
        pdwArriveTime=1,
        pSequenceId=1,
        pdwNumberOfSections=1,
        ppPacketSections=[section],
        result=0,
    )
    return response("remoteread", "R_StartReceive", value)


def end_receive(context: int = 0) -> bytes:
    value = remoteread.R_EndReceiveRequest(phContext=HANDLE, dwAck=2, dwRequestId=1)
    return request("remoteread", "R_EndReceive", context, value)


def ended() -> bytes:
    return response("remoteread", "R_EndReceive", remoteread.R_EndReceiveResponse(result=0))


def opened_for_receiving() -> bytes:
    value = remoteread.R_OpenQueueResponse(pphContext=HANDLE)
    return response("remoteread", "R_OpenQueue", value)


def handle_into(loop: list[bytes], opened: bytes, reply: int = 1, first: int = 0) -> list[Copy]:
    """The copies that put the handle of an open call into calls of the loop, from the first on."""
    start = opened.index(HANDLE)
    return [
        Copy(reply, start, len(HANDLE), each, pdu.index(HANDLE))
        for each, pdu in enumerate(loop, first)
    ]


@dataclass(frozen=True)
class Work:
    """What is measured: a script for each server, and how the limit answers."""

    name: str
    calls: int
    ours: Script
    limit: Script
    answers: tuple[bytes, tuple[int, bytes] | None]
    logged: int


def sending(size: int, to: str = HERE_NAME) -> Work:
    binding, opening, loop = bind("qmcomm", "qmcomm2"), open_for_sending(to), [send(size)]
    return Work(
        "sends",
        1,
        Script([binding, opening], loop, handle_into(loop, opened_for_sending()), bytes(4)),
        Script([binding], loop, tail=bytes(4)),
        (sent(), None),
        len(loop[0]),
    )


def receiving(size: int) -> Work:
    binding, opening = bind("remoteread"), open_for_receiving()
    loop = [start_receive(size), end_receive()]
    return Work(
        "receives",
        2,
        Script([binding, opening], loop, handle_into(loop, opened_for_receiving()), bytes(4)),
        Script([binding], loop, tail=bytes(4)),
        (started(size), (load_interface("remoteread").operation("R_EndReceive").opnum, ended())),
        len(loop[1]),
    )


def coming_and_going(size: int) -> Script:
    """Each connection sends a message, and receives one, over and over: three calls."""
    coming, going = [send(size)], [start_receive(size, 2), end_receive(2)]
    return Script(
        [bind(*INTERFACES), open_for_sending(), open_for_receiving(2)],
        [*coming, *going],
        [
            *handle_into(coming, opened_for_sending()),
            *handle_into(going, opened_for_receiving(), reply=2, first=1),
        ],
        bytes(4),
    )


def to_send(
    make: Callable[[Random, bytes], Value], calls: int, handles: int = 1
) -> Callable[[int, Connection], Iterator[Value]]:
    """Prepares connections that send; the calls take turns with the handles."""

    def prepare(number: int, connection: Connection) -> Iterator[Value]:
        opening, draw = opening_for_sending(), Random(number)
        opened = [
            connection.call("rpc_QMOpenQueueInternal", opening).phQueue for _ in range(handles)
        ]
        if connection.call("rpc_ACSendMessageEx", make(draw, opened[0])).result:
            raise RuntimeError("a prepared send was refused")
        for handle in islice(cycle(opened), max(calls, LEAST_TURNS * handles)):
            yield make(draw, handle)

    return prepare


def equal(size: int) -> Callable[[Random, bytes], Value]:
    """Makes the same message over and over, for each handle."""
    made: dict[bytes, Value] = {}

    def make(_: Random, handle: bytes) -> Value:
        return made.setdefault(handle, message(size, handle))

    return make


def different(draw: Random, handle: bytes) -> qmcomm2.rpc_ACSendMessageExRequest:
    """One of many that differ in body, label, correlation and priority."""
    buffer = transfer_buffer_of(varied(OutgoingMessage(), draw), 0)
    identifier = mqmq.OBJECTID(Lineage=UUID(int=0))
    return qmcomm2.rpc_ACSendMessageExRequest(hQueue=handle, ptb=buffer, pMessageID=identifier)


def sent_before(
    port: int, level: AuthenticationLevel, connections: int, prepare: Prepare
) -> AbstractContextManager[dict[int, Path]]:
    """Connections and the sends that are prepared for them."""
    interfaces = [load_interface(name) for name in ("qmcomm", "qmcomm2")]
    connect = partial(Connection, port, interfaces[0], level, interfaces[1])
    return streams(connect, connections, "rpc_ACSendMessageEx", prepare)
