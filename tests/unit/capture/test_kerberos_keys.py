"""Keytabs and tickets: what is right is read, what is not is told."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import read_records
from rpcqm.capture.unsealing.accounts import UnsealingAccount, parse_account, read_keytabs
from rpcqm.capture.unsealing.kerberos_keys import (
    REPLY,
    REQUEST,
    find_message,
    open_request,
    subkey_of_reply,
)
from rpcqm.capture.unsealing.kerberos_messages import messages_under
from rpcqm.capture.unsealing.keytab import read_keytab
from rpcqm.rpc.constants import AuthenticationLevel

CAPTURES = Path(__file__).parents[2] / "vectors" / "captures"
KEYTAB = CAPTURES / "kerberos.keytab"
KEYS = read_keytabs([KEYTAB])
PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY


def messages(name: str) -> list[tuple[int, bytes]]:
    """The Kerberos messages in the frames of a capture."""
    records = read_records(CAPTURES / name, Problems())
    found = (find_message(octets) for _, _, octets, _, _ in records)
    return [each for each in found if each[0]]


SAMBAS = messages("samba-kerberos.pcapng")
AP_REQ = SAMBAS[0][1]
OPENED = open_request(AP_REQ, KEYS)


def test_a_handshake_has_three_messages() -> None:
    assert [kind for kind, _ in SAMBAS] == [REQUEST, REPLY, REPLY]
    assert OPENED.client == "RPCQM.TEST\\alice"
    assert OPENED.ticket_key.encryption_type == 18
    assert subkey_of_reply(SAMBAS[1][1], OPENED.ticket_key) is not None
    assert subkey_of_reply(SAMBAS[2][1], OPENED.ticket_key) is None


@pytest.mark.parametrize(
    ("accounts", "why"),
    [
        ([], "no account was given for host/rpchost@RPCQM.TEST (encryption type 18)"),
        ([parse_account("a:b")], "no key that was given is that of host/rpchost@RPCQM.TEST"),
    ],
)
def test_a_ticket_without_its_key_says_whose_it_is(
    accounts: list[UnsealingAccount], why: str
) -> None:
    with pytest.raises(DecodeError) as told:
        open_request(AP_REQ, accounts)
    assert why in told.value.reason


@given(
    position=st.integers(0, len(AP_REQ)),
    noise=st.binary(min_size=1, max_size=4),
    cut=st.integers(0, len(AP_REQ)),
)
def test_damaged_requests_are_decode_errors(position: int, noise: bytes, cut: int) -> None:
    damaged = (AP_REQ[:position] + noise + AP_REQ[position + len(noise) :])[:cut]
    with suppress(DecodeError):
        open_request(damaged, KEYS)
    with suppress(DecodeError):
        subkey_of_reply(damaged, OPENED.ticket_key)


@given(token=st.binary(max_size=100), sealed=st.binary(max_size=40))
def test_damaged_tokens_are_decode_errors(token: bytes, sealed: bytes) -> None:
    under = messages_under(OPENED.ticket_key)
    for begin in (b"", b"\x05\x04\x06\xff\0\x10\0\x1c", b"\x04\x04\x05\xff\xff\xff\xff\xff"):
        with pytest.raises(DecodeError):
            under.unseal(b"", sealed, b"", begin + token)
        with pytest.raises(DecodeError):
            under.verify(b"", sealed, b"", begin + token)


def entry(principal: tuple[bytes, ...], realm: bytes, key: bytes, *versions: int) -> bytes:
    """An entry of a keytab; a second version is the one of 32 bits."""
    out = struct.pack(">H", len(principal))
    for part in (realm, *principal):
        out += struct.pack(">H", len(part)) + part
    out += struct.pack(">IIBHH", 1, 0, versions[0], 18, len(key)) + key
    out += b"".join(struct.pack(">I", version) for version in versions[1:])
    return struct.pack(">i", len(out)) + out


def test_keytabs_have_holes_and_two_kinds_of_versions() -> None:
    hole = struct.pack(">i", -20) + bytes(20)
    octets = b"\x05\x02" + entry((b"host", b"a"), b"R", b"k" * 32, 3) + hole
    octets += entry((b"svc",), b"R", b"l" * 32, 4, 300) + entry((b"svc",), b"R", b"m" * 32, 5, 0)
    found = [(key.principal, key.version, key.octets[:1]) for key in read_keytab(octets)]
    assert found == [("host/a@R", 3, b"k"), ("svc@R", 300, b"l"), ("svc@R", 5, b"m")]


@pytest.mark.parametrize("size", [0, 1, 7, 20, 60, 149])
def test_a_keytab_cut_short_is_refused(size: int) -> None:
    with pytest.raises(DecodeError):
        read_keytab(KEYTAB.read_bytes()[:size])


@given(st.binary(max_size=60))
def test_damaged_keytabs_are_decode_errors(octets: bytes) -> None:
    with suppress(DecodeError):
        read_keytab(b"\x05\x02" + octets)
