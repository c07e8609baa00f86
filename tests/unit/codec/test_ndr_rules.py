"""The rules of NDR that MSMQ's interfaces depend on, each against octets made by hand."""

import struct
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.codec.interface import NULL, TransferSyntax, load
from rpcqm.codec.types.epm import ept_entry_t, ept_lookupResponse, ept_mapResponse, twr_t
from rpcqm.codec.types.mgmt import rpc_mgmt_inq_princ_nameResponse
from rpcqm.codec.types.mqmq import (
    BLOB,
    OBJECTID,
    PROPVARIANT,
    QUEUE_FORMAT,
    XACTUOW,
    PROPVARIANT_varUnion,
    QUEUE_FORMAT_u,
)
from rpcqm.codec.types.qm2qm import REMOTEREADDESC, RemoteQMStartReceiveRequest
from rpcqm.codec.types.qmcomm import (
    CACTB_CREATECURSOR,
    CACTB_SEND,
    CACCreateRemoteCursor,
    CACTransferBufferV1,
    CACTransferBufferV1_Send,
    CACTransferBufferV1_u,
    CACTransferBufferV2,
    R_QMGetRemoteQueueNameResponse,
)
from rpcqm.codec.types.qmcomm2 import rpc_ACReceiveMessageExRequest
from rpcqm.codec.types.qmmgmt import (
    MGMT_OBJECT,
    MGMT_OBJECT_u,
    R_QMMgmtActionRequest,
    R_QMMgmtGetInfoRequest,
)
from rpcqm.codec.types.remoteread import (
    R_EndReceiveRequest,
    R_MoveMessageRequest,
    R_QMEnlistRemoteTransactionRequest,
    R_StartReceiveResponse,
    SectionBuffer,
)
from tests.support.codec.idl_text import interface_of

NDR, NDR64 = TransferSyntax.NDR, TransferSyntax.NDR64
BOTH = pytest.mark.parametrize("syntax", TransferSyntax)
HANDLE = bytes(range(20))
GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
DIRECT = QUEUE_FORMAT(m_qft=3, u=QUEUE_FORMAT_u(3, "X"))


def operation(interface: str, name: str) -> Any:
    return load(interface).operation(name)


def test_a_top_level_reference_pointer_leaves_no_trace() -> None:
    move = operation("remoteread", "R_MoveMessage")
    request = R_MoveMessageRequest(
        phContextFrom=HANDLE, ullContextTo=1, LookupId=2, pTransactionId=XACTUOW(rgb=b"u" * 16)
    )
    stub = HANDLE + bytes(4) + struct.pack("<QQ", 1, 2) + b"u" * 16
    assert move.encode_request(NDR, request) == stub
    assert move.encode_request(NDR64, request) == stub


def cursor_buffer(**members: Any) -> CACTransferBufferV1:
    cursor = CACCreateRemoteCursor(hCursor=1, srv_hACQueue=2, cli_pQMQueue=3)
    union = CACTransferBufferV1_u(CACTB_CREATECURSOR, cursor)
    return CACTransferBufferV1(uTransferType=CACTB_CREATECURSOR, u=union, **members)


@pytest.mark.conformance(
    "MQMP-packet-CACTransferBufferV1",
    "MQMP-packet-CACTransferBufferV2",
    "MQMP-packet-CACCreateRemoteCursor",
)
def test_all_fixed_parts_of_a_transfer_buffer_precede_every_pointee() -> None:
    """The identifiers of V2's own pointers stand before what V1's point to."""
    receive = operation("qmcomm2", "rpc_ACReceiveMessageEx")
    buffer = CACTransferBufferV2(old=cursor_buffer(pClass=0x1234), pbFirstInXact=0x56)
    request = rpc_ACReceiveMessageExRequest(hQMContext=9, ptb=buffer)
    words = [9, 2, 2, 1, 2, 3] + [0] * 53 + [0] * 3
    words[6], words[-3] = 0x20000, 0x20004
    stub = struct.pack(f"<{len(words)}I", *words) + bytes.fromhex("3412 56")
    encoded = receive.encode_request(NDR, request)
    # Identifiers are ours to choose: the two only have to differ, and not to be null.
    assert len(encoded) == len(stub)
    assert encoded[-3:] == stub[-3:]
    assert [i for i in range(0, 248, 4) if encoded[i : i + 4] != stub[i : i + 4]] in ([], [236])
    assert receive.decode_request(NDR, stub) == request


