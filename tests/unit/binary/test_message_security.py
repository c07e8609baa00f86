"""Who may send what, between queue managers ([MS-MQQB] 3.1.5.8.3, 3.1.7.1.4, 3.1.7.1.5)."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.directory_object import User
from rpcqm.adm.message import Message
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.binary.blobs import AES_PROVIDER, BASE_PROVIDER, ENHANCED_PROVIDER, encode_public_keys
from rpcqm.binary.caches import AgingCache
from rpcqm.binary.own_keys import OwnKeys
from rpcqm.codec.packet.enums import (
    HashAlgorithm,
    MessageAuthenticationLevel,
    MessageClass,
    PrivacyLevel,
)
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage
from rpcqm.codec.packet.patch import without_session_header
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import ConnectionStatus, QueueAccessType, QueuePrivacyLevel
from rpcqm.service.domain_accounts import DomainAccounts
from tests.support.binary.binary_network import Node, Simulation
from tests.support.certificates import certificate_of
from tests.support.queue_manager import MEMORY

ALICE, BOB = UUID(int=11), UUID(int=13)
SITE = UUID(int=21)
SID = "S-1-5-21-1-2-3-1001"
ORDERS = "DIRECT=OS:bob\\private$\\orders"
ADMIN = "DIRECT=OS:alice\\private$\\admin"


@lru_cache
def signing_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


@lru_cache
def encryption_key() -> RSAPrivateKey:
    return generate_private_key(65537, 1024)


def user() -> User:
    """The owner of the signing key's certificate, as the directory has him."""
    certificate = certificate_of(signing_key())
    digest = hashlib.md5(certificate, usedforsecurity=False).digest()
    packed = digest + bytes(16) + len(certificate).to_bytes(4, "little") + certificate
    return User(UUID(int=31), security_identifier=sid_bytes(SID), certificates=b"\1\0\0\0" + packed)


def directory() -> DirectoryContents:
    bob = QueueManager(BOB, computer_name="bob", site_identifier_list=[SITE])
    public = encryption_key().public_key()
    providers = (BASE_PROVIDER, ENHANCED_PROVIDER, AES_PROVIDER)
    bob.public_encryption_key_list = encode_public_keys(dict.fromkeys(providers, public))
    alice = QueueManager(ALICE, computer_name="alice", site_identifier_list=[SITE])
    return DirectoryContents(queue_managers=[alice, bob], users=[user()])


class Pair:
    def __init__(self, simulation: Simulation, bobs: DirectoryContents | None = None) -> None:
        self.simulation = simulation
        self.alice = simulation.node("alice", directory=directory())
        self.bob = simulation.node("bob", directory=bobs or directory())
        self.orders = self.bob.create()
        self.alice.create("admin")

    def sign(self) -> None:
        self.alice.keys = OwnKeys(signing_key(), certificate_of(signing_key()))
        self.alice.restart()

    def send(self, to: str = ORDERS, sid: str = "", **more: Any) -> None:
        """Send a message that asks for every acknowledgement, and let it arrive."""
        self.alice.send(
            to,
            b"content",
            identity=Identity("alice", sid) if sid else None,
            administration_queue_format_name=ADMIN,
            acknowledgements_requested=0x0F,
            **more,
        )
        self.simulation.advance(5_000)

    @property
    def arrived(self) -> list[bytes]:
        return self.bob.bodies()

    @property
    def acknowledged(self) -> list[int]:
        """The classes of the acknowledgements that have come back."""
        queue = self.alice.find("admin")
        message_at = self.alice.engine.positions.message_at
        keys = queue.message_position_list.page(None, 100)
        return [message_at(queue, key).attributes.message_class for key in keys]

    def restrict(self, sddl: str) -> None:
        self.orders.security = parse_sddl(sddl).encode()


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        yield simulation
        simulation.stop()


@pytest.fixture
def pair(simulation: Simulation) -> Pair:
    return Pair(simulation)


def private_name(node: Node) -> str:
    number = node.find("orders").private_queue_number
    return f"PRIVATE={node.engine.queue_manager.identifier}\\{number:08x}"


def level_of_arrived(pair: Pair) -> int:
    queue = pair.orders
    key = queue.message_position_list.first()
    assert key is not None
    return int(pair.bob.engine.positions.message_at(queue, key).attributes.authentication_level)


