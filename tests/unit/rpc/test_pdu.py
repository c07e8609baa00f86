"""PDUs against literal bytes.

The vectors follow the layouts of [C706] 12.6.4 and [MS-RPCE] 2.2.2 field by field; BIND_NTLM is
what impacket's client sends first at PKT_PRIVACY.
"""

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.rpc import pdu
from rpcqm.rpc.constants import WHOLE, PduType, PfcFlags

NDR = pdu.SyntaxId(UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2)
REMOTE_READ = pdu.SyntaxId(UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28"), 1)
EPM = pdu.SyntaxId(UUID("e1af8308-5d1f-11c9-91a4-08002b14a0fa"), 3)
CONTEXT = pdu.ContextElement(0, REMOTE_READ, (NDR,))

BIND_NTLM = (
    "05000b03 10000000 7000 2000 01000000 b810 b810 00000000 01000000"
    "0000 0100 0883afe1 1f5d c911 91a408002b14a0fa 03000000"
    "045d888aeb1cc9119fe808002b104860 02000000"
    "0a06 00 00 7f350100 4e544c4d53535000 01000000 358288e0 00000000000000000000000000000000"
)
NTLM_NEGOTIATE = bytes.fromhex(BIND_NTLM.replace(" ", ""))[-32:]

VECTORS: list[tuple[str, str, pdu.Pdu]] = [
    (
        "bind_with_sec_trailer",
        BIND_NTLM,
        pdu.Bind(
            call_id=1,
            max_xmit_frag=4280,
            max_recv_frag=4280,
            p_context_elem=(pdu.ContextElement(0, EPM, (NDR,)),),
            auth=pdu.SecurityTrailer(10, 6, 79231, NTLM_NEGOTIATE),
        ),
    ),
    (
        "bind_big_endian",
        "05000b03 00000000 0048 0000 00000001 16d0 16d0 00000000 01000000"
        "0000 0100 1a9134dd7b3945baad8844d01ca47f28 00000001"
        "8a885d041ceb11c99fe808002b104860 00000002",
        pdu.Bind(
            call_id=1,
            max_xmit_frag=5840,
            max_recv_frag=5840,
            p_context_elem=(CONTEXT,),
            big_endian=True,
        ),
    ),
    (
        "bind_ack",
        "05000c13 10000000 3c00 0000 01000000 d016 d016 34120000 0500 32313033 00 00"
        "01000000 0000 0000 045d888aeb1cc9119fe808002b104860 02000000",
        pdu.BindAck(
            call_id=1,
            pfc_flags=WHOLE | PfcFlags.PFC_CONC_MPX,
            max_xmit_frag=5840,
            max_recv_frag=5840,
            assoc_group_id=0x1234,
            sec_addr=b"2103",
            p_result_list=(pdu.ContextAnswer(0, 0, NDR),),
        ),
    ),
    (
        "bind_nak",
        "05000d03 10000000 1800 0000 01000000 0400 01 05 00 000000",
        pdu.BindNak(call_id=1, provider_reject_reason=4),
    ),
    (
        "alter_context",
        "05000e03 10000000 4800 0000 03000000 d016 d016 34120000 01000000"
        "0000 0100 dd34911a397bba45ad8844d01ca47f28 01000000"
        "045d888aeb1cc9119fe808002b104860 02000000",
        pdu.AlterContext(
            call_id=3,
            max_xmit_frag=5840,
            max_recv_frag=5840,
            assoc_group_id=0x1234,
            p_context_elem=(CONTEXT,),
        ),
    ),
    (
        "alter_context_resp_rejecting",
        "05000f03 10000000 3800 0000 01000000 d016 d016 34120000 0000 0000"
        "01000000 0200 0100 00000000000000000000000000000000 00000000",
        pdu.AlterContextResp(
            call_id=1,
            max_xmit_frag=5840,
            max_recv_frag=5840,
            assoc_group_id=0x1234,
            p_result_list=(pdu.ContextAnswer(2, 1),),
        ),
    ),
    (
        "auth3",
        "05001003 10000000 1f00 0300 01000000 20202020 0a06 00 00 00000000 78797a",
        pdu.Auth3(call_id=1, pad=b"    ", auth=pdu.SecurityTrailer(10, 6, 0, b"xyz")),
    ),
    (
        "request_with_object",
        "05000083 10000000 2c00 0000 02000000 04000000 0100 0700"
        "dd34911a397bba45ad8844d01ca47f28 61626364",
        pdu.Request(
            call_id=2,
            pfc_flags=WHOLE | PfcFlags.PFC_OBJECT_UUID,
            alloc_hint=4,
            p_cont_id=1,
            opnum=7,
            object_uuid=REMOTE_READ.uuid,
            stub_data=b"abcd",
        ),
    ),
    (
        "response_with_sec_trailer",
        "05000203 10000000 3800 1000 02000000 04000000 0100 00 00 61626364 00000000"
        "0a05 04 00 01000000 000102030405060708090a0b0c0d0e0f",
        pdu.Response(
            call_id=2,
            alloc_hint=4,
            p_cont_id=1,
            stub_data=b"abcd",
            auth=pdu.SecurityTrailer(10, 5, 1, bytes(range(16)), 4),
        ),
    ),
    (
        "fault",
        "05000323 10000000 2000 0000 02000000 20000000 0100 00 00 1a00001c 00000000",
        pdu.Fault(
            call_id=2,
            pfc_flags=WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE,
            p_cont_id=1,
            status=0x1C00001A,
        ),
    ),
    ("shutdown", "05001103 10000000 1000 0000 00000000", pdu.Shutdown(call_id=0)),
    ("co_cancel", "05001203 10000000 1000 0000 09000000", pdu.CoCancel(call_id=9)),
    ("orphaned", "05001303 10000000 1000 0000 09000000", pdu.Orphaned(call_id=9)),
]


def octets(vector: str) -> bytes:
    return bytes.fromhex(vector.replace(" ", ""))


cases = pytest.mark.parametrize(
    ("vector", "value"), [pytest.param(v, p, id=name) for name, v, p in VECTORS]
)


@cases
def test_pack(vector: str, value: pdu.Pdu) -> None:
    assert value.pack().hex() == octets(vector).hex()


@cases
def test_unpack(vector: str, value: pdu.Pdu) -> None:
    assert pdu.unpack(octets(vector)) == value


@cases
def test_a_pdu_cut_at_any_byte_is_refused(vector: str, value: pdu.Pdu) -> None:
    whole = octets(vector)
    for length in range(len(whole)):
        with pytest.raises(DecodeError):
            pdu.unpack(whole[:length])


@cases
def test_a_pdu_cut_with_its_length_field_loses_something(vector: str, value: pdu.Pdu) -> None:
    whole = octets(vector)
    padding = 3 if isinstance(value, pdu.BindNak) else 0
    for length in range(16, len(whole) - padding):
        cut = bytearray(whole[:length])
        cut[8:10] = length.to_bytes(2, "big" if value.big_endian else "little")
        with contextlib.suppress(DecodeError):
            assert pdu.unpack(bytes(cut)) != value


def test_every_pdu_type_has_a_vector() -> None:
    assert {value.ptype for _, _, value in VECTORS} == set(PduType)


@pytest.mark.parametrize(
    ("offset", "octet"),
    [
        pytest.param(0, 4, id="major version 4"),
        pytest.param(1, 2, id="minor version 2"),
        pytest.param(2, 99, id="unknown type"),
        pytest.param(2, 10, id="connectionless type"),
        pytest.param(4, 0x11, id="EBCDIC"),
        pytest.param(4, 0x20, id="unknown byte order"),
        pytest.param(5, 1, id="VAX floats"),
        pytest.param(8, 0x21, id="longer than it is"),
        pytest.param(10, 0x30, id="token longer than the PDU"),
    ],
)
def test_a_fault_with_a_wrong_header_is_refused(offset: int, octet: int) -> None:
    wrong = bytearray(pdu.Fault(call_id=1, status=5).pack())
    wrong[offset] = octet
    with pytest.raises(DecodeError):
        pdu.unpack(bytes(wrong))


def test_padding_longer_than_the_pdu_is_refused() -> None:
    trailer = pdu.SecurityTrailer(10, 5, 0, bytes(16))
    wrong = bytearray(pdu.Response(call_id=1, p_cont_id=0, auth=trailer).pack())
    wrong[24 + 2] = 200
    with pytest.raises(DecodeError):
        pdu.unpack(bytes(wrong))


syntaxes = st.builds(pdu.SyntaxId, st.uuids(), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
elements = st.builds(
    pdu.ContextElement,
    st.integers(0, 0xFFFF),
    syntaxes,
    st.lists(syntaxes, max_size=3).map(tuple),
)
trailers = st.none() | st.builds(
    pdu.SecurityTrailer,
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(0, 0xFFFFFFFF),
    st.binary(min_size=1, max_size=40),
    st.integers(0, 15),
)


@given(
    elements=st.lists(elements, max_size=4).map(tuple),
    auth=trailers,
    big_endian=st.booleans(),
    call_id=st.integers(0, 0xFFFFFFFF),
)
def test_a_bind_survives_the_wire(
    elements: tuple[pdu.ContextElement, ...],
    auth: pdu.SecurityTrailer | None,
    big_endian: bool,
    call_id: int,
) -> None:
    bind = pdu.Bind(
        call_id=call_id,
        max_xmit_frag=4280,
        max_recv_frag=5840,
        assoc_group_id=7,
        p_context_elem=elements,
        auth=auth,
        big_endian=big_endian,
    )
    assert pdu.unpack(bind.pack()) == bind


@given(data=st.binary(max_size=120))
def test_garbage_is_a_decode_error(data: bytes) -> None:
    length = (16 + len(data)).to_bytes(2, "little")
    for ptype in PduType:
        head = bytes([5, 0, ptype, 0x83, 0x10, 0, 0, 0]) + length
        for auth_length in (b"\0\0", b"\x10\0"):
            with contextlib.suppress(DecodeError):
                pdu.unpack(head + auth_length + bytes(4) + data)
