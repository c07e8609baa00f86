"""Headers of message packets, one by one: bytes, fields, and what is refused."""

import contextlib
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import Buffer, Structure, decode_text
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import BaseFlags, BaseHeader, SessionHeader
from rpcqm.codec.packet.internal import FinalAckBody, OrderAckBody
from rpcqm.codec.packet.multi_queue import (
    ADMIN_ID,
    DESTINATION_ID,
    MAXIMUM_ELEMENTS,
    MQFAddressHeader,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from rpcqm.codec.packet.properties import DebugHeader, MessagePropertiesStart
from rpcqm.codec.packet.security import ProviderInfo, SecurityFlags, SecurityHeader
from rpcqm.codec.packet.soap import SoapHeader
from rpcqm.codec.packet.srmp import CompoundMessageHeader, SRMPEnvelopeHeader
from rpcqm.codec.packet.transaction import TransactionFlags, TransactionHeader
from rpcqm.codec.packet.types import (
    MessageIdentifier,
    SequenceInfo,
    TxSequenceID,
)
from rpcqm.codec.packet.user import PrivateQueueFormatName, UserFlags, UserHeader

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
WIRE_GUID = "33221100554477668899aabbccddeeff"
OTHER = UUID("c626ea11-e6b6-9749-9595-9150557358d1")
DIRECT = FormatName.parse(r"DIRECT=OS:h\q")
WIRE_DIRECT = "4f0053003a0068005c0071000000"


def from_hex(text: str) -> bytes:
    return bytes.fromhex("".join(text.split()))


# Fixed structures: point, value, bytes.
FIXED: list[tuple[str, Structure, str]] = [
    ("MQMQ-packet-TxSequenceID", TxSequenceID(1, 0x12345678), "01000000 78563412"),
    (
        "MQMQ-packet-MessageIdentifier",
        MessageIdentifier(GUID, 0xFFFFFFFE),
        WIRE_GUID + "feffffff",
    ),
    (
        "MQMQ-packet-SEQUENCE_INFO",
        SequenceInfo(-2, 3, 2),
        "feffffffffffffff 03000000 02000000",
    ),
    (
        "MQMQ-packet-BaseHeader",
        BaseHeader(0x10, 0xAB, BaseFlags.of(PR=7, IN=1, SH=1, DH=1, TR=1), 0x524F494C, 16, 9),
        "10 ab 3f01 4c494f52 10000000 09000000",
    ),
    (
        "MQMQ-packet-SessionHeader",
        SessionHeader(1, 2, 0x80000003, 4, 5, 6, 7),
        "0100 0200 03000080 0400 0500 0600 0700",
    ),
    (
        "MQQB-header-OrderAckBody",
        OrderAckBody(TxSequenceID(1, 2), 3, 2),
        "01000000 02000000 03000000 02000000" + "00" * 20,
    ),
    (
        "MQQB-header-FinalAckBody",
        FinalAckBody(TxSequenceID(1, 2), 3, 2, GUID, 9),
        "01000000 02000000 03000000 02000000" + WIRE_GUID + "09000000",
    ),
    (
        "MQMQ-packet-MessagePropertiesHeader",
        MessagePropertiesStart(
            0x0F,
            3,
            0x8003,
            from_hex(WIRE_GUID + "07000000"),
            0x1011,
            5,
            2,
            9,
            1,
            0x8004,
            0x6801,
            3,
        ),
        "0f 03 0380"
        + WIRE_GUID
        + "07000000 11100000 05000000 02000000 09000000 01000000 04800000 01680000 03000000",
    ),
]
FIXED_CASES = [
    pytest.param(value, from_hex(raw), id=type(value).__name__, marks=pytest.mark.conformance(p))
    for p, value, raw in FIXED
]


@pytest.mark.parametrize(("value", "raw"), FIXED_CASES)
def test_fixed_structure_is_read_and_written(value: Structure, raw: bytes) -> None:
    assert value.encode() == raw
    assert type(value).decode(raw) == value
    assert type(value).decode(b"\xff" * 3 + raw + b"\xff", 3) == value
    assert type(value).size() == len(raw)


@pytest.mark.parametrize(("value", "raw"), FIXED_CASES)
def test_fixed_structure_cut_anywhere_is_a_decode_error(value: Structure, raw: bytes) -> None:
    for length in range(len(raw)):
        with pytest.raises(DecodeError):
            type(value).decode(raw[:length])


def test_value_that_its_field_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="SessionHeader"):
        SessionHeader(ack_sequence_number=0x10000).encode()
    with pytest.raises(ValueError, match="PR cannot hold 8"):
        BaseFlags.of(PR=8)


