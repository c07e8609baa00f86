"""Security descriptors: bytes, text, and agreement with an independent implementation."""

import contextlib
import csv
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from impacket.ldap import ldaptypes

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.security.access_check import MQQMACCESSMASK, MQQUEUEACCESSMASK
from rpcqm.codec.security.descriptor import (
    Ace,
    AceFlags,
    AceType,
    Acl,
    Control,
    SecurityDescriptor,
    SecurityInformation,
)
from rpcqm.codec.security.identifier import (
    ALIASES,
    BUILTIN_ADMINISTRATORS,
    DOMAIN_RELATIVE,
    EVERYONE,
    WELL_KNOWN,
    Sid,
    sid_bytes,
)
from rpcqm.codec.security.sddl import format_sddl, parse_sddl

VECTORS = Path(__file__).parents[2] / "vectors" / "mqmq"
MASKS = list(csv.DictReader((VECTORS / "access_masks.csv").read_text("ascii").splitlines()))
ENUMS = {
    "MQQMACCESSMASK": MQQMACCESSMASK,
    "MQQUEUEACCESSMASK": MQQUEUEACCESSMASK,
    "SECURITY_INFORMATION": SecurityInformation,
}
POINTS = {
    "MQQMACCESSMASK": "MQMQ-rule-MQQMACCESSMASK",
    "MQQUEUEACCESSMASK": "MQMQ-rule-MQQUEUEACCESSMASK",
    "SECURITY_INFORMATION": "MQMQ-packet-SECURITY_INFORMATION",
}

# [MS-DTYP] 2.5.1.4: a descriptor as text and as bytes.
EXAMPLE_TEXT = (
    "O:BAG:BAD:P(A;CIOI;GRGX;;;BU)(A;CIOI;GA;;;BA)(A;CIOI;GA;;;SY)(A;CIOI;GA;;;CO)"
    "S:P(AU;FA;GR;;;WD)"
)
EXAMPLE = bytes.fromhex("""
    010014b0 90000000 a0000000 14000000 30000000 02001c00 01000000 02801400
    00000080 01010000 00000001 00000000 02006000 04000000 00031800 000000a0
    01020000 00000005 20000000 21020000 00031800 00000010 01020000 00000005
    20000000 20020000 00031400 00000010 01010000 00000005 12000000 00031400
    00000010 01010000 00000003 00000000 01020000 00000005 20000000 20020000
    01020000 00000005 20000000 20020000
""")

sids = st.builds(
    Sid,
    st.integers(0, (1 << 48) - 1),
    st.lists(st.integers(0, 0xFFFFFFFF), max_size=15).map(tuple),
)
plain_aces = st.builds(
    Ace,
    st.sampled_from([0, 1, 2, 0x11, 0x13]),
    st.integers(0, 255),
    st.integers(0, 0xFFFFFFFF),
    sids,
)
object_aces = st.builds(
    Ace,
    st.sampled_from([5, 6, 7]),
    st.integers(0, 255),
    st.integers(0, 0xFFFFFFFF),
    sids,
    st.none() | st.uuids(),
    st.none() | st.uuids(),
)
opaque_aces = st.builds(
    Ace,
    st.sampled_from([3, 4, 8, 0x0E, 0x10, 0x14, 0xFF]),
    st.integers(0, 255),
    data=st.binary(max_size=8).map(lambda raw: raw * 4),
)
conditional_aces = st.builds(
    Ace,
    st.sampled_from([9, 0x0A, 0x0D, 0x12]),
    mask=st.integers(0, 0xFFFFFFFF),
    sid=sids,
    data=st.binary(max_size=8).map(lambda raw: raw * 4),
)
acls = st.builds(
    Acl,
    st.lists(plain_aces | object_aces | opaque_aces | conditional_aces, max_size=6).map(tuple),
    st.sampled_from([2, 4]),
)
descriptors = st.builds(
    SecurityDescriptor,
    st.none() | sids,
    st.none() | sids,
    st.none() | acls,
    st.none() | acls,
    st.integers(0, 0x7FFF).map(lambda bits: bits & ~(Control.DP | Control.SP)),
)


