"""What objects tell of signatures and of messages by HTTP ([MC-MQAC] 3.17.4.1.48, 2.2.2.16)."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_der_x509_certificate

from rpcqm.base.errors import HResult
from rpcqm.binary.own_keys import create_key, load_key
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.names.format_name import FormatName
from rpcqm.testing import private_queue_manager
from tests.support.certificates import certificate_of
from tests.support.dcom.com_objects import (
    QUEUE,
    Objects,
    add_accounts,
    create_queue,
    octets,
    served_objects,
)
from tests.support.dcom.dcom_client import ENABLED, ComError, DcomClient
from tests.support.waiting import until

MACHINE = """
[[queue_manager]]
name = "here"
identifier = "aaaaaaaa-0000-0000-0000-000000000003"
"""
PLAIN = r".\private$\plain"
BY_HTTP = 'name = "{name}"\nhttp_port = 0\n'


def key_files(place: Path) -> bytes:
    """A signing key and its certificate, as files; the certificate in DER."""
    create_key(place / "key.pem")
    certificate = certificate_of(load_key(str(place / "key.pem")))
    text = load_der_x509_certificate(certificate).public_bytes(Encoding.PEM)
    (place / "key.crt").write_bytes(text)
    return certificate


@pytest.fixture(scope="module")
def certificate(place: Path) -> bytes:
    return key_files(place)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def signing(place: Path, certificate: bytes) -> Iterator[Objects]:
    """A queue manager whose certificate the directory knows as alice's."""
    directory = place / "directory.toml"
    directory.write_text(MACHINE)
    configuration = (
        f'name = "here"\ndirectory_file = "{directory}"\n{ENABLED}'
        f'[binary]\nsigning_key = "{place}/key.pem"\nsigning_certificate = "{place}/key.crt"\n'
    )
    with private_queue_manager((), configuration) as machine:
        with machine.client() as client:
            sid = add_accounts(client)
        encoded = base64.b64encode(certificate).decode()
        directory.write_text(
            f'{MACHINE}[[user]]\nname = "alice"\nsid = "{sid}"\ncertificates = ["{encoded}"]\n'
        )
        machine.restart()
        with machine.client() as client, DcomClient(machine.endpoint("epm")) as com:
            create_queue(client, QUEUE, QueueSettings(authenticate=True))
            create_queue(client, PLAIN)
            yield Objects(machine, com, client)


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-54-Send",
    "MQAC-IMSMQMessage4-12-IsAuthenticated",
    "MQAC-IMSMQMessage4-81-ReceivedAuthenticationLevel",
    "MQAC-IMSMQMessage4-90-IsAuthenticated2",
    "MQAC-element-MQMSGAUTHLEVEL",
    "MQAC-element-MQMSGAUTHENTICATION",
)
@pytest.mark.parametrize(("wanted", "level"), [(1, 5), (2, 1), (4, 3), (8, 5)])
def test_a_message_is_signed_as_its_sender_wants_it(
    signing: Objects, certificate: bytes, wanted: int, level: int
) -> None:
    message = signing.message()
    told = ("IsAuthenticated", "IsAuthenticated2", "ReceivedAuthenticationLevel")
    assert [signing.get(message, name) for name in told] == [0, False, 0]
    signing.put(message, "AuthLevel", wanted)
    signing.send(message, signing.destination())
    name = FormatName.parse("DIRECT=OS:" + QUEUE)
    with signing.client.open_reader(name, peek_only=True) as reader:
        read = reader.peek(0)
    assert (read.authentication_level, read.sender_certificate) == (level, certificate)
    received = signing.received()
    for each in (message, received):
        assert [signing.get(each, name) for name in told] == [1, True, level]
        assert signing.get(each, "SenderCertificate") == octets(certificate)
    assert signing.get(message, "Signature") == signing.get(received, "Signature")


@pytest.mark.conformance("MQAC-IMSMQMessage4-54-Send")
def test_an_unsigned_message_is_refused_where_signatures_are_wanted(signing: Objects) -> None:
    with pytest.raises(ComError) as refused:
        signing.send(signing.message(), signing.destination())
    assert refused.value.status is HResult.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED


