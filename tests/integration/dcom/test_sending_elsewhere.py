"""Send by objects to another machine, by the binary protocol and by HTTP ([MC-MQAC] 3.17.4.1.48).

Two services share a static directory, in which alice's certificate is that of the one that signs,
and the other has a key that bodies are encrypted for.
"""

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_der_x509_certificate

from rpcqm.base.errors import HResult
from rpcqm.binary import ciphers
from rpcqm.binary.own_keys import create_key, load_key
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import EncryptionAlgorithm, PrivacyLevel
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.certificates import certificate_of
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import (
    ADMINISTRATOR,
    QUEUE,
    STREAM,
    Objects,
    add_accounts,
    create_queue,
    octets,
)
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient, Reference
from tests.support.ports import reserved_ports
from tests.support.qm.directories import network_directory
from tests.support.waiting import until

SEND = pytest.mark.conformance("MQAC-IMSMQMessage4-54-Send")
HERE, THERE = UUID(int=0xA), UUID(int=0xB)
SECRETS, PUBLIC_PATH = UUID(int=0x5EC), r"there\secrets"
PLAIN = r".\private$\plain"
DIRECT = r"DIRECT=OS:there\private$\orders"
CONNECTOR = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
TOLD = ("IsAuthenticated", "IsAuthenticated2", "ReceivedAuthenticationLevel")


@dataclass
class Pair:
    """Who sends, who receives, and what the directory says of them."""

    here: Objects
    there: Objects
    alice: str
    certificate: bytes
    public_key: RSAPublicKey

    @property
    def url(self) -> str:
        _, port = self.there.machine.endpoint("http")
        return f"DIRECT=HTTP://127.0.0.1:{port}/msmq/private$/orders"

    def arrived(self, count: int = 1, path: str = QUEUE) -> None:
        """Wait until so many messages are in a queue there."""
        until(lambda: len(self.there.bodies(path)) == count)

    def peeked(self, path: str = QUEUE) -> ReceivedMessage:
        """The first message of a queue there, once it has come, as RemoteRead tells it."""
        self.arrived(path=path)
        name = FormatName.parse("DIRECT=OS:" + path)
        with self.there.client.open_reader(name, peek_only=True) as reader:
            return reader.peek(0)


def key_of(place: Path, name: str) -> bytes:
    """A key and its certificate, as files; the certificate in DER."""
    create_key(place / f"{name}.pem")
    certificate = certificate_of(load_key(str(place / f"{name}.pem")))
    text = load_der_x509_certificate(certificate).public_bytes(Encoding.PEM)
    (place / f"{name}.crt").write_bytes(text)
    return certificate


def configuration(place: Path, name: str, more: str) -> str:
    return (
        f'name = "{name}"\nhttp_port = 0\ndirectory_file = "{place}/directory.toml"\n{ENABLED}'
        f"[binary]\nretry_milliseconds = 100\n{more}"
    )


def machines(line: str) -> str:
    """The directory file, with the key that bodies for `there` are encrypted with."""
    sites = {"here": ["Berlin"], "there": ["Berlin"]}
    identified = {"here": HERE, "there": THERE}
    wants = "privacy = 'body'\nauthenticate = true\nsddl = 'D:(A;;GA;;;WD)'\n"
    more = {"there": line, PUBLIC_PATH: wants}
    return network_directory(sites, {PUBLIC_PATH: SECRETS}, more, identified)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    place = tmp_path_factory.mktemp("pair")
    certificate = key_of(place, "here")
    spare = PrivateQueueManager(place / "none")
    line = spare.run("config", "key", str(place / "there.pem"), "--create").stdout
    directory = place / "directory.toml"
    directory.write_text(machines(line))
    ports = reserved_ports(2)
    peers = f'peers = "here=127.0.0.1:{ports[0]}, there=127.0.0.1:{ports[1]}"\n'
    signing = f'signing_key = "{place}/here.pem"\nsigning_certificate = "{place}/here.crt"\n'
    decrypting = f'encryption_key = "{place}/there.pem"\n'
    with ExitStack() as stack:
        here, there = (
            stack.enter_context(
                private_queue_manager(
                    ("--binary-port", str(port)), configuration(place, name, peers + more)
                )
            )
            for port, name, more in zip(
                ports, ("here", "there"), (signing, decrypting), strict=True
            )
        )
        with here.client() as client:
            sid = add_accounts(client)
        encoded = base64.b64encode(certificate).decode()
        user = f'[[user]]\nname = "alice"\nsid = "{sid}"\ncertificates = ["{encoded}"]\n'
        directory.write_text(machines(line) + user)
        here.restart()
        there.restart()
        with there.client() as client:
            add_accounts(client)
        key = load_key(str(place / "there.pem")).public_key()
        yield Pair(objects_of(here, stack), objects_of(there, stack), sid, certificate, key)