@BOTH
def test_both_levels_of_a_double_pointer_can_be_null(syntax: TransferSyntax) -> None:
    receive = operation("qmcomm2", "rpc_ACReceiveMessageEx")
    seen = set()
    for value in (None, NULL, OBJECTID(Lineage=GUID, Uniquifier=1)):
        buffer = CACTransferBufferV2(old=cursor_buffer(), ppXactID=value)
        request = rpc_ACReceiveMessageExRequest(hQMContext=9, ptb=buffer)
        stub = receive.encode_request(syntax, request)
        assert receive.decode_request(syntax, stub).ptb.ppXactID == value
        seen.add(len(stub))
    word = 4 if syntax is NDR else 8
    assert seen == {min(seen), min(seen) + word, min(seen) + word + 20}


@BOTH
def test_a_body_buffer_says_how_big_it_is_and_how_much_is_in_it(syntax: TransferSyntax) -> None:
    receive = operation("qmcomm2", "rpc_ACReceiveMessageEx")
    old = cursor_buffer(ppBody=b"abc", ulBodyBufferSizeInBytes=3, ulAllocBodyBufferInBytes=4096)
    request = rpc_ACReceiveMessageExRequest(hQMContext=9, ptb=CACTransferBufferV2(old=old))
    stub = receive.encode_request(syntax, request)
    counts = struct.pack("<3I" if syntax is NDR else "<3Q", 4096, 0, 3)
    assert stub.endswith(counts + b"abc")
    assert receive.decode_request(syntax, stub) == request


def test_enumerations_are_sixteen_bits_wide_in_ndr_and_thirty_two_in_ndr64() -> None:
    action = operation("qmmgmt", "R_QMMgmtAction")
    target = MGMT_OBJECT(type=1, u=MGMT_OBJECT_u(1, 5))
    request = R_QMMgmtActionRequest(pObjectFormat=target, lpwszAction="GO")
    ndr = bytes.fromhex("0100 0100 05000000 03000000 00000000 03000000 4700 4f00 0000")
    assert action.encode_request(NDR, request) == ndr
    assert action.decode_request(NDR, ndr) == request
    ndr64 = bytes.fromhex("01000000 00000000 01000000 00000000 05000000 00000000")
    ndr64 += struct.pack("<3Q", 3, 0, 3) + "GO\0".encode("utf-16-le")
    assert action.encode_request(NDR64, request) == ndr64
    assert action.decode_request(NDR64, ndr64) == request


@pytest.mark.parametrize("value", [0x8000, 0xFFFF])
def test_a_sixteen_bit_enumeration_is_not_negative(value: int) -> None:
    start = operation("qm2qm", "RemoteQMStartReceive")
    request = RemoteQMStartReceiveRequest(lpRemoteReadDesc=REMOTEREADDESC(eAckNack=0x7FFF))
    stub = start.encode_request(NDR, request)
    assert start.decode_request(NDR, stub) == request
    with pytest.raises(DecodeError, match="eAckNack"):
        start.decode_request(NDR, stub[:36] + value.to_bytes(2, "little") + stub[38:])
    request.lpRemoteReadDesc.eAckNack = value
    with pytest.raises(ValueError, match="does not fit"):
        start.encode_request(NDR, request)


def test_the_action_of_qmmgmt_is_text_although_it_lacks_string() -> None:
    """G30."""
    text = "QUEUE_ACTION"
    request = R_QMMgmtActionRequest(
        pObjectFormat=MGMT_OBJECT(type=1, u=MGMT_OBJECT_u(1, 0)), lpwszAction=text
    )
    action = operation("qmmgmt", "R_QMMgmtAction")
    stub = action.encode_request(NDR, request)
    assert stub.endswith(struct.pack("<3I", 13, 0, 13) + (text + "\0").encode("utf-16-le"))


