"""Session keys of the handshakes that [MS-NLMP] 4.2 prints."""

from pathlib import Path

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.capture.unsealing.accounts import AccountError, parse_account, read_accounts
from rpcqm.capture.unsealing.ntlm_keys import find_message, session_key
from rpcqm.client.passwords import nt_hash
from rpcqm.rpc.security.ntlm_messages import read_authenticate

VECTORS = Path(__file__).parents[2] / "vectors" / "captures"
KEYTAB = VECTORS / "kerberos.keytab"
MESSAGES = [
    bytes.fromhex(line) for line in (VECTORS / "ntlm_authenticate.hex").read_text().splitlines()
]
CHALLENGE = bytes.fromhex("0123456789abcdef")
EXCHANGED = bytes([0x55] * 16)
ACCOUNT = parse_account("Domain\\User:Password")


@pytest.mark.parametrize(
    ("message", "key"),
    [
        pytest.param(MESSAGES[0], EXCHANGED, id="NTLMv1"),
        pytest.param(
            MESSAGES[1],
            bytes.fromhex("eb93429a8bd952f8b89c55b87f475edc"),
            id="NTLMv1 with extended session security",
        ),
        pytest.param(MESSAGES[2], EXCHANGED, id="NTLMv2"),
    ],
)
def test_the_key_is_what_the_specification_says(message: bytes, key: bytes) -> None:
    authenticate = read_authenticate(message)
    assert authenticate.account == "Domain\\User"
    assert session_key(authenticate, CHALLENGE, [ACCOUNT]) == key
    wrong = parse_account("User:password")
    assert session_key(authenticate, CHALLENGE, [wrong]) is None
    assert session_key(authenticate, bytes(8), [ACCOUNT]) is None


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_cut_short_is_refused(message: bytes) -> None:
    for length in (0, 40, 63, 80):
        with pytest.raises(DecodeError):
            read_authenticate(message[:length])


def test_a_message_is_found_in_a_wrapping() -> None:
    assert find_message(b"\x60\x48\x06" + MESSAGES[0])[0] == 3
    assert find_message(b"\x60\x48\x06 nothing") == (0, b"")


def test_accounts_are_read_from_files(tmp_path: Path) -> None:
    digits = nt_hash("secret").hex()
    file = tmp_path / "accounts"
    file.write_text(
        f"# theirs\nCORP\\ann:secret\nbob:1000:{'X' * 32}:{digits.upper()}:[U ]:LCT-0\n"
    )
    accounts = read_accounts([str(file), "eve:a:b", str(KEYTAB)])
    assert [(account.domain, account.name) for account in accounts] == [
        ("CORP", "ann"),
        ("", "bob"),
        ("", "eve"),
        ("RPCQM.TEST", "host/rpchost"),
    ]
    assert accounts[0].hashes == accounts[1].hashes
    assert accounts[2].hashes == (nt_hash("a:b"),)
    assert accounts[3].hashes == ()
    assert [key.encryption_type for key in accounts[3].keys] == [18, 17]


def test_a_file_that_is_neither_is_told(tmp_path: Path) -> None:
    file = tmp_path / "accounts"
    for octets in (b"\x05\x02\0\0\0\x40short", b"\xff\xfe\0"):
        file.write_bytes(octets)
        with pytest.raises(AccountError, match="accounts"):
            read_accounts([str(file)])


def test_a_name_without_a_password_is_not_taken_for_a_file() -> None:
    with pytest.raises(AccountError, match="ann is no file and no DOMAIN"):
        read_accounts(["ann"])


@pytest.mark.parametrize("text", ["a\\:b", ":b", "\\:"])
def test_what_is_no_account_is_refused(text: str) -> None:
    with pytest.raises(AccountError):
        parse_account(text)