@pytest.mark.conformance(
    "MQQB-rule-3.1.7.1.4",
    "MQQB-rule-3.1.5.8.3",
    "MQMQ-packet-MQUSERSIGNCERTS",
    "MQMQ-packet-MQUSERSIGNCERT",
)
def test_a_signed_message_arrives_authenticated(pair: Pair) -> None:
    pair.sign()
    pair.orders.authentication = True
    pair.send(sid=SID)
    assert pair.arrived == [b"content"]
    assert level_of_arrived(pair) == MessageAuthenticationLevel.SIG20
    assert len(pair.bob.protocol.security.user_cert_cache) == 1


@pytest.mark.conformance("MQQB-rule-3.1.7.1.4")
@pytest.mark.parametrize(
    ("asked", "used"),
    [
        (HashAlgorithm.SHA1, HashAlgorithm.SHA1),
        (HashAlgorithm.SHA_256, HashAlgorithm.SHA_256),
        (HashAlgorithm.MD5, HashAlgorithm.SHA_512),
        (0, HashAlgorithm.SHA_512),
    ],
)
def test_a_message_is_signed_with_the_hash_that_it_asks_for(
    pair: Pair, asked: int, used: HashAlgorithm
) -> None:
    pair.sign()
    pair.send(hash_algorithm=asked)
    assert pair.arrived == [b"content"]
    assert level_of_arrived(pair) == MessageAuthenticationLevel.SIG20
    (key,) = pair.orders.message_position_list.page(None, 100)
    arrived = pair.bob.engine.positions.message_at(pair.orders, key)
    assert arrived.attributes.hash_algorithm == used


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_a_queue_that_wants_signatures_refuses_others(pair: Pair) -> None:
    pair.orders.authentication = True
    pair.send()
    assert pair.arrived == []
    assert pair.alice.unsent == 0


@pytest.mark.parametrize(("signed", "status"), [(True, ""), (False, "MQ_ERROR_MESSAGE_NOT_")])
def test_a_queue_that_wants_signatures_verifies_those_of_senders_here(
    pair: Pair, signed: bool, status: str
) -> None:
    """G72."""
    bob = pair.bob
    bob.keys = OwnKeys(signing_key(), certificate_of(signing_key()))
    bob.restart()
    queue = bob.find("orders")
    queue.authentication = True
    name = bob.engine.queues.format_name_of(queue)
    opened = bob.engine.opening.open_queue(name, QueueAccessType.SEND_ACCESS)
    identity = Identity("alice", SID)
    message = bob.engine.composer.compose(opened, MessageAttributes(body=b"content"), identity)
    if signed:
        message = Message(bob.protocol.security.protect(message, None))
    send = bob.engine.messages.enqueue_message_to_an_open_queue
    with pytest.raises(MQError, match=status) if status else nullcontext():
        send(opened, message)
    pair.simulation.advance(1_000)
    assert bob.bodies() == ([] if status else [b"content"])


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_a_certificate_that_nobody_has_registered_is_refused(simulation: Simulation) -> None:
    bobs = directory()
    bobs.users.clear()
    pair = Pair(simulation, bobs)
    pair.sign()
    pair.send(sid=SID)
    assert pair.arrived == []


def test_who_signs_has_the_groups_of_its_account_until_that_ends(pair: Pair) -> None:
    """A directory says which groups an account of its domain is in (G776)."""
    clerks, accounts = "S-1-5-21-1-2-3-1200", DomainAccounts("S-1-5-21-9-9-9")
    pair.bob.engine.sender_rights.signer_of = accounts.signer_of
    pair.restrict(f"O:BAD:(A;;0x4;;;{clerks})")
    pair.sign()
    pair.send(sid=SID)
    assert pair.arrived == []
    accounts.groups_of = lambda sid: frozenset({clerks} if sid == SID else ())
    pair.send(sid=SID)
    assert pair.arrived == [b"content"]
    accounts.end(SID)
    pair.send(sid=SID)
    assert pair.arrived == [b"content"]


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3", "MQQB-event-send_administration_acknowledgment")
@pytest.mark.parametrize(("insecure", "classes"), [(False, []), (True, [0x8004])])
def test_a_sender_without_the_right_is_refused_and_told_only_if_that_is_allowed(
    simulation: Simulation, insecure: bool, classes: list[int]
) -> None:
    pair = Pair(simulation)
    pair.bob.engine.settings.send_insecure_nacks = insecure
    pair.restrict(f"O:BAD:(A;;0x4;;;{SID})")
    pair.send(sid="S-1-5-21-1-2-3-1002")
    assert pair.arrived == []
    assert pair.acknowledged == classes
    pair.send(sid=SID)
    assert pair.arrived == [b"content"]


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_a_message_without_a_sender_is_anonymous(pair: Pair) -> None:
    pair.restrict(f"O:BAD:(A;;0x4;;;{SID})")
    pair.send()
    assert pair.arrived == []
    pair.restrict("O:BAD:(A;;0x4;;;AN)")
    pair.send()
    assert pair.arrived == [b"content"]