@BOTH
def test_a_pointer_to_a_full_pointer_returns_null_or_a_path(syntax: TransferSyntax) -> None:
    get = operation("qmcomm", "R_QMGetRemoteQueueName")
    word = "<I" if syntax is NDR else "<Q"
    none = R_QMGetRemoteQueueNameResponse(lplpRemoteQueueName=None, result=0)
    assert get.encode_response(syntax, none) == struct.pack(word, 0) + bytes(4)
    path = R_QMGetRemoteQueueNameResponse(lplpRemoteQueueName="pc\\q", result=0)
    stub = get.encode_response(syntax, path)
    counts = struct.pack("<3I" if syntax is NDR else "<3Q", 5, 0, 5)
    gap = bytes(2)
    text = "pc\\q\0".encode("utf-16-le")
    assert stub[struct.calcsize(word) :] == counts + text + gap + bytes(4)


@BOTH
def test_full_pointers_share_what_they_point_to(syntax: TransferSyntax) -> None:
    """[C706] 14.3.12: an alias is an identifier that was there before, and no second copy."""
    ept_map = operation("epm", "ept_map")
    tower = twr_t(tower_length=3, tower_octet_string=b"abc")
    twice = ept_mapResponse(
        entry_handle=bytes(20), num_towers=2, ITowers=[tower, tower], status=0, max_towers=2
    )
    stub = ept_map.encode_response(syntax, twice)
    assert stub.count(b"abc") == 1
    decoded = ept_map.decode_response(syntax, stub)
    assert decoded == twice
    assert decoded.ITowers[0] is decoded.ITowers[1]
    apart = ept_mapResponse(
        entry_handle=bytes(20),
        num_towers=2,
        ITowers=[tower, twr_t(tower_length=3, tower_octet_string=b"abc")],
        status=0,
        max_towers=2,
    )
    assert ept_map.encode_response(syntax, apart).count(b"abc") == 2


def test_a_full_pointer_is_no_alias_of_another_type() -> None:
    lookup = operation("epm", "ept_lookup")
    stub = struct.pack("<II", 0, 7) + bytes(16) + struct.pack("<I", 7) + bytes(28)
    with pytest.raises(DecodeError, match="alias"):
        lookup.decode_request(NDR, stub)


@BOTH
def test_the_maximum_count_of_a_mapper_s_answer_is_what_was_asked_for(
    syntax: TransferSyntax,
) -> None:
    lookup = operation("epm", "ept_lookup")
    entry = ept_entry_t(object=GUID, tower=None, annotation="note")
    response = ept_lookupResponse(
        entry_handle=HANDLE, num_ents=1, entries=[entry], status=0, max_ents=500
    )
    stub = lookup.encode_response(syntax, response)
    form = "<3I" if syntax is NDR else "<3Q"
    assert stub[24 : 24 + struct.calcsize(form)] == struct.pack(form, 500, 0, 1)
    assert lookup.decode_response(syntax, stub) == response


@pytest.mark.parametrize(("size", "name", "counts"), [(0, "", (0, 0, 0)), (4, "abc", (4, 0, 4))])
def test_a_sized_string_can_have_no_room_for_its_terminator(
    size: int, name: str, counts: tuple[int, int, int]
) -> None:
    inquire = operation("mgmt", "rpc_mgmt_inq_princ_name")
    response = rpc_mgmt_inq_princ_nameResponse(princ_name=name, princ_name_size=size, status=0)
    stub = inquire.encode_response(NDR, response)
    assert stub[:12] == struct.pack("<3I", *counts)
    assert inquire.decode_response(NDR, stub) == response


def test_ndr64_ends_a_structure_with_its_trailing_gap() -> None:
    """The structure of [MS-RPCE] 4.8, with a field behind it that shows the gap."""
    example = interface_of(
        """
        typedef struct _StructWithPad { long l; short s; } StructWithPad;
        void f([in] StructWithPad* value, [in] short next);
        """
    )
    made = example.operation("f")
    request = made.decode_request(NDR, bytes.fromhex("01000000 0200 0300"))
    assert request.next == 3
    assert made.encode_request(NDR64, request) == bytes.fromhex("01000000 0200 0000 0300")


