"""A capture in which every method of every interface is called, in both transfer syntaxes."""

from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from rpcqm.capture.conversation.interfaces import known_interfaces
from rpcqm.capture.file.writing import CaptureWriter, WrittenConnection
from rpcqm.codec.idl.tree import OperationDeclaration
from rpcqm.codec.interface import Interface, TransferSyntax
from rpcqm.codec.ndr.values import Value
from rpcqm.rpc.constants import ContextResult
from rpcqm.rpc.pdu import (
    Bind,
    BindAck,
    ContextAnswer,
    ContextElement,
    Request,
    Response,
    SyntaxId,
)
from tests.support.capture.captures import TIME
from tests.support.codec.idl_values import messages

FRAGMENT = 5840
SERVER = ("192.0.2.2", 2103)
CLIENT = "192.0.2.1"
_WIRESHARKS = ("ept", "mgmt")
"""Interfaces that Wireshark has known before."""


def interfaces() -> list[Interface]:
    """Those that are MSMQ's, and ours."""
    return [each for each in known_interfaces().values() if each.name not in _WIRESHARKS]


def samples(operation: OperationDeclaration, response: bool) -> list[Value]:
    """Values of a request or response, the same ones each time."""
    found: list[Value] = []

    @settings(
        max_examples=1,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(messages(operation, response))
    def collect(value: Value) -> None:
        found.append(value)

    collect()
    return found


def write_every_method(path: Path) -> int:
    """How many calls the capture at `path` has."""
    calls = 0
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        for port, interface in enumerate(interfaces(), 50_000):
            for syntax in TransferSyntax:
                client = (CLIENT, port + 1000 * (syntax is TransferSyntax.NDR64))
                written = writer.connection(TIME, client, SERVER)
                _bind(written, interface, syntax)
                calls += _calls(written, interface, syntax)
                written.close(TIME)
    return calls


def _bind(written: WrittenConnection, interface: Interface, syntax: TransferSyntax) -> None:
    transfer = SyntaxId(syntax.uuid, syntax.version, 0)
    element = ContextElement(0, SyntaxId(interface.uuid, *interface.version), (transfer,))
    bind = Bind(
        call_id=1,
        max_xmit_frag=FRAGMENT,
        max_recv_frag=FRAGMENT,
        assoc_group_id=0,
        p_context_elem=(element,),
    )
    answer = ContextAnswer(ContextResult.acceptance, 0, transfer)
    written.client_sent(TIME, bind.pack())
    ack = BindAck(
        call_id=1,
        max_xmit_frag=FRAGMENT,
        max_recv_frag=FRAGMENT,
        assoc_group_id=1,
        sec_addr=b"2103",
        p_result_list=(answer,),
    )
    written.server_sent(TIME, ack.pack())


def _calls(written: WrittenConnection, interface: Interface, syntax: TransferSyntax) -> int:
    number = 1
    for operation in filter(None, interface.operations):
        codec = operation.codec(syntax)
        pairs = zip(
            samples(operation.declaration, False),
            samples(operation.declaration, True),
            strict=False,
        )
        for request, response in pairs:
            number += 1
            stub = codec.request.encode(request)
            sent = Request(call_id=number, p_cont_id=0, opnum=operation.opnum, stub_data=stub)
            written.client_sent(TIME, sent.pack())
            stub = codec.response.encode(response)
            written.server_sent(TIME, Response(call_id=number, p_cont_id=0, stub_data=stub).pack())
    return number - 1
