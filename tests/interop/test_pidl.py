"""qmmgmt, which widl cannot compile, by Samba's pidl and by impacket's classes.

Requests of one are read by the others, and what a live server answers is read by all of them.
"""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from impacket.dcerpc.v5.rpcrt import DCERPCException
from impacket.dcerpc.v5.transport import DCERPCTransportFactory

from rpcqm.client.names import path_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.ndr.impacket_classes import impacket_module
from rpcqm.codec.properties import (
    NULL_VARIANT,
    ManagementMachineProperty,
    ManagementQueueProperty,
    PropVariant,
    VarType,
)
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types.qmmgmt import MGMT_OBJECT, MGMT_OBJECT_u
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import NT_HASH, PASSWORD
from tests.support.codec.impacket_values import from_impacket, to_impacket
from tests.support.codec.pidl import PROGRAMS, Leaf, Pidl

GET_INFO, ACTION = 0, 1
NDR = TransferSyntax.NDR
INTERFACE = load("qmmgmt")
OPERATIONS: dict[int, Any] = {
    GET_INFO: INTERFACE.operation("R_QMMgmtGetInfo"),
    ACTION: INTERFACE.operation("R_QMMgmtAction"),
}
LOCAL, ELSEWHERE = r"DIRECT=OS:.\private$\orders", r"DIRECT=OS:nobody.invalid\private$\q"
IDENTIFIER = UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")
V = VarType
VARIANTS = [
    NULL_VARIANT,
    PropVariant(V.VT_EMPTY, None),
    PropVariant(V.VT_I1, -7),
    PropVariant(V.VT_UI1, 200),
    PropVariant(V.VT_I2, -30_000),
    PropVariant(V.VT_UI2, 60_000),
    PropVariant(V.VT_I4, -5),
    PropVariant(V.VT_UI4, 4_000_000_000),
    PropVariant(V.VT_I8, -(1 << 40)),
    PropVariant(V.VT_UI8, 1 << 63),
    PropVariant(V.VT_BOOL, True),
    PropVariant(V.VT_CLSID, IDENTIFIER),
    PropVariant(V.VT_BLOB, b"abcde"),
    PropVariant(V.VT_LPWSTR, "Grüße"),
    PropVariant(V.VT_VECTOR_UI1, b"xyz"),
    PropVariant(V.VT_VECTOR_UI2, (1, 65_535)),
    PropVariant(V.VT_VECTOR_I4, (-1, 2, -3)),
    PropVariant(V.VT_VECTOR_UI4, (1, 1 << 31)),
    PropVariant(V.VT_VECTOR_UI8, (1 << 60,)),
    PropVariant(V.VT_VECTOR_CLSID, (IDENTIFIER, UUID(int=1))),
    PropVariant(V.VT_VECTOR_LPWSTR, ("a", "bc", "")),
    PropVariant(
        V.VT_VECTOR_VARIANT,
        (PropVariant(V.VT_VECTOR_UI4, (1, 2)), PropVariant(V.VT_VECTOR_LPWSTR, ("x",))),
    ),
]