@pytest.mark.conformance(
    "MQQB-rule-3.1.7.1.5", "MQQB-rule-3.1.5.8.3", "MQQB-element-CachedSymmetricKey"
)
@pytest.mark.parametrize("level", [PrivacyLevel.BASE, PrivacyLevel.ENHANCED, PrivacyLevel.ADVANCED])
@pytest.mark.parametrize("signs", [False, True], ids=["unsigned", "signed"])
def test_a_body_travels_encrypted_and_is_stored_clear(
    pair: Pair, level: PrivacyLevel, signs: bool
) -> None:
    pair.bob.keys = OwnKeys(encryption_key=encryption_key())
    pair.bob.restart()
    if signs:
        pair.sign()
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    pair.orders = pair.bob.find()
    pair.orders.privacy_level = QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY
    for _ in range(2):
        pair.send(private_name(pair.bob), sid=SID, privacy_level=level)
    assert pair.arrived == [b"content"] * 2
    assert not any(b"content" in packet for packet in travelled)
    assert len(pair.bob.protocol.security.receive_symmetric_key_cache) == 1
    security, base = pair.alice.protocol.security, level is PrivacyLevel.BASE
    assert len(security.send_symmetric_key_cache) == int(not base)
    assert len(security.send_base_symmetric_key_cache) == int(base)


@pytest.mark.conformance(
    "MQQB-timer-send_base_symmetric_key_cache_cleanup",
    "MQQB-timer-send_symmetric_key_cache_cleanup",
    "MQQB-timer-receive_symmetric_key_cache_cleanup",
)
@pytest.mark.parametrize("level", [PrivacyLevel.BASE, PrivacyLevel.ADVANCED])
def test_a_key_is_used_for_ten_minutes_and_forgotten_soon_after(
    pair: Pair, level: PrivacyLevel
) -> None:
    pair.bob.keys = OwnKeys(encryption_key=encryption_key())
    pair.bob.restart()
    sends, receives = pair.alice.protocol.security, pair.bob.protocol.security
    pair.send(private_name(pair.bob), privacy_level=level)
    for minutes, kept in ((9, 1), (3, 0)):
        pair.simulation.advance(minutes * 60_000)
        sent = len(sends.send_symmetric_key_cache) + len(sends.send_base_symmetric_key_cache)
        assert (sent, len(receives.receive_symmetric_key_cache)) == (kept, kept)