def test_identifiers_are_distinct_within_a_stub() -> None:
    send = operation("qmcomm2", "QMSendMessageInternalEx")
    union = CACTransferBufferV1_u(
        CACTB_SEND, CACTransferBufferV1_Send(pAdminQueueFormat=DIRECT, pResponseQueueFormat=DIRECT)
    )
    old = CACTransferBufferV1(uTransferType=CACTB_SEND, u=union, pClass=1, pSentTime=2)
    request = send.request_class(
        pQueueFormat=DIRECT, ptb=CACTransferBufferV2(old=old, pbLastInXact=1)
    )
    stub = send.encode_request(NDR, request)
    words = struct.unpack_from(f"<{len(stub) // 4}I", stub)
    found = [word for word in words if word >> 16 == 2]
    assert len(found) == len(set(found)) == 8


# What strict checking at target level 6.0 refuses ([MS-RPCE] 3.1.1.5.3).

STRICT = {
    "remoteread": "MQRR-rule-3.1.4",
    "qm2qm": "MQQP-rule-3.1.4",
    "qmcomm": "MQMP-rule-3.1.4",
    "qmmgmt": "MQMR-rule-3.1.4",
}


def strict(interface: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(STRICT[interface])


@strict("remoteread")
@BOTH
def test_a_size_that_is_not_the_maximum_count_is_refused(syntax: TransferSyntax) -> None:
    enlist = operation("remoteread", "R_QMEnlistRemoteTransaction")
    request = R_QMEnlistRemoteTransactionRequest(
        pTransactionId=XACTUOW(rgb=bytes(16)),
        cbPropagationToken=3,
        pbPropagationToken=b"abc",
        pQueueFormat=DIRECT,
    )
    stub = enlist.encode_request(syntax, request)
    assert enlist.decode_request(syntax, stub) == request
    for count in (2, 4):
        with pytest.raises(DecodeError, match="size of pbPropagationToken"):
            enlist.decode_request(syntax, stub[:16] + bytes([count]) + stub[17:])


@strict("remoteread")
@BOTH
@pytest.mark.parametrize("acknowledgement", [0, 3, 0xFFFFFFFF])
def test_a_number_out_of_its_range_is_refused(acknowledgement: int, syntax: TransferSyntax) -> None:
    end = operation("remoteread", "R_EndReceive")
    with pytest.raises(DecodeError, match=r"dwAck is not in 1\.\.2"):
        end.decode_request(syntax, HANDLE + struct.pack("<II", acknowledgement, 1))
    request = R_EndReceiveRequest(phContext=HANDLE, dwAck=acknowledgement, dwRequestId=1)
    with pytest.raises(ValueError, match="dwAck"):
        end.encode_request(syntax, request)


@strict("remoteread")
@BOTH
def test_a_null_section_of_some_size_is_refused(syntax: TransferSyntax) -> None:
    start = operation("remoteread", "R_StartReceive")
    section = SectionBuffer(SectionBufferType=0, SectionSizeAlloc=9, SectionSize=0)
    response = R_StartReceiveResponse(
        pdwArriveTime=0,
        pSequenceId=0,
        pdwNumberOfSections=1,
        ppPacketSections=[section],
        result=0,
    )
    stub = start.encode_response(syntax, response)
    assert start.decode_response(syntax, stub) == response
    at = stub.index(struct.pack("<I", 9)) + 4
    with pytest.raises(DecodeError, match="null, but its size is not zero"):
        start.decode_response(syntax, stub[:at] + b"\5" + stub[at + 1 :])
    section.SectionSize = 5
    with pytest.raises(ValueError, match="null, but its size is not zero"):
        start.encode_response(syntax, response)


@strict("remoteread")
@BOTH
def test_a_tag_that_is_not_what_switches_the_union_is_refused(syntax: TransferSyntax) -> None:
    open_queue = operation("remoteread", "R_QMEnlistRemoteTransaction")
    request = R_QMEnlistRemoteTransactionRequest(
        pTransactionId=XACTUOW(rgb=bytes(16)),
        cbPropagationToken=0,
        pbPropagationToken=b"",
        pQueueFormat=DIRECT,
    )
    stub = open_queue.encode_request(syntax, request)
    tag = 28 if syntax is NDR else 40
    assert stub[tag] == 3
    with pytest.raises(DecodeError, match="tag"):
        open_queue.decode_request(syntax, stub[:tag] + b"\10" + stub[tag + 1 :])


@strict("qm2qm")
@BOTH
def test_a_null_buffer_of_some_size_is_refused(syntax: TransferSyntax) -> None:
    start = operation("qm2qm", "RemoteQMStartReceive")
    stub = start.encode_request(
        syntax, RemoteQMStartReceiveRequest(lpRemoteReadDesc=REMOTEREADDESC())
    )
    with pytest.raises(DecodeError, match="lpBuffer is null"):
        start.decode_request(syntax, stub[:16] + b"\1" + stub[17:])
    with pytest.raises(DecodeError, match="dwSize is not in"):
        start.decode_request(syntax, stub[:16] + struct.pack("<I", 4325377) + stub[20:])


@strict("qmcomm")
@BOTH
def test_a_null_security_descriptor_of_some_size_is_refused(syntax: TransferSyntax) -> None:
    change = operation("qmcomm", "R_QMSetObjectSecurityInternal")
    word = struct.Struct("<I" if syntax is NDR else "<Q")
    target = struct.pack("<II", 1, 1) if syntax is NDR else struct.pack("<IIII", 1, 0, 1, 0)
    stub = target + word.pack(0) + struct.pack("<II", 4, 0) + word.pack(0)
    assert change.decode_request(syntax, stub).pSecurityDescriptor is None
    at = len(target) + word.size + 4
    with pytest.raises(DecodeError, match="pSecurityDescriptor is null"):
        change.decode_request(syntax, stub[:at] + b"\1" + stub[at + 1 :])
    with pytest.raises(DecodeError, match="SDSize is not in"):
        change.decode_request(syntax, stub[:at] + struct.pack("<I", 524289) + stub[at + 4 :])


@strict("qmmgmt")
def test_a_null_blob_of_some_size_is_refused() -> None:
    get = operation("qmmgmt", "R_QMMgmtGetInfo")
    blob = PROPVARIANT(vt=65, _varUnion=PROPVARIANT_varUnion(65, BLOB(cbSize=0)))
    request = R_QMMgmtGetInfoRequest(
        pObjectFormat=MGMT_OBJECT(type=1, u=MGMT_OBJECT_u(1, 0)), cp=1, aProp=[1], apVar=[blob]
    )
    stub = get.encode_request(NDR, request)
    assert get.decode_request(NDR, stub) == request
    with pytest.raises(DecodeError, match="pBlobData is null"):
        get.decode_request(NDR, stub[:-8] + struct.pack("<II", 1, 0))
    with pytest.raises(DecodeError, match=r"cp is not in 1\.\.128"):
        get.decode_request(NDR, stub[:8] + struct.pack("<I", 129) + stub[12:])


STRINGS = {
    "an offset that is not zero": struct.pack("<3I", 3, 1, 2) + b"A\0\0\0",
    "more characters than there is room for": struct.pack("<3I", 1, 0, 2) + b"A\0\0\0",
    "no terminator": struct.pack("<3I", 2, 0, 2) + b"A\0B\0",
    "half a terminator": struct.pack("<3I", 2, 0, 2) + b"A\0\0\1",
    "no character at all": struct.pack("<3I", 2, 0, 0),
    "a NUL in the middle": struct.pack("<3I", 3, 0, 3) + b"\0\0A\0\0\0",
    "fewer octets than it says": struct.pack("<3I", 2, 0, 2) + b"A\0\0",
}


@strict("qmmgmt")
@pytest.mark.parametrize("counts_and_text", STRINGS.values(), ids=STRINGS.keys())
def test_a_string_is_refused_that_has(counts_and_text: bytes) -> None:
    action = operation("qmmgmt", "R_QMMgmtAction")
    target = bytes.fromhex("0100 0100 00000000")
    good = struct.pack("<3I", 9, 0, 2) + b"A\0\0\0"
    assert action.decode_request(NDR, target + good).lpwszAction == "A"
    with pytest.raises(DecodeError):
        action.decode_request(NDR, target + counts_and_text)


@strict("qmcomm")
def test_an_actual_count_that_is_not_the_length_is_refused() -> None:
    receive = operation("qmcomm2", "rpc_ACReceiveMessageEx")
    old = cursor_buffer(ppBody=b"abc", ulBodyBufferSizeInBytes=3, ulAllocBodyBufferInBytes=8)
    request = rpc_ACReceiveMessageExRequest(hQMContext=9, ptb=CACTransferBufferV2(old=old))
    stub = receive.encode_request(NDR, request)
    for maximum, first, actual in ((7, 0, 3), (8, 1, 3), (8, 0, 2), (8, 0, 4)):
        counts = struct.pack("<3I", maximum, first, actual)
        with pytest.raises(DecodeError, match="ppBody"):
            receive.decode_request(NDR, stub[:-15] + counts + stub[-3:] + bytes(8))


# Mistakes of our own side.


@BOTH
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cbPropagationToken": 2}, ValueError),
        ({"cbPropagationToken": 131073, "pbPropagationToken": bytes(131073)}, ValueError),
        ({"cbPropagationToken": -1}, ValueError),
        ({"cbPropagationToken": None}, TypeError),
        ({"pbPropagationToken": None}, TypeError),
        ({"pTransactionId": None}, TypeError),
        ({"pTransactionId": XACTUOW(rgb=bytes(15))}, ValueError),
        ({"pQueueFormat": QUEUE_FORMAT(m_qft=9, u=QUEUE_FORMAT_u(9))}, ValueError),
        ({"pQueueFormat": QUEUE_FORMAT(m_qft=3, u=QUEUE_FORMAT_u(8, "X"))}, ValueError),
        ({"pQueueFormat": QUEUE_FORMAT(m_qft=3, u=QUEUE_FORMAT_u(3, "X\0Y"))}, ValueError),
        ({"pQueueFormat": QUEUE_FORMAT(m_qft=0, u=QUEUE_FORMAT_u(0, "X"))}, ValueError),
        ({"pQueueFormat": QUEUE_FORMAT(m_qft=300, u=QUEUE_FORMAT_u(300))}, ValueError),
        ({"pQueueFormat": "X"}, TypeError),
    ],
)
def test_what_does_not_fit_is_not_written(
    change: dict[str, Any], error: type[Exception], syntax: TransferSyntax
) -> None:
    enlist = operation("remoteread", "R_QMEnlistRemoteTransaction")
    request = R_QMEnlistRemoteTransactionRequest(
        pTransactionId=XACTUOW(rgb=bytes(16)),
        cbPropagationToken=3,
        pbPropagationToken=b"abc",
        pQueueFormat=DIRECT,
    )
    assert enlist.encode_request(syntax, request)
    for name, value in change.items():
        setattr(request, name, value)
    with pytest.raises(error):
        enlist.encode_request(syntax, request)