def objects_of(machine: PrivateQueueManager, stack: ExitStack) -> Objects:
    client = stack.enter_context(machine.client())
    create_queue(client, QUEUE)
    create_queue(client, PLAIN)
    create_queue(client, STREAM, QueueSettings(transactional=True))
    return Objects(machine, stack.enter_context(DcomClient(machine.endpoint("epm"))), client)


def message_with(objects: Objects, **properties: object) -> Reference:
    message = objects.message()
    for name, value in properties.items():
        objects.put(message, name, value)
    return message


def refusal(objects: Objects, message: Reference, to: str) -> HResult | int:
    with pytest.raises(ComError) as refused:
        objects.send(message, objects.destination(to))
    return refused.value.status


def signs(objects: Objects, message: Reference) -> list[object]:
    return [objects.get(message, name) for name in TOLD]


# By the binary protocol


@SEND
def test_a_message_for_another_machine_is_read_there(pair: Pair) -> None:
    body = Variant(VARENUM.VT_BSTR, "across")
    message = message_with(pair.here, Body=body, Label="far", AppSpecific=7)
    pair.here.send(message, pair.here.destination(DIRECT))
    read = pair.peeked()
    assert (read.label, read.application_tag) == ("far", 7)
    assert read.sender_identifier == sid_bytes(pair.alice)
    assert read.source_machine_identifier == HERE
    assert pair.here.get(message, "Id") == octets(read.identifier.encode())
    received = pair.there.received()
    assert pair.there.get(received, "Body") == body
    for name in ("Id", "Label", "AppSpecific", "SenderId", "SentTime"):
        assert pair.there.get(received, name) == pair.here.get(message, name)


@SEND
def test_a_transaction_reaches_another_machine_as_a_whole(pair: Pair) -> None:
    here, there = pair.here, pair.there
    dispenser = here.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    transaction = here.com.call(dispenser, "BeginTransaction")
    target = here.destination(r"DIRECT=OS:there\private$\stream")
    for label in ("one", "two"):
        message = message_with(here, Label=label)
        here.send(message, target, Variant(VARENUM.VT_DISPATCH, transaction))
    assert there.bodies(STREAM) == []
    here.com.call(transaction, "Commit", None, None, None)
    pair.arrived(2, STREAM)
    for label, first in (("one", True), ("two", False)):
        received = there.received(STREAM)
        assert there.get(received, "Label") == label
        places = [there.get(received, f"Is{name}InTransaction2") for name in ("First", "Last")]
        assert places == [first, not first]


@SEND
def test_what_the_binary_protocol_has_brought_is_received_by_objects(pair: Pair) -> None:
    with pair.here.client.open_sender(FormatName.parse(DIRECT)) as sender:
        sender.send(OutgoingMessage(b"brought", label="far"))
    pair.arrived()
    received = pair.there.received()
    assert pair.there.get(received, "Body") == octets(b"brought")
    assert pair.there.get(received, "Label") == "far"