@pytest.mark.conformance("MQMQ-packet-GUID")
def test_guid_has_its_first_three_fields_little_endian() -> None:
    assert MessageIdentifier(GUID).encode()[:16] == from_hex(WIRE_GUID)
    assert MessageIdentifier.decode(from_hex(WIRE_GUID) + bytes(4)).queue_manager_guid == GUID


@pytest.mark.conformance("MQMQ-packet-TxSequenceID")
def test_sequences_are_ordered_by_time_stamp_first() -> None:
    assert TxSequenceID(9, 1) < TxSequenceID(0, 2)
    assert TxSequenceID(1, 2) < TxSequenceID(2, 2)
    assert TxSequenceID(1, 2) >= TxSequenceID(1, 2)
    assert TxSequenceID.from_value(0x0000000200000001) == TxSequenceID(1, 2)
    assert TxSequenceID(1, 2).value == 0x0000000200000001


@pytest.mark.conformance("MQMQ-packet-MessageIdentifier")
def test_message_identifier_as_text() -> None:
    identifier = MessageIdentifier(GUID, 4711)
    assert str(identifier) == "{00112233-4455-6677-8899-aabbccddeeff}\\4711"
    assert MessageIdentifier.parse(str(identifier)) == identifier
    assert MessageIdentifier.parse(f"{GUID}\\4711") == identifier
    for text in ("", str(GUID), f"{GUID}\\", f"{GUID}\\4294967296", "x\\1", f"{GUID}\\-1"):
        with pytest.raises(ValueError, match=r"message identifier|badly formed"):
            MessageIdentifier.parse(text)


