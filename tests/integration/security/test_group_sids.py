"""Who an unsigned message may claim to come from, on port 1801 ([MS-MQQB] 3.1.5.8.3)."""

from collections.abc import Iterator
from typing import Any

import pytest

from rpcqm.base.identity import EVERYONE
from rpcqm.codec.packet.enums import SenderIdentifierType
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.testing import private_queue_manager
from tests.support.binary.stranger import Stranger, Victim, with_security_flags

ACCOUNT = "S-1-5-21-1-2-3-1001"
GROUPS = [
    "S-1-5-32-544",
    EVERYONE,
    "S-1-5-11",
    "S-1-5-18",
    "S-1-5-5-0-999",
    "S-1-5-21-1-2-3-512",
]
AUTHENTICATED_BY_20, AUTHENTICATED = 0x0300, 0x10


@pytest.fixture(scope="module", params=["auto", "claimed"])
def setting(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def victim(setting: str) -> Iterator[Victim]:
    configuration = f'[binary]\nunsigned_senders = "{setting}"\n'
    with private_queue_manager(configuration=configuration) as queue_manager:
        yield Victim(queue_manager)


@pytest.fixture
def stranger(victim: Victim) -> Iterator[Stranger]:
    with Stranger(victim.address) as stranger:
        yield stranger


def claiming(sid: bytes) -> dict[str, Any]:
    return {"sender_identifier_type": SenderIdentifierType.SID, "sender_identifier": sid}


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_a_group_is_no_sender(victim: Victim, stranger: Stranger) -> None:
    allowed = "".join(f"(A;;0x4;;;{sid})" for sid in GROUPS if sid != EVERYONE)
    name = victim.create("of-groups", "--sddl", f"O:BAD:(A;;GA;;;BA){allowed}")
    for sid in GROUPS:
        stranger.send(name, body=sid.encode(), **claiming(sid_bytes(sid)))
    victim.await_all(stranger)
    assert victim.bodies(name) == []


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_an_account_is_believed_only_where_the_operator_wants_that(
    victim: Victim, stranger: Stranger, setting: str
) -> None:
    name = victim.create("of-one", "--sddl", f"O:BAD:(A;;GA;;;BA)(A;;0x4;;;{ACCOUNT})")
    stranger.send(name, body=b"claimed", **claiming(sid_bytes(ACCOUNT)))
    stranger.send(name, body=b"nobody")
    victim.await_all(stranger)
    assert victim.bodies(name) == ([b"claimed"] if setting == "claimed" else [])


def test_a_sender_may_be_anonymous_where_anonymous_may_send(
    victim: Victim, stranger: Stranger, setting: str
) -> None:
    name = victim.create("of-anybody", "--sddl", "O:BAD:(A;;GA;;;BA)(A;;0x4;;;AN)")
    stranger.send(name, body=b"none")
    stranger.send(name, body=b"claimed", **claiming(sid_bytes(ACCOUNT)))
    victim.await_all(stranger)
    believed = [b"none"] if setting == "claimed" else [b"none", b"claimed"]
    assert victim.bodies(name) == believed


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_a_queue_manager_that_says_so_is_everyone_where_the_operator_believes_it(
    victim: Victim, stranger: Stranger, setting: str
) -> None:
    name = victim.create("of-all", "--sddl", "O:BAD:(A;;GA;;;BA)(A;;0x4;;;WD)")
    claim: dict[str, Any] = {
        "sender_identifier_type": SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER,
        "sender_identifier": stranger.guid.bytes_le,
    }
    stranger.send(name, body=b"a queue manager", **claim)
    stranger.send(name, body=b"nobody")
    victim.await_all(stranger)
    assert victim.bodies(name) == ([b"a queue manager"] if setting == "claimed" else [])


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_a_damaged_sid_is_denied_and_the_session_goes_on(
    victim: Victim, stranger: Stranger
) -> None:
    name, whole = victim.create("damaged"), sid_bytes(ACCOUNT)
    for damaged in (b"\x01", bytes(28), whole[:-4], whole + bytes(4), b"\x02" * 28):
        packet = stranger.message(name, body=b"damaged", **claiming(damaged))
        stranger.send_packet(packet)
        stranger.send(name, body=b"good")
        stranger.send_packet(packet)
    victim.await_all(stranger)
    assert victim.bodies(name) == [b"good"] * 5


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_nobody_says_of_himself_that_he_is_authenticated(
    victim: Victim, stranger: Stranger
) -> None:
    name = victim.create("forged", "--sddl", f"O:BAD:(A;;GA;;;BA)(A;;0x4;;;{ACCOUNT})(A;;0x4;;;AN)")
    packet = stranger.message(name, body=b"forged", **claiming(sid_bytes(ACCOUNT)))
    flags = SenderIdentifierType.SID | AUTHENTICATED | AUTHENTICATED_BY_20
    stranger.send_packet(with_security_flags(packet, flags))
    message = victim.receive(name)
    header = message.security_header
    assert header is not None
    assert (message.body, message.authentication_level) == (b"forged", 0)
    assert (header.flags.AS, header.flags.AU) == (0, 0)