@pytest.fixture(scope="module")
def pidl(require: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Pidl:
    require(*PROGRAMS)
    return Pidl("qmmgmt", tmp_path_factory.mktemp("pidl"))


# What pidl's fields hold


def numbers_of(identifier: UUID) -> list[Leaf]:
    first, second, third, *_ = identifier.fields
    return [first, second, third, *identifier.bytes[8:]]


def leaves_of(variant: PropVariant) -> list[Leaf]:
    """The values of all fields of a variant, in their order on the wire."""
    return [variant.vt, 0, 0, 0, *_arm(variant)]


def _arm(variant: PropVariant) -> list[Leaf]:
    kind, value = variant.vt, variant.value
    if kind in (V.VT_EMPTY, V.VT_NULL):
        return []
    if kind is V.VT_CLSID:
        return numbers_of(value)
    if kind in (V.VT_BLOB, V.VT_VECTOR_UI1):
        return [len(value), *value]
    if kind is V.VT_VECTOR_VARIANT:
        return [len(value), *(leaf for inner in value for leaf in leaves_of(inner))]
    if kind is V.VT_VECTOR_CLSID:
        return [len(value), *(leaf for inner in value for leaf in numbers_of(inner))]
    if kind.name.startswith("VT_VECTOR"):
        return [len(value), *value]
    return [_plain(kind, value)]


def _plain(kind: VarType, value: Any) -> Leaf:
    if kind is V.VT_BOOL:
        return -1 if value else 0
    unsigned: int = value & (1 << 64) - 1 if kind is V.VT_I8 else value
    return unsigned


def told(leaves: list[tuple[str, Leaf]], after: str) -> list[Leaf]:
    """The values behind the last field of a name, the result at the end left out."""
    start = max((n for n, (name, _) in enumerate(leaves) if name == after), default=-1) + 1
    return [value for name, value in leaves[start:] if name != "result"]


# Requests


def queue_object(name: str) -> MGMT_OBJECT:
    return MGMT_OBJECT(type=2, u=MGMT_OBJECT_u(2, queue_format_of(FormatName.parse(name))))


MACHINE = MGMT_OBJECT(type=1, u=MGMT_OBJECT_u(1, 7))
OBJECTS: dict[str, tuple[MGMT_OBJECT, list[Leaf]]] = {
    "machine": (MACHINE, [1, 7]),
    "session": (MGMT_OBJECT(type=3, u=MGMT_OBJECT_u(3, 9)), [3, 9]),
    "direct": (queue_object(r"DIRECT=OS:a\private$\b"), [2, 3, 0, 0, r"OS:a\private$\b"]),
    "subqueue": (
        queue_object(r"DIRECT=OS:a\private$\b;late"),
        [2, 8, 5, 0, r"OS:a\private$\b;late"],
    ),
    "public": (queue_object(f"PUBLIC={IDENTIFIER}"), [2, 1, 0, 0, *numbers_of(IDENTIFIER)]),
    "private": (
        queue_object(f"PRIVATE={IDENTIFIER}\\1f"),
        [2, 2, 0, 0, *numbers_of(IDENTIFIER), 0x1F],
    ),
    "journal": (
        queue_object(f"PRIVATE={IDENTIFIER}\\1f;JOURNAL"),
        [2, 2, 0x81, 0, *numbers_of(IDENTIFIER), 0x1F],
    ),
    "machine's": (
        queue_object(f"MACHINE={IDENTIFIER};DEADLETTER"),
        [2, 4, 0x82, 0, *numbers_of(IDENTIFIER)],
    ),
    "multicast": (queue_object("MULTICAST=234.1.1.1:8001"), [2, 7, 0, 0, 0x010101EA, 8001]),
}


def get_info(subject: MGMT_OBJECT, variants: list[PropVariant], first: int = 1) -> Any:
    return OPERATIONS[GET_INFO].request_class(
        pObjectFormat=subject,
        cp=len(variants),
        aProp=list(range(first, first + len(variants))),
        apVar=[propvariant_of(variant) for variant in variants],
    )


def by_impacket(opnum: int, request: Any) -> bytes:
    """The octets of a request as impacket's classes write them."""
    declaration = OPERATIONS[opnum].declaration
    call = to_impacket(impacket_module("qmmgmt"), declaration, request, False, False)
    return bytes(call.getData())


@pytest.mark.conformance("MQMR-op-0", "MQMR-rule-2.2")
@pytest.mark.parametrize("kind", OBJECTS)
def test_every_kind_of_object_is_read_alike(pidl: Pidl, kind: str) -> None:
    subject, expected = OBJECTS[kind]
    request = get_info(subject, [NULL_VARIANT])
    ours = OPERATIONS[GET_INFO].encode_request(NDR, request)
    for stub in (ours, by_impacket(GET_INFO, request)):
        leaves = [value for _, value in pidl.request(GET_INFO, stub, stub is ours)]
        assert leaves == [*expected, 1, 1, *leaves_of(NULL_VARIANT)]
        assert OPERATIONS[GET_INFO].decode_request(NDR, stub) == request


@pytest.mark.conformance("MQMR-op-0", "MQMR-rule-2.2")
def test_every_arm_of_a_variant_is_read_alike(pidl: Pidl) -> None:
    """pidl writes the same octets again, so that its requests are read here, too (G29)."""
    request = get_info(MACHINE, VARIANTS)
    ours = OPERATIONS[GET_INFO].encode_request(NDR, request)
    expected = [leaf for variant in VARIANTS for leaf in leaves_of(variant)]
    for stub in (ours, by_impacket(GET_INFO, request)):
        assert told(pidl.request(GET_INFO, stub, stub is ours), "props") == expected
        found = OPERATIONS[GET_INFO].decode_request(NDR, stub)
        assert [variant_of(each) for each in found.apVar] == VARIANTS


@pytest.mark.conformance("MQMR-op-1", "MQMR-rule-2.2")
def test_an_action_is_a_text(pidl: Pidl) -> None:
    """With its counts, although the published declaration has no [string] (G30)."""
    request = OPERATIONS[ACTION].request_class(pObjectFormat=MACHINE, lpwszAction="CONNECT")
    ours = OPERATIONS[ACTION].encode_request(NDR, request)
    for stub in (ours, by_impacket(ACTION, request)):
        assert pidl.request(ACTION, stub, stub is ours)[-1] == ("action", "CONNECT")
        assert OPERATIONS[ACTION].decode_request(NDR, stub) == request


# Answers of a server


class Administrator:
    """impacket's client of qmmgmt, encrypted; answers come as octets."""

    def __init__(self, port: int) -> None:
        binding = DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
        binding.set_credentials("alice", PASSWORD)
        self._dce = binding.get_dce_rpc()
        self._dce.set_auth_level(6)
        self._dce.connect()
        self._dce.bind(impacket_module("qmmgmt").MSRPC_UUID)

    def call(self, opnum: int, stub: bytes) -> bytes:
        self._dce.call(opnum, stub)
        try:
            return bytes(self._dce.recv())
        except DCERPCException as refused:  # impacket raises for results that look like errors
            packet: bytes = refused.get_packet()
            return bytes(packet)


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    """A queue with messages, one in its journal, and one queue elsewhere."""
    with private_queue_manager() as made:
        with made.client() as client:
            client.run(client.accounts.add("alice", bytes.fromhex(NT_HASH), ["administrators"]))
            client.run(client.queues.create(path_name("orders"), QueueSettings(journal=True), None))
            with client.open_sender(FormatName.parse(LOCAL)) as sender:
                for _ in range(3):
                    sender.send(OutgoingMessage(b"one"))
            with client.open_reader(FormatName.parse(LOCAL)) as reader, reader.receive(0):
                pass
            with (
                client.open_sender(FormatName.parse(ELSEWHERE)) as sender,
                client.begin_transaction() as unit,
            ):
                sender.send(OutgoingMessage(b"x"), unit)
        yield made


@pytest.fixture(scope="module")
def administrator(running: PrivateQueueManager) -> Administrator:
    return Administrator(running.endpoint("rpc")[1])


def answered(
    pidl: Pidl, administrator: Administrator, subject: MGMT_OBJECT, count: int
) -> list[PropVariant]:
    """The values of the first properties; impacket, pidl and we have read the same."""
    stub = by_impacket(GET_INFO, get_info(subject, [NULL_VARIANT] * count))
    answer = administrator.call(GET_INFO, stub)
    operation = OPERATIONS[GET_INFO]
    ours = operation.decode_response(NDR, answer)
    assert ours.result == 0
    variants = [variant_of(each) for each in ours.apVar]
    leaves = pidl.response(GET_INFO, answer, stub)
    assert leaves[-1] == ("result", 0)
    assert told(leaves, "") == [leaf for variant in variants for leaf in leaves_of(variant)]
    theirs = impacket_module("qmmgmt").OPNUMS[GET_INFO][1](answer)
    assert from_impacket(operation.declaration, theirs, True) == ours
    return variants


@pytest.mark.conformance("MQMR-op-0", "MQMR-object-MGMT_MACHINE")
def test_what_is_told_of_the_machine_is_read_by_all(
    pidl: Pidl, administrator: Administrator, running: PrivateQueueManager
) -> None:
    variants = answered(pidl, administrator, MACHINE, len(ManagementMachineProperty))
    found = dict(zip(ManagementMachineProperty, variants, strict=True))
    queues = found[ManagementMachineProperty.PROPID_MGMT_MSMQ_PRIVATEQ].value
    assert [path.rpartition("\\")[2] for path in queues] == ["orders"]
    assert found[ManagementMachineProperty.PROPID_MGMT_MSMQ_CONNECTED].value == "CONNECTED"


@pytest.mark.conformance("MQMR-op-0", "MQMR-object-MGMT_QUEUE")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(LOCAL, ("LOCAL", 2, 1), id="local"),
        pytest.param(ELSEWHERE, ("REMOTE", 1, 0), id="outgoing"),
    ],
)
def test_what_is_told_of_a_queue_is_read_by_all(
    pidl: Pidl, administrator: Administrator, name: str, expected: tuple[str, int, int]
) -> None:
    variants = answered(pidl, administrator, queue_object(name), len(ManagementQueueProperty))
    p = ManagementQueueProperty
    found = dict(zip(p, variants, strict=True))
    assert (
        found[p.PROPID_MGMT_QUEUE_LOCATION].value,
        found[p.PROPID_MGMT_QUEUE_MESSAGE_COUNT].value,
        found[p.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT].value,
    ) == expected


@pytest.mark.conformance("MQMR-op-1")
@pytest.mark.parametrize(
    ("action", "result"),
    [("DISCONNECT", 0), ("CONNECT", 0), ("TIDY", 0), ("NONSENSE", 0xC00E0006)],
)
def test_what_an_action_returns_is_read_by_all(
    pidl: Pidl, administrator: Administrator, action: str, result: int
) -> None:
    operation = OPERATIONS[ACTION]
    request = operation.request_class(pObjectFormat=MACHINE, lpwszAction=action)
    stub = by_impacket(ACTION, request)
    answer = administrator.call(ACTION, stub)
    assert pidl.response(ACTION, answer, stub) == [("result", result)]
    assert operation.decode_response(NDR, answer).result == result