@pytest.mark.conformance("MQQB-timer-user_cert_cache_cleanup")
def test_a_certificate_is_believed_for_twenty_minutes_and_read_again_soon_after(
    pair: Pair,
) -> None:
    pair.sign()
    believed = pair.bob.protocol.security.user_cert_cache
    pair.send(sid=SID)
    for minutes, kept in ((19, 1), (3, 0)):
        pair.simulation.advance(minutes * 60_000)
        assert len(believed) == kept


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(
            name, size, id=name, marks=pytest.mark.conformance(f"MQQB-timer-{name}_cleanup")
        )
        for name, size in (
            ("receive_symmetric_key_cache", 127),
            ("send_symmetric_key_cache", 53),
            ("send_base_symmetric_key_cache", 53),
            ("user_cert_cache", 53),
        )
    ],
)
def test_a_cache_takes_so_many_entries_and_gives_up_half_of_them_for_one_more(
    pair: Pair, name: str, size: int
) -> None:
    cache: AgingCache[object, object] = getattr(pair.bob.protocol.security, name)
    for number in range(size):
        cache.add(number, number)
    assert len(cache) == size
    cache.add(size, size)
    assert len(cache) == size - size // 2 + 1
    assert cache.get(size // 2 - 1) is None
    assert cache.get(size // 2) == size // 2


def test_whoever_records_either_side_has_the_body_in_clear(pair: Pair) -> None:
    pair.bob.keys = OwnKeys(encryption_key=encryption_key())
    pair.bob.restart()
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    pair.send(private_name(pair.bob), sid=SID, privacy_level=PrivacyLevel.ADVANCED)
    (sealed,) = (each for each in map(without_session_header, travelled) if is_encrypted(each))
    alice, bob = pair.alice.protocol.security, pair.bob.protocol.security
    for clear in (alice.in_clear(sealed, sent=True), bob.in_clear(sealed, sent=False)):
        assert PacketMessage(clear).body == b"content"
        assert not is_encrypted(clear)
    assert bob.in_clear(sealed, sent=True) == sealed, "it was not bob who sent it"


@pytest.mark.conformance("MQMQ-packet-MessagePropertiesHeader", "MQQB-rule-3.1.7.1.5")
@pytest.mark.parametrize("number", [0x0100, MessageClass.MQMSG_CLASS_ACK_RECEIVE])
def test_a_private_body_travels_encrypted_whatever_its_class(pair: Pair, number: int) -> None:
    pair.bob.keys = OwnKeys(encryption_key=encryption_key())
    pair.bob.restart()
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    level = PrivacyLevel.ADVANCED
    pair.send(private_name(pair.bob), privacy_level=level, message_class=number)
    assert pair.arrived == [b"content"]
    assert not any(b"content" in packet for packet in travelled)


@pytest.mark.conformance("MQQB-rule-3.1.7.1.4")
def test_a_message_of_an_application_class_is_signed(pair: Pair) -> None:
    pair.sign()
    pair.orders.authentication = True
    pair.send(sid=SID, message_class=0x0100)
    assert pair.arrived == [b"content"]


@pytest.mark.conformance("MQMQ-packet-MessagePropertiesHeader")
@pytest.mark.parametrize("header", [False, True], ids=["nobody", "sender"])
def test_an_unknown_privacy_level_is_no_authentication(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, header: bool
) -> None:
    """G170."""
    pair.bob.engine.settings.send_insecure_nacks = True
    monkeypatch.setattr(pair.alice.protocol.security, "protect", lambda message, _: message.packet)
    pair.send(sid=SID if header else "", privacy_level=7)
    assert pair.arrived == []
    assert pair.acknowledged == [MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE]


def is_encrypted(packet: bytes) -> bool:
    if packet[2] & 0x08:
        return False
    header = PacketMessage(packet).security_header
    return header is not None and bool(header.flags.EB)


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_an_encrypted_body_for_which_there_is_no_key_is_refused(pair: Pair) -> None:
    pair.send(private_name(pair.bob), privacy_level=PrivacyLevel.ADVANCED)
    assert pair.arrived == []
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_what_cannot_be_decrypted_is_refused_for_that_whoever_has_signed_it(
    simulation: Simulation,
) -> None:
    """The signature is that of the body in clear (G542)."""
    bobs = directory()
    bobs.users.clear()
    pair = Pair(simulation, bobs)
    pair.sign()
    pair.bob.engine.settings.send_insecure_nacks = True
    pair.send(private_name(pair.bob), sid=SID, privacy_level=PrivacyLevel.ADVANCED)
    assert pair.arrived == []
    assert pair.acknowledged == [MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION]


@pytest.mark.conformance("MQQB-rule-3.1.7.1.5", "MQQB-rule-3.1.7.1.5.1")
@pytest.mark.parametrize("wanted", [True, False], ids=["kept", "not kept"])
@pytest.mark.parametrize("transactional", [False, True], ids=["recoverable", "transactional"])
def test_what_cannot_be_encrypted_is_not_sent_but_kept(
    pair: Pair, transactional: bool, wanted: bool
) -> None:
    pair.send(
        transactional=transactional,
        privacy_level=PrivacyLevel.ADVANCED,
        negative_journaling_requested=wanted,
    )
    assert (pair.arrived, pair.alice.unsent) == ([], 0)
    assert pair.acknowledged == [MessageClass.MQMSG_CLASS_NACK_COULD_NOT_ENCRYPT]
    kept = [b"content"] if wanted else []
    assert pair.alice.bodies("system$;deadxact") == (kept if transactional else [])
    assert pair.alice.bodies("system$;deadletter") == ([] if transactional else kept)
    entry = pair.alice.outgoing(ORDERS).connection_history[-1]
    assert entry.status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
    assert (entry.error, entry.address_list) == (HResult.MQ_ERROR, (pair.bob.address,))


@pytest.mark.conformance("MQQB-rule-3.1.7.1.5.1")
def test_what_is_behind_a_message_that_cannot_be_encrypted_arrives_in_order(pair: Pair) -> None:
    stream = "DIRECT=OS:bob\\private$\\stream"
    pair.bob.create("stream", transactional=True)
    for body, level in ((b"1", 0), (b"secret", PrivacyLevel.ADVANCED), (b"2", 0), (b"3", 0)):
        pair.alice.send_later(stream, body, True, privacy_level=level)
    pair.alice.settle()
    pair.simulation.advance(60_000)
    assert pair.bob.bodies("stream") == [b"1", b"2", b"3"]
    assert pair.alice.unsent == 0