@pytest.mark.parametrize(
    ("mask", "name", "value"),
    [
        pytest.param(
            row["mask"],
            row["name"],
            int(row["value"], 16),
            id=row["name"],
            marks=pytest.mark.conformance(POINTS[row["mask"]]),
        )
        for row in MASKS
    ],
)
def test_right_has_the_bits_of_the_specification(mask: str, name: str, value: int) -> None:
    assert ENUMS[mask][name] == value


@pytest.mark.parametrize("mask", ENUMS)
def test_every_right_of_the_specification_is_there(mask: str) -> None:
    assert set(ENUMS[mask].__members__) == {row["name"] for row in MASKS if row["mask"] == mask}


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("S-1-1-0", "010100000000000100000000"),
        ("S-1-5-32-544", "01020000000000052000000020020000"),
        ("S-1-0x0123456789ab-1", "01010123456789ab01000000"),
        ("S-1-5", "0100000000000005"),
        (
            "S-1-5-21-3181267629-1039849782-3663111779-1000",
            "010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000",
        ),
    ],
)
def test_sid_as_text_and_as_bytes(text: str, raw: str) -> None:
    sid = Sid.parse(text)
    assert sid.encode().hex() == raw
    assert Sid.decode(bytes.fromhex(raw)) == sid
    assert str(sid) == text
    assert sid_bytes(text) == bytes.fromhex(raw)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "S-1-",
        "S-2-5-7",
        "S-1-05-7",
        "S-1-5-",
        "S-1-5-4294967296",
        "S-1-5-01",
        "S-1-0x5-7",
        "BA",
    ],
)
def test_text_that_is_no_sid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no SID|32 bits"):
        Sid.parse(text)


def test_sixteenth_sub_authority_is_refused() -> None:
    with pytest.raises(ValueError, match="15 sub-authorities"):
        Sid(5, tuple(range(16)))
    with pytest.raises(DecodeError):
        Sid.decode(bytes((1, 16, 0, 0, 0, 0, 0, 5)) + bytes(64))


def test_published_example_from_bytes_to_text_and_back() -> None:
    descriptor = SecurityDescriptor.decode(EXAMPLE)
    assert descriptor.owner == BUILTIN_ADMINISTRATORS
    assert descriptor.group == BUILTIN_ADMINISTRATORS
    assert descriptor.control == Control.DP | Control.SP | Control.PD | Control.PS
    assert descriptor.dacl is not None
    assert [str(ace.sid) for ace in descriptor.dacl.aces] == [
        "S-1-5-32-545",
        "S-1-5-32-544",
        "S-1-5-18",
        "S-1-3-0",
    ]
    assert descriptor.dacl.aces[0].mask == 0xA0000000
    assert descriptor.sacl == Acl(
        (Ace(AceType.SYSTEM_AUDIT_ACE_TYPE, AceFlags.FAILED_ACCESS_ACE_FLAG, 1 << 31, EVERYONE),)
    )
    assert descriptor.encode() == EXAMPLE
    assert parse_sddl(EXAMPLE_TEXT).encode() == EXAMPLE
    assert parse_sddl(format_sddl(descriptor)) == descriptor


def test_descriptor_truncated_anywhere_is_a_decode_error() -> None:
    for length in range(len(EXAMPLE)):
        with pytest.raises(DecodeError):
            SecurityDescriptor.decode(EXAMPLE[:length])


@given(st.integers(0, len(EXAMPLE) - 1), st.integers(0, 255))
def test_descriptor_corrupted_anywhere_is_read_or_a_decode_error(at: int, value: int) -> None:
    raw = bytearray(EXAMPLE)
    raw[at] = value
    with contextlib.suppress(DecodeError):
        SecurityDescriptor.decode(raw)