@pytest.mark.conformance("MQAC-IMSMQMessage4-54-Send")
def test_nobody_signs_with_the_certificate_of_somebody_else(signing: Objects) -> None:
    message = signing.message()
    signing.put(message, "AuthLevel", 4)
    signing.put(message, "SenderCertificate", octets(b"another"))
    with pytest.raises(ComError) as refused:
        signing.send(message, signing.destination())
    assert refused.value.status is HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(
            name, marks=pytest.mark.conformance(f"MQAC-IMSMQMessage4-{opnum}-{name}"), id=name
        )
        for opnum, name in (
            (55, "AttachCurrentSecurityContext"),
            (93, "AttachCurrentSecurityContext2"),
        )
    ],
)
def test_what_was_attached_is_sent_where_no_certificate_is_set(
    signing: Objects, certificate: bytes, operation: str
) -> None:
    message, target = signing.message(), signing.destination("DIRECT=OS:" + PLAIN)
    signing.put(message, "SenderCertificate", octets(b"attached"))
    signing.com.call(message, operation)
    signing.put(message, "SenderCertificate", octets(b""))
    assert signing.get(message, "SenderId") == octets(b"")
    signing.send(message, target)
    assert signing.read(PLAIN).sender_certificate == b"attached"
    signing.com.call(message, operation)
    assert signing.get(message, "SenderCertificate") == octets(b"attached")
    fresh = signing.message()
    signing.com.call(fresh, operation)
    signing.send(fresh, target)
    assert signing.read(PLAIN).sender_certificate == certificate


# By HTTP


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Objects, Objects]]:
    """Two queue managers that can send to each other by HTTP."""
    with (
        served_objects(BY_HTTP.format(name="sender") + ENABLED) as sender,
        served_objects(BY_HTTP.format(name="receiver") + ENABLED) as receiver,
    ):
        yield sender, receiver


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-94-SoapEnvelope",
    "MQAC-IMSMQMessage4-95-CompoundMessage",
    "MQAC-IMSMQMessage4-96-SoapHeader",
    "MQAC-IMSMQMessage4-97-SoapBody",
    "MQAC-IMSMQMessage4-54-Send",
)
def test_elements_of_the_application_are_in_the_envelope_that_arrives(
    pair: tuple[Objects, Objects],
) -> None:
    sender, receiver = pair
    _, port = receiver.machine.endpoint("http")
    name = f"DIRECT=HTTP://127.0.0.1:{port}/msmq/private$/orders"
    message = sender.message()
    assert sender.get(message, "SoapEnvelope") == ""
    assert sender.get(message, "CompoundMessage") == octets(b"")
    sender.put(message, "Body", octets(b"content"))
    sender.put(message, "SoapHeader", '<who xmlns="urn:x">me</who>')
    sender.put(message, "SoapBody", "<what>this</what>")
    target = sender.destination(name)
    for _ in range(3):  # the third is written as those before
        sender.send(message, target)
    until(lambda: len(receiver.bodies()) == 3)
    for _ in range(2):
        receiver.read()
    parsed = FormatName.parse("DIRECT=OS:" + QUEUE)
    with receiver.client.open_reader(parsed, peek_only=True) as reader:
        read = reader.peek(0)
    received = receiver.received()
    envelope = receiver.get(received, "SoapEnvelope")
    assert envelope == read.soap_envelope
    assert '<who xmlns="urn:x">me</who></se:Header>' in read.soap_envelope
    assert "<se:Body><what>this</what></se:Body>" in read.soap_envelope
    assert receiver.get(received, "CompoundMessage") == octets(read.soap_compound_message)
    assert receiver.get(received, "Body") == octets(b"content")


@pytest.mark.conformance("MQAC-IMSMQMessage4-54-Send")
@pytest.mark.parametrize("name", ["SoapHeader", "SoapBody"])
@pytest.mark.parametrize("text", ["<open>", "</se:Header><x>", "<!DOCTYPE x><x/>", "&unknown;"])
def test_what_would_spoil_the_envelope_is_not_sent(
    pair: tuple[Objects, Objects], name: str, text: str
) -> None:
    sender, _ = pair
    message = sender.message()
    sender.put(message, name, text)
    with pytest.raises(ComError) as refused:
        sender.send(message, sender.destination())
    assert refused.value.status is HResult.MQ_ERROR_BAD_XML_FORMAT
    assert sender.bodies() == []