# Structures of varying length: point, value, bytes. `decode` gives (value, end).
VARYING: list[tuple[str, Any, str]] = [
    (
        "MQMQ-packet-UserHeader",
        UserHeader(
            GUID,
            OTHER,
            1,
            2,
            3,
            UserFlags.of(
                RC=0x1D, DM=1, JN=1, JP=1, DQ=3, AQ=2, RQ=4, SH=1, TH=1, MP=1, CQ=1, MQ=1, HH=1
            ),
            5,
            6,
            7,
            GUID,
        ),
        WIRE_GUID
        + "11ea26c6b6e649979595 9150557358d1 01000000 02000000 03000000 3d4ffc10"
        + "05000000 06000000 07000000"
        + WIRE_GUID,
    ),
    (
        "MQMQ-packet-PrivateQueueFormatNameId",
        UserHeader(GUID, OTHER, flags=UserFlags.of(DQ=3, MP=1), destination_queue=0x0A0B0C0D),
        WIRE_GUID + "11ea26c6b6e6499795959150557358d1 ffffffff 00000000 00000000 000c2000 0d0c0b0a",
    ),
    (
        "MQMQ-packet-PublicQueueFormatName",
        UserHeader(GUID, OTHER, flags=UserFlags.of(DQ=5, MP=1), destination_queue=GUID),
        WIRE_GUID
        + "11ea26c6b6e6499795959150557358d1 ffffffff 00000000 00000000 00142000"
        + WIRE_GUID,
    ),
    (
        "MQMQ-packet-PrivateQueueFormatName",
        UserHeader(
            GUID,
            flags=UserFlags.of(AQ=6, RQ=1, MP=1),
            admin_queue=PrivateQueueFormatName(OTHER, 9),
        ),
        WIRE_GUID
        + "00" * 16
        + "ffffffff 00000000 00000000 00c02100 11ea26c6b6e6499795959150557358d1 09000000",
    ),
    (
        "MQMQ-packet-DirectQueueFormatName",
        UserHeader(
            GUID,
            flags=UserFlags.of(DQ=7, RQ=7, MP=1),
            destination_queue=r"OS:h\q",
            response_queue=r"OS:ho\q",
        ),
        WIRE_GUID
        + "00" * 16
        + "ffffffff 00000000 00000000 001c2700"
        + "0e00"
        + WIRE_DIRECT
        + "1000 4f0053003a0068006f005c0071000000 0000",
    ),
    (
        "MQMQ-packet-TransactionHeader",
        TransactionHeader(
            TransactionFlags.of(CG=1, FA=1, FM=1, LM=1, ID=0xABCDE), TxSequenceID(1, 2), 3, 2, GUID
        ),
        "efcdab00 01000000 02000000 03000000 02000000" + WIRE_GUID,
    ),
    (
        "MQMQ-packet-TransactionHeader",
        TransactionHeader(TransactionFlags.of(LM=1), TxSequenceID(1, 2), 1),
        "08000000 01000000 02000000 01000000 00000000",
    ),
    (
        "MQMQ-packet-SecurityHeader",
        SecurityHeader(
            SecurityFlags.of(ST=1, EB=1, DE=1, AI=1, AS=5),
            b"sid",
            b"keys!",
            b"s",
            b"cert",
            ProviderInfo(0x18, "p").encode(),
        ),
        "e105 0300 0500 0100 04000000 08000000"
        "73696400 6b65797321000000 73000000 63657274 18000000 70000000",
    ),
    ("MQMQ-packet-DebugHeader", DebugHeader(GUID), "0100 0000" + WIRE_GUID),
    ("MQMQ-packet-DebugHeader", DebugHeader(), "0000 0000"),
    (
        "MQMQ-packet-SoapHeader",
        SoapHeader("hé", ""),
        "2003 0000 03000000 6800e9000000 8403 0000 00000000",
    ),
    (
        "MQMQ-packet-MQFAddressHeader",
        MQFAddressHeader(DESTINATION_ID, (DIRECT,)),
        "1c000000 6400 0000 01000000 0300" + WIRE_DIRECT,
    ),
    (
        "MQMQ-packet-MQFDirectQueueFormatName",
        MQFAddressHeader(ADMIN_ID, (DIRECT, FormatName.parse(r"DIRECT=OS:ho\q"))),
        "30000000 c800 0000 02000000 0300"
        + WIRE_DIRECT
        + "0300 4f0053003a0068006f005c0071000000 0000",
    ),
    (
        "MQMQ-packet-MQFFormatNameElement",
        MQFAddressHeader(
            DESTINATION_ID,
            (FormatName.private(GUID, 4), DIRECT, FormatName.parse(f"PUBLIC={GUID}")),
        ),
        "48000000 6400 0000 03000000 0200 0000"
        + WIRE_GUID
        + "04000000 0300"
        + WIRE_DIRECT
        + "0100 0000"
        + WIRE_GUID,
    ),
    (
        "MQMQ-packet-MQFDistributionQueueFormatName",
        MQFAddressHeader(DESTINATION_ID, (FormatName.parse(f"DL={GUID}"),)),
        "20000000 6400 0000 01000000 0600 0000" + WIRE_GUID,
    ),
    ("MQMQ-packet-MQFSignatureHeader", MQFSignatureHeader(b"sig"), "5e01 0000 03000000 736967"),
    (
        "MQMQ-packet-MultiQueueFormatHeader",
        MultiQueueFormatHeader((DIRECT,), (), (), b"s"),
        "1c000000 6400 0000 01000000 0300"
        + WIRE_DIRECT
        + "0c000000 c800 0000 00000000 0c000000 2c01 0000 00000000 5e01 0000 01000000 73",
    ),
    (
        "MQRR-header-SRMPEnvelopeHeader",
        SRMPEnvelopeHeader("<e/>", 7),
        "0700 0000 05000000 3c0065002f003e000000",
    ),
    (
        "MQRR-header-CompoundMessageHeader",
        CompoundMessageHeader(b"POST /msmq\r\n\r\nbody", 4, 14, 7),
        "0700 0000 12000000 04000000 0e000000" + b"POST /msmq\r\n\r\nbody".hex(),
    ),
]
VARYING_CASES = [
    pytest.param(value, from_hex(raw), id=f"{p}-{index}", marks=pytest.mark.conformance(p))
    for index, (p, value, raw) in enumerate(VARYING)
]


@pytest.mark.parametrize(("value", "raw"), VARYING_CASES)
def test_header_is_read_and_written(value: Any, raw: bytes) -> None:
    assert value.encode() == raw
    assert type(value).decode(raw) == (value, len(raw))
    shifted = b"\xff" * 4 + raw + b"\xff" * 4
    assert type(value).decode(shifted, 4) == (value, len(raw) + 4)
    assert type(value).decode(memoryview(shifted), 4) == (value, len(raw) + 4)


@pytest.mark.parametrize(("value", "raw"), VARYING_CASES)
def test_header_cut_anywhere_is_a_decode_error(value: Any, raw: bytes) -> None:
    for length in range(len(raw)):
        with pytest.raises(DecodeError):
            type(value).decode(raw[:length])


@given(
    st.sampled_from([(type(value).decode, from_hex(raw)) for _, value, raw in VARYING]),
    st.integers(0, 100),
    st.integers(0, 255),
    st.integers(0, 100),
    st.integers(0, 255),
)
def test_corrupted_header_is_read_or_a_decode_error(
    case: tuple[Callable[[Buffer], Any], bytes], at: int, value: int, at2: int, value2: int
) -> None:
    decode, raw = case
    changed = bytearray(raw)
    changed[at % len(raw)] = value
    changed[at2 % len(raw)] = value2
    with contextlib.suppress(DecodeError):
        decode(changed)