@given(st.binary(max_size=96))
def test_random_bytes_are_read_or_a_decode_error(raw: bytes) -> None:
    with contextlib.suppress(DecodeError):
        SecurityDescriptor.decode(b"\x01\0\x14\x80" + raw)


@given(descriptors)
def test_descriptor_survives_its_bytes(descriptor: SecurityDescriptor) -> None:
    present = (Control.SP if descriptor.sacl else 0) | (Control.DP if descriptor.dacl else 0)
    decoded = SecurityDescriptor.decode(descriptor.encode())
    assert decoded.control == descriptor.control | present
    assert decoded.encode() == descriptor.encode()
    assert (decoded.owner, decoded.group) == (descriptor.owner, descriptor.group)
    assert (decoded.sacl, decoded.dacl) == (descriptor.sacl, descriptor.dacl)


@given(
    st.builds(
        SecurityDescriptor,
        sids,
        sids,
        st.none(),
        st.builds(Acl, st.lists(plain_aces.filter(lambda ace: ace.type < 2)).map(tuple)),
    )
)
def test_impacket_reads_the_same_descriptor(descriptor: SecurityDescriptor) -> None:
    theirs = ldaptypes.SR_SECURITY_DESCRIPTOR(descriptor.encode())
    assert theirs["OwnerSid"].formatCanonical() == _impacket_text(descriptor.owner)
    assert theirs["GroupSid"].formatCanonical() == _impacket_text(descriptor.group)
    assert descriptor.dacl is not None
    assert theirs["Dacl"]["AceCount"] == len(descriptor.dacl.aces)
    for ace, mine in zip(theirs["Dacl"].aces, descriptor.dacl.aces, strict=True):
        assert (ace["AceType"], ace["AceFlags"]) == (mine.type, mine.flags)
        assert ace["Ace"]["Mask"]["Mask"] == mine.mask
        assert ace["Ace"]["Sid"].formatCanonical() == _impacket_text(mine.sid)
    assert SecurityDescriptor.decode(theirs.getData()).dacl == descriptor.dacl


def _impacket_text(sid: Sid | None) -> str:
    assert sid is not None
    authority = sid.authority & 0xFF  # impacket shows the last byte only
    return "-".join(("S-1", str(authority), *map(str, sid.sub_authorities)))


def test_absent_list_and_empty_list_differ() -> None:
    absent = SecurityDescriptor.decode(SecurityDescriptor(EVERYONE).encode())
    empty = SecurityDescriptor.decode(SecurityDescriptor(EVERYONE, dacl=Acl()).encode())
    assert absent.dacl is None
    assert empty.dacl == Acl()


def test_parts_of_a_descriptor_are_replaced_by_security_information() -> None:
    old = parse_sddl("O:BAG:BAD:P(A;;GA;;;BA)S:(AU;FA;GR;;;WD)")
    new = parse_sddl("O:SYG:SYD:AI(A;;GR;;;WD)")
    changed = old.replaced(new, SecurityInformation.DACL_SECURITY_INFORMATION)
    assert format_sddl(changed) == "O:BAG:BAD:AI(A;;GR;;;WD)S:(AU;FA;GR;;;WD)"
    owner_only = old.selected(SecurityInformation.OWNER_SECURITY_INFORMATION)
    assert format_sddl(owner_only) == "O:BA"


def test_queue_rights_are_hexadecimal_in_text() -> None:
    text = "D:(A;;0x2003f;;;WD)(D;;0x4;;;AN)(A;;SD;;;SY)"
    assert format_sddl(parse_sddl(text)) == text