@pytest.mark.parametrize("octets", [b"", bytes(19), bytes(21)])
def test_a_context_handle_has_twenty_octets(octets: bytes) -> None:
    purge = operation("remoteread", "R_PurgeQueue")
    with pytest.raises(ValueError, match="20 octets"):
        purge.encode_request(NDR, purge.request_class(phContext=octets))


def test_a_big_endian_client_s_handle_is_known_again() -> None:
    """A handle is data with a byte order: 4, 4, 2, 2 and 8 octets."""
    purge = operation("remoteread", "R_PurgeQueue")
    request = purge.request_class(phContext=HANDLE)
    stub = purge.encode_request(NDR, request, big_endian=True)
    assert stub == bytes.fromhex("03020100 07060504 0908 0b0a 0c0d0e0f10111213")
    assert purge.decode_request(NDR, stub, big_endian=True) == request


def test_big_endian_text_and_numbers() -> None:
    action = operation("qmmgmt", "R_QMMgmtAction")
    stub = bytes.fromhex("0001 0001 00000005 00000003 00000000 00000003 0047 004f 0000")
    request = action.decode_request(NDR, stub, big_endian=True)
    assert (request.pObjectFormat.u.value, request.lpwszAction) == (5, "GO")


def test_characters_outside_of_unicode_s_rules_survive() -> None:
    """Text is 16-bit units to MSMQ; half a surrogate pair is no reason to lose a message."""
    action = operation("qmmgmt", "R_QMMgmtAction")
    target = bytes.fromhex("0100 0100 00000000")
    stub = target + struct.pack("<3I", 2, 0, 2) + b"\x00\xd8\0\0"
    request = action.decode_request(NDR, stub)
    assert request.lpwszAction == "\ud800"
    assert action.encode_request(NDR, request) == stub