@pytest.mark.parametrize(
    "header",
    [
        UserHeader(GUID, flags=UserFlags.of(CQ=1, MP=1)),
        UserHeader(GUID, connector_type=GUID),
        UserHeader(GUID, destination_queue="x"),
        UserHeader(GUID, flags=UserFlags.of(DQ=7), destination_queue=4),
        UserHeader(GUID, flags=UserFlags.of(AQ=6), admin_queue=4),
        UserHeader(GUID, flags=UserFlags.of(DQ=7), destination_queue="x" * 40000),
        UserHeader(GUID, message_id=1 << 32),
        TransactionHeader(TransactionFlags.of(CG=1)),
        TransactionHeader(connector_qm_guid=GUID),
        SecurityHeader(security_id=bytes(70000)),
        MQFAddressHeader(DESTINATION_ID, (FormatName.parse("MULTICAST=234.1.1.1:1"),)),
    ],
    ids=lambda header: type(header).__name__,
)
def test_header_that_cannot_be_written_is_refused(header: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        header.encode()


@pytest.mark.conformance("MQMQ-packet-UserHeader")
@pytest.mark.parametrize(
    "flags",
    [
        *({"DQ": kind} for kind in (1, 2, 4, 6)),
        *({"AQ": kind} for kind in (1, 4)),
        {"RC": 0x1E},
        {"DM": 2},
        {"TH": 1, "DM": 0},
        {"MP": 0},
        {"DQ": 3},
    ],
    ids=str,
)
def test_user_header_flags_that_are_ruled_out_are_refused(flags: dict[str, int]) -> None:
    with pytest.raises(DecodeError):
        UserHeader(GUID, flags=UserFlags.of(**{"MP": 1, "DM": 1} | flags)).validate()


@pytest.mark.conformance("MQMQ-packet-UserHeader")
def test_response_queue_is_absent_for_0_and_1_and_an_identifier_for_2_3_and_4() -> None:
    start = UserHeader(GUID).encode()
    for kind in range(8):
        raw = start[:44] + UserFlags.of(RQ=kind, MP=1).to_bytes(4, "little")
        name = b"\7\0\0\0" if kind in (2, 3, 4) else b""
        if kind in (0, 1, 2, 3, 4):
            header, end = UserHeader.decode(raw + name)
            assert (header.response_queue, end) == (7 if name else None, 48 + len(name))


@pytest.mark.conformance("MQMQ-packet-BaseHeader")
def test_base_header_rules() -> None:
    BaseHeader(packet_size=0x400000).validate()
    for header in (
        BaseHeader(version_number=0x11),
        BaseHeader(signature=0x4C494F52),
        BaseHeader(packet_size=15),
        BaseHeader(packet_size=0x400001),
        BaseHeader(flags=BaseFlags.of(TR=1)),
    ):
        with pytest.raises(DecodeError):
            header.validate()


@pytest.mark.conformance("MQMQ-packet-UserMessage")
def test_packet_size_leaves_the_session_header_of_a_message_out() -> None:
    assert BaseHeader(packet_size=120).frame_size == 120
    assert BaseHeader(flags=BaseFlags.of(SH=1), packet_size=120).frame_size == 136
    assert BaseHeader(flags=BaseFlags.of(SH=1, IN=1), packet_size=36).frame_size == 36


@pytest.mark.conformance("MQMQ-packet-SecurityHeader")
@pytest.mark.parametrize(
    "header",
    [
        SecurityHeader(),
        SecurityHeader(SecurityFlags.of(ST=0), security_id=b"sid"),
        SecurityHeader(SecurityFlags.of(ST=1), signature=b"s"),
        SecurityHeader(SecurityFlags.of(ST=3), security_id=b"sid"),
        SecurityHeader(SecurityFlags.of(ST=2), security_id=b"sid"),
        SecurityHeader(sender_cert=bytes(0x10000)),
    ],
)
def test_security_header_that_breaks_its_rules_is_refused(header: SecurityHeader) -> None:
    with pytest.raises(DecodeError):
        header.validate()


@pytest.mark.conformance("MQMQ-packet-SecurityHeader")
def test_sizes_tell_what_the_security_header_holds_not_its_flag() -> None:
    data = SecurityHeader(SecurityFlags.of(ST=2), security_id=GUID.bytes_le)
    assert SecurityHeader.decode(data.encode())[0].security_id == GUID.bytes_le
    SecurityHeader(provider_info=b"1234\0\0").validate()


def test_provider_without_its_end_is_refused() -> None:
    for raw in (b"", b"123", b"1234", b"1234p\0", b"1234p"):
        with pytest.raises(DecodeError):
            ProviderInfo.decode(raw)


@pytest.mark.conformance("MQMQ-packet-DebugHeader")
def test_trace_queue_of_another_type_is_refused() -> None:
    with pytest.raises(DecodeError):
        DebugHeader.decode(b"\2\0\0\0" + bytes(16))


@pytest.mark.conformance("MQMQ-packet-SoapHeader")
def test_soap_sections_of_a_peer_that_aligns_them_are_read_too() -> None:
    raw = SoapHeader("ab", "c").encode()
    assert len(raw) == 26
    aligned = raw[:14] + b"\xaa\xaa" + raw[14:]
    assert SoapHeader.decode(aligned) == (SoapHeader("ab", "c"), 28)


@pytest.mark.parametrize("offset", [0, 14])
def test_soap_section_with_another_number_is_refused(offset: int) -> None:
    raw = bytearray(SoapHeader("ab", "c").encode())
    raw[offset] ^= 1
    with pytest.raises(DecodeError):
        SoapHeader.decode(raw)


@pytest.mark.parametrize(
    "raw",
    [
        "0b000000 6400 0000 00000000",
        "0c000000 6400 0000 01000000",
        "10000000 6400 0000 01000000 04000000",
        "10000000 6400 0000 01000000 03006100",
    ],
)
def test_queue_list_that_contradicts_itself_is_refused(raw: str) -> None:
    with pytest.raises(DecodeError):
        MQFAddressHeader.decode(from_hex(raw))


def test_queue_list_is_bounded() -> None:
    name = FormatName.parse(r"DIRECT=OS:h\q")
    longest = MQFAddressHeader(DESTINATION_ID, (name,) * MAXIMUM_ELEMENTS)
    assert MQFAddressHeader.decode(longest.encode())[0] == longest
    with pytest.raises(DecodeError):
        MQFAddressHeader.decode(
            MQFAddressHeader(DESTINATION_ID, (name,) * (MAXIMUM_ELEMENTS + 1)).encode()
        )


def test_end_of_a_direct_name_is_found_at_whole_characters() -> None:
    """In UTF-16, the bytes of "aĀ" hold two zeros that are no character."""
    header = MQFAddressHeader(DESTINATION_ID, (FormatName.parse(r"DIRECT=OS:h\q"),))
    raw = header.encode().replace(b"h\0\\\0", b"a\0\0\1")
    name = MQFAddressHeader.decode(raw)[0].format_name_list[0]
    assert name.value == "OS:aĀq"


def test_multi_queue_lists_must_stand_in_their_order() -> None:
    raw = bytearray(MultiQueueFormatHeader((DIRECT,), (), (), b"s").encode())
    raw[4] = ADMIN_ID
    with pytest.raises(DecodeError):
        MultiQueueFormatHeader.decode(raw)


def test_body_outside_its_http_request_is_refused() -> None:
    with pytest.raises(DecodeError):
        CompoundMessageHeader.decode(CompoundMessageHeader(b"POST", 2, 3).encode())


@pytest.mark.parametrize("raw", [b"", b"a\0", b"\0\0a\0\0\0", b"a\0\0\0\0\0", b"a"])
def test_text_without_its_one_null_at_the_end_is_refused(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_text(raw, "text")


@given(st.binary(max_size=12))
def test_any_bytes_are_a_text_or_a_decode_error(raw: bytes) -> None:
    with contextlib.suppress(DecodeError):
        decode_text(raw, "text")


texts = st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=8)
names = st.sampled_from([DIRECT, FormatName.private(OTHER, 7), FormatName.parse(f"PUBLIC={GUID}")])
lists = st.lists(names, max_size=3).map(tuple)
headers = st.one_of(
    st.builds(
        SecurityHeader,
        st.integers(0, 0xFFFF).map(SecurityFlags),
        *[st.binary(max_size=9) for _ in range(5)],
    ),
    st.builds(SoapHeader, texts, texts),
    st.builds(MultiQueueFormatHeader, lists, lists, lists, st.binary(max_size=5)),
    st.builds(DebugHeader, st.none() | st.uuids()),
)


@given(headers)
def test_header_survives_its_bytes(header: Any) -> None:
    raw = header.encode()
    assert type(header).decode(raw) == (header, len(raw))