@pytest.mark.parametrize(
    ("rights", "mask"),
    [
        ("GA", 0x10000000),
        ("GRGW", 0xC0000000),
        ("rcwd", 0x00060000),
        ("0x3F", 0x3F),
        ("077", 0o77),
        ("63", 63),
        ("CCDCLC", 7),
        ("", 0),
    ],
)
def test_rights_in_every_notation(rights: str, mask: int) -> None:
    descriptor = parse_sddl(f"D:(A;;{rights};;;WD)")
    assert descriptor.dacl == Acl((Ace(0, 0, mask, EVERYONE),))


@pytest.mark.parametrize(
    "text",
    [
        "X:BA",
        "O:BAO:BA",
        "O:ZZ",
        "O:DA",
        "D:(A;;GA;;;WD",
        "D:(Q;;GA;;;WD)",
        "D:(A;;QQ;;;WD)",
        "D:(A;;G;;;WD)",
        "D:(A;;0x1FFFFFFFF;;;WD)",
        "D:(A;;0xZ;;;WD)",
        "D:(A;ZZ;GA;;;WD)",
        "D:(A;;GA;no-guid;;WD)",
        "D:(A;;GA;;;)",
        "D:(A;;GA;;WD)",
        'D:(XA;;GA;;;WD;(@User.x == "y"))',
        "D:Z(A;;GA;;;WD)",
    ],
)
def test_wrong_text_is_an_illegal_security_descriptor(text: str) -> None:
    with pytest.raises(MQError) as refusal:
        parse_sddl(text)
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR


def test_conditional_entry_has_no_text() -> None:
    acl = Acl((Ace(AceType.ACCESS_ALLOWED_CALLBACK_ACE_TYPE, 0, 1, EVERYONE, data=b"artx"),))
    with pytest.raises(MQError):
        format_sddl(SecurityDescriptor(dacl=acl))


def test_domain_names_are_relative_to_the_given_domain() -> None:
    domain = Sid.parse("S-1-5-21-1-2-3")
    for name, identifier in DOMAIN_RELATIVE.items():
        owner = parse_sddl(f"O:{name}", domain).owner
        assert str(owner) == f"S-1-5-21-1-2-3-{identifier}"


def test_every_alias_has_its_own_sid() -> None:
    assert len(ALIASES) == len(WELL_KNOWN)
    assert not set(WELL_KNOWN) & set(DOMAIN_RELATIVE)


def test_list_of_no_access_control_lets_everybody_in() -> None:
    descriptor = parse_sddl("D:NO_ACCESS_CONTROL")
    assert descriptor.dacl is None
    assert descriptor.control == Control.DP
    assert format_sddl(descriptor) == "D:NO_ACCESS_CONTROL"


def test_object_entry_keeps_its_types_in_text() -> None:
    text = "D:(OA;;0x1;00000000-0000-0000-0000-000000000007;;WD)"
    descriptor = parse_sddl(text)
    assert descriptor.dacl is not None
    assert descriptor.dacl.revision == 4
    assert descriptor.dacl.aces[0].object_type == UUID(int=7)
    assert format_sddl(SecurityDescriptor.decode(descriptor.encode())) == text


@given(
    st.builds(
        SecurityDescriptor,
        st.none() | sids,
        st.none() | sids,
        st.none(),
        st.builds(
            Acl,
            st.lists(
                st.builds(
                    Ace,
                    st.integers(0, 1),
                    st.integers(0, 0x1F),
                    st.integers(0, 0xFFFFFFFF),
                    sids | st.sampled_from(list(ALIASES)),
                )
            ).map(tuple),
        ),
        st.just(int(Control.DP)),
    )
)
def test_descriptor_survives_its_text(descriptor: SecurityDescriptor) -> None:
    assert parse_sddl(format_sddl(descriptor)) == descriptor


def test_list_that_is_too_long_is_refused() -> None:
    acl = Acl(tuple(Ace(0, 0, 1, Sid(5, (1,) * 15)) for _ in range(1000)))
    with pytest.raises(MQError, match=r"ILLEGAL_SECURITY_DESCRIPTOR.*too long"):
        acl.encode()
