"""NTLM messages that nobody honest sends: weak, too long, or with a thing said twice."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from rpcqm.codec.security.passwords import nt_hash
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import CONNECT, PKT_INTEGRITY, PKT_PRIVACY, AuthenticationError
from rpcqm.rpc.security.ntlm import (
    NtlmAcceptor,
    NtlmCredentials,
    NtlmInitiator,
    NtlmSettings,
    stored_hash,
)
from rpcqm.rpc.security.ntlm_messages import (
    Authenticate,
    AvId,
    pack_authenticate,
    pack_challenge,
    pack_client_challenge,
    pack_negotiate,
    proof_of,
    read_challenge,
    response_key,
)
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags
from tests.support.accounts import NT_HASH, PASSWORD, TestAccounts

Flag = NegotiateFlags
ALICE = NtlmCredentials("alice", PASSWORD)
ALICE_56 = NtlmCredentials("alice", PASSWORD, minimum_bits=56)
ENOUGH = int(
    Flag.NTLMSSP_NEGOTIATE_UNICODE
    | Flag.NTLMSSP_NEGOTIATE_SIGN
    | Flag.NTLMSSP_NEGOTIATE_SEAL
    | Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
    | Flag.NTLMSSP_NEGOTIATE_TARGET_INFO
    | Flag.NTLMSSP_NEGOTIATE_128
    | Flag.NTLMSSP_NEGOTIATE_KEY_EXCH
)
STRENGTH = int(Flag.NTLMSSP_NEGOTIATE_128 | Flag.NTLMSSP_NEGOTIATE_56)
NAME = "SERVER".encode("utf-16-le")
NAMED = ((AvId.MsvAvNbComputerName, NAME), (AvId.MsvAvNbDomainName, NAME))
NONCE = b"8 octets"


@pytest.fixture
def accounts(tmp_path: Path) -> TestAccounts:
    return TestAccounts(tmp_path)


# What a server chooses.


def answered(
    flags: int,
    credentials: NtlmCredentials = ALICE,
    pairs: Sequence[tuple[int, bytes]] = NAMED,
    level: AuthenticationLevel = PKT_PRIVACY,
) -> NtlmInitiator:
    """Our client, after a server that chose these flags."""
    client = NtlmInitiator(credentials, level)
    client.step(b"")
    client.step(pack_challenge(flags, NONCE, "SERVER", pairs))
    return client


def test_a_strong_choice_is_answered() -> None:
    assert answered(ENOUGH).complete


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(ENOUGH & ~STRENGTH, id="40 bits"),
        pytest.param(ENOUGH & ~STRENGTH | Flag.NTLMSSP_NEGOTIATE_56, id="56 bits"),
        pytest.param(
            ENOUGH & ~Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY, id="no session security"
        ),
        pytest.param(
            ENOUGH & ~Flag.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
            | Flag.NTLMSSP_NEGOTIATE_LM_KEY,
            id="LM key",
        ),
        pytest.param(ENOUGH & ~Flag.NTLMSSP_NEGOTIATE_SIGN, id="unsigned"),
        pytest.param(ENOUGH & ~Flag.NTLMSSP_NEGOTIATE_SEAL, id="in clear"),
        pytest.param(ENOUGH & ~Flag.NTLMSSP_NEGOTIATE_UNICODE, id="no Unicode"),
    ],
)
def test_a_weak_choice_gets_no_answer(flags: int) -> None:
    with pytest.raises(AuthenticationError):
        answered(flags)


@pytest.mark.parametrize("level", [CONNECT, PKT_INTEGRITY, PKT_PRIVACY])
def test_56_bits_are_taken_where_that_is_allowed(level: AuthenticationLevel) -> None:
    weak = ENOUGH & ~STRENGTH
    assert answered(weak | Flag.NTLMSSP_NEGOTIATE_56, ALICE_56, level=level).complete
    with pytest.raises(AuthenticationError, match="key of 56 bits"):
        answered(weak, ALICE_56, level=level)
    with pytest.raises(AuthenticationError, match="key of 128 bits"):
        answered(weak | Flag.NTLMSSP_NEGOTIATE_56, level=level)


def test_a_server_must_say_its_names() -> None:
    for pairs in (NAMED[:1], NAMED[1:], ()):
        with pytest.raises(AuthenticationError, match="does not say its name"):
            answered(ENOUGH, pairs=pairs)


def test_more_target_information_than_a_response_can_hold_is_refused() -> None:
    """It must come back with a few octets more."""
    for length in (65_450, 65_480):
        with pytest.raises(AuthenticationError, match="target information of"):
            answered(ENOUGH, pairs=(*NAMED, (77, bytes(length))))
    assert answered(ENOUGH, pairs=(*NAMED, (77, bytes(65_000)))).complete


@pytest.mark.parametrize("kind", [AvId.MsvAvTimestamp, AvId.MsvAvNbComputerName, 77])
def test_target_information_that_says_a_thing_twice_is_refused(kind: int) -> None:
    pairs = (*NAMED, (kind, bytes(8)), (kind, b"another8"))
    with pytest.raises(AuthenticationError, match="comes twice"):
        answered(ENOUGH, pairs=pairs)


# What a client sends.


def copying_client(challenge: bytes, pairs: Sequence[tuple[int, bytes]]) -> bytes:
    """The last message of one that knows the password, returns `pairs`, and makes no code."""
    seen = read_challenge(challenge)
    key = response_key(nt_hash(PASSWORD), "alice", "")
    proved = pack_client_challenge(bytes(8), NONCE, pairs)
    response = proof_of(key, seen.server_challenge, proved) + proved
    return pack_authenticate(Authenticate(seen.flags, b"", response, "", "alice", "", bytes(16), 0))


@pytest.mark.parametrize("at", [0, 4], ids=["first", "last"])
@pytest.mark.parametrize("value", [b"", b"long ago"], ids=["empty", "another"])
def test_nobody_shows_a_client_another_timestamp_than_the_server(
    accounts: TestAccounts, value: bytes, at: int
) -> None:
    """A client that believes the other of two, and returns both, would make no integrity code."""
    server = NtlmAcceptor(accounts)
    challenge = server.step(pack_negotiate(ENOUGH))
    pairs = list(read_challenge(challenge).target_info)
    pairs.insert(at, (AvId.MsvAvTimestamp, value))
    with pytest.raises(AuthenticationError, match="comes twice"):
        server.step(copying_client(challenge, pairs))
    assert not server.complete


def test_a_client_that_returns_what_it_got_logs_on(accounts: TestAccounts) -> None:
    """Without this the refusals above would prove nothing."""
    server = NtlmAcceptor(accounts)
    challenge = server.step(pack_negotiate(ENOUGH))
    server.step(copying_client(challenge, read_challenge(challenge).target_info))
    assert server.peer().name == "alice"


def test_a_name_that_a_clients_characters_lack_harms_nobody(accounts: TestAccounts) -> None:
    """Without Unicode the name is in an 8-bit character set."""
    server = NtlmAcceptor(accounts, NtlmSettings("東京"))
    asked = ENOUGH & ~Flag.NTLMSSP_NEGOTIATE_UNICODE | Flag.NTLM_NEGOTIATE_OEM
    challenge = server.step(pack_negotiate(asked))
    length, _, offset = struct.unpack_from("<HHI", challenge, 12)
    assert challenge[offset : offset + length] == b"??"
    assert dict(read_challenge(challenge).target_info)[AvId.MsvAvNbComputerName] == (
        "東京".encode("utf-16-le")
    )


@pytest.mark.parametrize("secret", ["", "00", NT_HASH[:30], f"{NT_HASH}00"])
def test_a_hash_of_another_length_is_nobodys(tmp_path: Path, secret: str) -> None:
    """Such a line of the accounts must not become a key that can be guessed."""
    path = tmp_path / "accounts"
    path.write_text(f"alice:1000:{'0' * 32}:{secret}:[U          ]:LCT-00000000\n")
    assert stored_hash(path, "alice", "") is None
