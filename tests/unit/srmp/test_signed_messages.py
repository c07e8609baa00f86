"""What signatures change for messages that come by HTTP ([MC-MQSRM] 3.1.5.1.6.1, .12)."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.directory_object import User
from rpcqm.codec.packet.enums import MessageAuthenticationLevel
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.sddl import parse_sddl
from tests.support.certificates import certificate_of
from tests.support.srmp.srmp_door import HERE, PORT, RECEIPTS, SRMP, STREAM, WITH_HTTP, Door, msmq
from tests.support.srmp.srmp_text import SOURCE, durable, in_stream

ALICE = "S-1-5-21-1-2-3-1001"
ONLY_ALICE = parse_sddl(f"O:BAD:(A;;0xf003f;;;{ALICE})").encode()
NEGATIVE = (
    f"<commitmentReceiptRequest><sendTo>{RECEIPTS}</sendTo><negativeOnly/>"
    "</commitmentReceiptRequest>"
)
DELIVERY = "<deliveryReceiptRequest><sendTo>{}</sendTo></deliveryReceiptRequest>"
_XML = "http://www.w3.org/2000/02/xmldsig#"

pytestmark = pytest.mark.conformance("MQSRM-rule-3.1.5.1.6.1", "MQSRM-rule-3.1.5.1.12")


@cache
def key(_: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 1024)


def users() -> DirectoryContents:
    """Alice, and her certificate."""
    certificate = certificate_of(key("alice"))
    digest = hashlib.md5(certificate, usedforsecurity=False).digest()
    packed = digest + bytes(16) + len(certificate).to_bytes(4, "little") + certificate
    sid = Sid.parse(ALICE).encode()
    alice = User(UUID(int=31), sid, [digest], b"\1\0\0\0" + packed)
    return DirectoryContents(users=[User(UUID(int=30)), alice])


@pytest.fixture
def door(directory: Path) -> Iterator[Door]:
    door = Door(directory, SRMP, replace(WITH_HTTP, directory=users, http_port=PORT))
    yield door
    door.stop()


def signature(body: bytes, signer: str = "alice", certificate: str | None = "alice") -> str:
    """<Signature> over a body, written without the product."""
    digest = base64.b64encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()
    info = (
        f'<SignedInfo><SignatureMethod Algorithm="{_XML}rsa-sha1"/>'
        f'<Reference URI="cid:body@{SOURCE}"><DigestMethod Algorithm="{_XML}sha1"/>'
        f"<DigestValue>{digest}</DigestValue></Reference></SignedInfo>"
    )
    value = base64.b64encode(key(signer).sign(info.encode(), PKCS1v15(), SHA1())).decode()
    known = ""
    if certificate is not None:
        text = base64.b64encode(certificate_of(key(certificate))).decode()
        known = f"<KeyInfo><X509Data><X509Certificate>{text}</X509Certificate></X509Data></KeyInfo>"
    return (
        f'<Signature xmlns="{_XML}">{info}<SignatureValue>{value}</SignatureValue>'
        f"{known}</Signature>"
    )


def test_who_has_signed_has_the_rights_of_the_certificates_user(door: Door) -> None:
    door.queue().security = ONLY_ALICE
    assert door.send() == 200
    assert door.send(receipt=signature(b"content", "mallory", "mallory")) == 200
    assert door.contents() == []
    assert door.send(receipt=signature(b"content")) == 200
    assert door.contents() == [b"content"]


def test_a_queue_of_signed_messages_takes_them_from_known_users(door: Door) -> None:
    door.queue().authentication = True
    for unproved in ("", signature(b"content", "mallory", "mallory"), signature(b"content", "x")):
        assert door.send(receipt=unproved) == 200
        assert door.send(receipt=signature(b"content", certificate=None)) == 200
    assert door.contents() == []
    assert door.send(receipt=signature(b"content")) == 200
    assert door.contents() == [b"content"]


def test_readers_are_told_who_has_signed(door: Door) -> None:
    door.send(services=durable(), receipt=signature(b"content"))
    door.send(services=durable(), receipt=signature(b"content", "mallory", "mallory"))
    door.settle()
    door.restart()
    proved, unproved = door.messages()
    assert proved.authentication_level == MessageAuthenticationLevel.XMLSIG
    assert str(Sid.decode(proved.sender_identifier)) == ALICE
    assert proved.sender_certificate == certificate_of(key("alice"))
    assert not unproved.authentication_level
    assert unproved.sender_identifier == b""


@pytest.mark.parametrize("wrong", [signature(b"another"), signature(b"content", "mallory")])
def test_a_wrong_signature_is_refused_and_its_sender_is_told(door: Door, wrong: str) -> None:
    assert door.send(services=NEGATIVE, ordinal=5, msmq=msmq(), receipt=wrong) == 200
    door.settle()
    assert door.contents() == []
    (receipt,) = door.receipts
    assert receipt.commitment_receipt is not None
    assert not receipt.commitment_receipt.positive
    assert door.send(ordinal=5, msmq=msmq()) == 200
    assert door.contents() == [b"content"]


def test_a_signature_that_cannot_be_checked_hinders_nothing(door: Door) -> None:
    assert door.send(receipt=signature(b"content", certificate=None)) == 200
    (message,) = door.messages()
    assert not message.authentication_level


def test_a_wrong_signature_in_a_stream_does_not_stop_it(door: Door) -> None:
    for number, more in ((1, ""), (2, signature(b"another")), (3, "")):
        url = RECEIPTS if number == 1 else ""
        stream = in_stream(SOURCE, number, url)
        elements = {"stream": stream, "receipt": more, "msmq": msmq(), "ordinal": number}
        assert door.send(STREAM, b"%d" % number, **elements) == 200
    assert door.contents("stream") == [b"1", b"3"]


def test_what_a_message_asks_for_is_not_signed(door: Door) -> None:
    door.create(r"private$\hers")
    door.queue("hers").security = ONLY_ALICE
    for url in (f"{HERE}/hers", "http://127.0.0.1:9/msmq/private$/trap"):
        door.send(services=durable(DELIVERY.format(url)), receipt=signature(b"content"))
    door.settle()
    assert door.contents() == [b"content"] * 2
    assert (door.contents("hers"), door.peers.posted, door.outgoing) == ([], [], [])