@SEND
@pytest.mark.parametrize(("wanted", "level"), [(1, 5), (2, 1), (4, 3), (8, 5)])
def test_the_other_machine_checks_who_has_signed(pair: Pair, wanted: int, level: int) -> None:
    message = message_with(pair.here, AuthLevel=wanted, Body=octets(b"signed"))
    pair.here.send(message, pair.here.destination(DIRECT))
    assert pair.peeked().authentication_level == level
    received = pair.there.received()
    assert signs(pair.there, received) == [1, True, level]
    assert pair.there.get(received, "SenderCertificate") == octets(pair.certificate)
    assert pair.there.get(received, "Signature") == pair.here.get(message, "Signature")


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-54-Send",
    "MQAC-IMSMQMessage4-9-PrivLevel",
    "MQAC-element-MQMSGPRIVLEVEL",
)
@pytest.mark.parametrize("level", [1, 3])
def test_a_private_body_is_encrypted_for_the_key_of_the_directory(pair: Pair, level: int) -> None:
    """The queue takes what came encrypted and signed, and nothing else."""
    here = pair.here
    message = message_with(here, PrivLevel=level, AuthLevel=8, Body=octets(b"secret"))
    here.send(message, here.destination(f"PUBLIC={SECRETS}"))
    read = pair.peeked(PUBLIC_PATH)
    assert (read.body, read.privacy_level) == (b"secret", level)
    received = pair.there.received(PUBLIC_PATH)
    assert pair.there.get(received, "Body") == octets(b"secret")
    assert pair.there.get(received, "PrivLevel") == level
    assert refusal(here, message, DIRECT) is HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-54-Send", "MQAC-IMSMQMessage4-63-DestinationSymmetricKey"
)
def test_a_body_that_a_connector_has_encrypted_is_read_by_its_receiver(pair: Pair) -> None:
    algorithm = EncryptionAlgorithm.RC4
    key, blob = ciphers.new_key(pair.public_key, PrivacyLevel.ENHANCED, algorithm)
    message = message_with(
        pair.here,
        ConnectorTypeGuid=CONNECTOR,
        DestinationSymmetricKey=octets(blob),
        PrivLevel=3,
        EncryptAlgorithm=int(algorithm),
        Body=octets(ciphers.encrypt(b"my own secret", key, algorithm)),
    )
    pair.here.send(message, pair.here.destination(pair.there.private_name()))
    read = pair.peeked()
    assert (read.body, read.privacy_level) == (b"my own secret", 3)
    pair.there.received()
    pair.here.put(message, "AuthLevel", 4)
    name = pair.there.private_name()
    assert refusal(pair.here, message, name) is HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX


# By HTTP


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-54-Send",
    "MQAC-element-MQMSGAUTHLEVEL",
    "MQAC-element-MQMSGAUTHENTICATION",
    "MQSRM-rule-3.1.7.2.4",
)
@pytest.mark.parametrize("wanted", [1, 2, 4, 8])
@pytest.mark.parametrize(
    "more",
    [
        {"Body": octets(b"signed"), "Extension": octets(b"more")},
        {"Body": octets(b"signed"), "HashAlgorithm": 0x8003},
        {"Extension": octets(b"alone")},
        {},
    ],
    ids=["both", "md5", "extension", "nothing"],
)
def test_a_message_by_http_has_an_xml_signature(
    pair: Pair, wanted: int, more: dict[str, object]
) -> None:
    here, there = pair.here, pair.there
    message, target = message_with(here, AuthLevel=wanted, **more), here.destination(pair.url)
    for _ in range(3):  # the third is written as those before
        here.send(message, target)
    pair.arrived(3)
    assert signs(here, message) == [1, True, 9]
    for _ in range(3):
        received = there.received()
        assert signs(there, received) == [1, True, 9]
        assert there.get(received, "SenderCertificate") == octets(pair.certificate)
        assert there.get(received, "SenderId") == octets(sid_bytes(pair.alice))
        digest = "md5" if "HashAlgorithm" in more else "sha1"
        assert f"xmldsig#{digest}" in str(there.get(received, "SoapEnvelope"))
        for name, value in more.items():
            assert there.get(received, name) == value


@SEND
def test_an_unsigned_message_by_http_is_nobodys(pair: Pair) -> None:
    message = message_with(pair.here, Body=octets(b"unsigned"))
    pair.here.send(message, pair.here.destination(pair.url))
    pair.arrived()
    received = pair.there.received()
    assert signs(pair.there, received) == [0, False, 0]
    assert "Signature" not in str(pair.there.get(received, "SoapEnvelope"))
    assert pair.there.get(received, "SenderId") == octets(b"")


@SEND
def test_several_queues_get_the_signature_of_their_way(pair: Pair) -> None:
    here, there = pair.here, pair.there
    here.empty()
    names = f"{pair.url},DIRECT=OS:there\\private$\\plain,DIRECT=OS:{QUEUE},DIRECT=OS:{PLAIN}"
    for wanted in (2, 8):
        message = message_with(here, AuthLevel=wanted, Body=octets(b"for all"))
        here.send(message, here.destination(names))
        pair.arrived()
        pair.arrived(path=PLAIN)
        for objects, path, level in (
            (there, QUEUE, 9),
            (there, PLAIN, 5),
            (here, QUEUE, 5),
            (here, PLAIN, 5),
        ):
            received = objects.received(path)
            assert signs(objects, received) == [1, True, level]
            assert objects.get(received, "Body") == octets(b"for all")


@SEND
@pytest.mark.parametrize("way", ["boss", "nameless"])
def test_nobody_is_taken_for_the_owner_of_the_certificate(pair: Pair, way: str) -> None:
    """By HTTP the certificate alone says who has sent a message."""
    wanted = {"AuthLevel": 1, "SenderCertificate": octets(pair.certificate)}
    if way == "nameless":
        message = message_with(pair.here, SenderIdType=0, **wanted)
        assert refusal(pair.here, message, pair.url) is HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX
        return
    with DcomClient(pair.here.machine.endpoint("epm"), ADMINISTRATOR) as com:
        boss = Objects(pair.here.machine, com, pair.here.client)
        message = message_with(boss, **wanted)
        assert refusal(boss, message, pair.url) is HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX


# Whose certificate it is


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-54-Send",
    "MQAC-IMSMQMessage4-55-AttachCurrentSecurityContext",
    "MQAC-IMSMQMessage4-49-SenderCertificate",
)
def test_who_sends_a_message_on_signs_it_himself(pair: Pair) -> None:
    here = pair.here
    plain = here.destination("DIRECT=OS:" + PLAIN)
    here.send(message_with(here, SenderCertificate=octets(b"a stranger's")), plain)
    received = here.received(PLAIN)
    assert here.get(received, "SenderCertificate") == octets(b"a stranger's")
    here.com.call(received, "AttachCurrentSecurityContext")
    assert here.get(received, "SenderCertificate") == octets(b"a stranger's")
    here.put(received, "AuthLevel", 4)
    here.send(received, plain)
    signed = here.received(PLAIN)
    assert signs(here, signed) == [1, True, 3]
    assert here.get(signed, "SenderCertificate") == octets(pair.certificate)


@SEND
def test_a_connector_gets_the_certificate_of_the_sender_that_it_names(pair: Pair) -> None:
    with DcomClient(pair.here.machine.endpoint("epm"), ADMINISTRATOR) as com:
        boss = Objects(pair.here.machine, com, pair.here.client)
        more = {"ConnectorTypeGuid": CONNECTOR, "SenderId": octets(sid_bytes(pair.alice))}
        for named, certificate in (({}, b""), (more, pair.certificate)):
            message = message_with(boss, **named)
            boss.send(message, boss.destination("DIRECT=OS:" + PLAIN))
            received = boss.received(PLAIN)
            assert boss.get(received, "SenderCertificate") == octets(certificate)
