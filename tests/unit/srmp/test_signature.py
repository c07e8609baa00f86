"""Signatures of messages over HTTP: what is verified, refused, or left alone."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1

from rpcqm.base.errors import DecodeError
from rpcqm.codec.security.verifying_keys import EXPONENT_BITS, KEY_BITS
from rpcqm.srmp.elements import Envelope, Reference, Signature, SrmpRequest
from rpcqm.srmp.reading import read_envelope, read_request
from rpcqm.srmp.signature import DSA_METHOD, SignatureResult, check
from rpcqm.srmp.writing import signed_info, write_envelope
from rpcqm.srmp.xml import SIGNATURE
from tests.support.certificates import certificate_for, certificate_of
from tests.support.srmp.srmp_samples import minimal, msmq, posted
from tests.support.srmp.srmp_signatures import Key, sign

BODY, EXTENSION = b"the body", b"the extension"
QUEUE_MANAGER = UUID("f6a3323c-7c7b-4a5f-b0ed-b3f63a200893")
CLAIM = pytest.mark.conformance("MQSRM-rule-3.1.5.1.6.1")


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 1024)


@cache
def dsa_key() -> dsa.DSAPrivateKey:
    return dsa.generate_private_key(1024)


def plain() -> Envelope:
    return read_envelope(minimal(msmq()))


def signed(key: Key, body: bytes | None = BODY, extension: bytes | None = EXTENSION) -> SrmpRequest:
    """A signed message, sent and read."""
    signature = sign(body, extension, QUEUE_MANAGER, key)
    return read_request(posted(replace(plain(), signature=signature), body, extension))


def judged(read: SrmpRequest, key: Key | None) -> SignatureResult:
    public = None if key is None else key.public_key()
    return check(read.envelope, read.body, read.extension, public)


@pytest.mark.conformance(
    *(
        f"MQSRM-element-{name}"
        for name in (
            *("Signature", "SignedInfo", "SignatureMethod", "Reference"),
            *("DigestMethod", "DigestValue", "SignatureValue"),
        )
    )
)
def test_a_signature_is_written_and_read_element_by_element() -> None:
    digest = base64.b64encode(hashlib.sha1(BODY, usedforsecurity=False).digest()).decode()
    signature = sign(BODY, None, QUEUE_MANAGER, dsa_key())
    value = base64.b64encode(signature.signature_value).decode()
    octets = write_envelope(replace(plain(), signature=signature))
    assert (
        '<Signature xmlns="http://www.w3.org/2000/02/xmldsig#"><SignedInfo>'
        '<SignatureMethod Algorithm="http://www.w3.org/2000/02/xmldsig#dsa"></SignatureMethod>'
        '<Reference URI="cid:body@f6a3323c-7c7b-4a5f-b0ed-b3f63a200893">'
        '<DigestMethod Algorithm="http://www.w3.org/2000/02/xmldsig#sha1"></DigestMethod>'
        f"<DigestValue>{digest}</DigestValue></Reference></SignedInfo>"
        f"<SignatureValue>{value}</SignatureValue></Signature></se:Header>"
    ) in octets.decode()
    assert read_envelope(octets).signature == signature


@CLAIM
@pytest.mark.parametrize("make", [rsa_key, dsa_key])
@pytest.mark.parametrize(
    ("body", "extension"), [(BODY, EXTENSION), (BODY, None), (None, EXTENSION), (b"", None)]
)
def test_a_good_signature_is_verified(
    make: Callable[[], Key], body: bytes | None, extension: bytes | None
) -> None:
    key = make()
    assert judged(signed(key, body, extension), key) is SignatureResult.VERIFIED


@pytest.mark.conformance("MQSRM-element-DigestValue")
@CLAIM
@pytest.mark.parametrize("make", [rsa_key, dsa_key])
def test_what_was_changed_on_its_way_is_wrong(make: Callable[[], Key]) -> None:
    key = make()
    read = signed(key)
    assert read.envelope.signature is not None
    for changed in (
        replace(read, body=b"another body"),
        replace(read, extension=b"another extension"),
        replace(read, body=read.extension, extension=read.body),
        replace(read, body=None),
        replace(read, extension=None),
    ):
        assert judged(changed, key) is SignatureResult.WRONG
        assert judged(changed, None) is SignatureResult.WRONG
    read.envelope.signature.signature_value = bytes(40)
    assert judged(read, key) is SignatureResult.WRONG


@pytest.mark.conformance("MQSRM-element-SignatureValue")
@CLAIM
def test_a_signature_by_another_key_is_wrong() -> None:
    other = rsa.generate_private_key(65537, 1024)
    assert judged(signed(rsa_key()), other) is SignatureResult.WRONG
    assert judged(signed(rsa_key()), dsa_key()) is SignatureResult.WRONG
    assert judged(signed(dsa_key()), rsa_key()) is SignatureResult.WRONG


@CLAIM
def test_what_cannot_be_checked_hinders_nothing() -> None:
    read = signed(rsa_key())
    assert judged(read, None) is SignatureResult.UNCHECKED
    assert check(read.envelope, read.body, read.extension, b"junk") is SignatureResult.UNCHECKED
    assert check(plain(), BODY, None, rsa_key().public_key()) is SignatureResult.NONE


def test_a_certificate_may_come_with_the_signature() -> None:
    certificate = certificate_of(rsa_key())
    signature = sign(BODY, None, QUEUE_MANAGER, rsa_key(), certificate)
    read = read_request(posted(replace(plain(), signature=signature), BODY))
    assert read.envelope.signature == signature
    assert judged(read, None) is SignatureResult.VERIFIED
    assert judged(read, dsa_key()) is SignatureResult.WRONG


def test_a_signature_of_windows_has_its_octets_in_reverse() -> None:
    read = signed(rsa_key())
    assert read.envelope.signature is not None
    value = read.envelope.signature.signature_value
    read.envelope.signature.signature_value = value[::-1]
    assert judged(read, rsa_key()) is SignatureResult.VERIFIED


@pytest.mark.conformance("MQSRM-element-DigestMethod")
def test_md5_digests_are_understood() -> None:
    signature = sign(BODY, None, QUEUE_MANAGER, rsa_key(), digest="md5")
    read = read_request(posted(replace(plain(), signature=signature), BODY))
    assert len(signature.references[0].digest_value) == 16
    assert judged(read, rsa_key()) is SignatureResult.VERIFIED


def resigned(method: str, *references: Reference) -> Envelope:
    info = signed_info(method, references)
    value = rsa_key().sign(info, PKCS1v15(), SHA1())
    return replace(plain(), signature=Signature(method, references, value, info))


def reference(uri: str, octets: bytes, digest: str = "sha1") -> Reference:
    value = hashlib.new(digest, octets, usedforsecurity=False).digest()
    return Reference(uri, f"{SIGNATURE}{digest}", value)


BOTH = (reference("cid:body@1", BODY), reference("cid:extension@1", EXTENSION))


@pytest.mark.conformance("MQSRM-element-SignatureMethod", "MQSRM-element-Reference")
@CLAIM
@pytest.mark.parametrize(
    ("method", "references"),
    [
        (DSA_METHOD, ()),
        (DSA_METHOD, (reference("cid:body@1", BODY),)),
        (DSA_METHOD, (reference("cid:body@1", BODY), reference("cid:body@2", BODY))),
        (DSA_METHOD, (reference("cid:extension@1", BODY), reference("cid:body@1", EXTENSION))),
        (DSA_METHOD, (reference("cid:body@1", BODY), reference("#envelope", EXTENSION))),
        (DSA_METHOD, (reference("", BODY), reference("cid:extension@1", EXTENSION))),
        (f"{SIGNATURE}hmac-sha1", BOTH),
        ("http://www.w3.org/2000/09/xmldsig#dsa-sha1", BOTH),
        ("", BOTH),
        (
            DSA_METHOD,
            (
                reference("cid:body@1", BODY, "sha256"),
                reference("cid:extension@1", EXTENSION, "sha256"),
            ),
        ),
    ],
)
def test_a_signature_that_does_not_cover_each_attachment_once_is_wrong(
    method: str, references: tuple[Reference, ...]
) -> None:
    envelope = resigned(method, *references)
    key = rsa_key().public_key()
    assert check(resigned(DSA_METHOD, *BOTH), BODY, EXTENSION, key) is SignatureResult.VERIFIED
    assert check(envelope, BODY, EXTENSION, key) is SignatureResult.WRONG
    assert check(envelope, BODY, EXTENSION) is SignatureResult.WRONG


def header_of(request: SrmpRequest) -> tuple[str, str]:
    """The envelope up to its signature, and the signature with what is behind it."""
    start, found, end = request.envelope_text.partition("<Signature ")
    return start, found + end


@CLAIM
def test_the_signature_that_is_checked_is_the_one_that_is_used() -> None:
    """Wrapping: a good signature beside or within another one, in each order."""
    start, good = header_of(signed(rsa_key()))
    good = good[: good.index("</Signature>") + len("</Signature>")]
    forged = good.replace("cid:body", "cid:other")
    info = forged[forged.index("<SignedInfo>") : forged.index("<SignatureValue>")]
    end = "</se:Header><se:Body></se:Body></se:Envelope>"
    for both in (
        good + forged,
        forged + good,
        good.replace("<SignedInfo>", f"{info}<SignedInfo>"),
        good.replace("<SignatureValue>", f"{info}<SignatureValue>"),
        good.replace("</Signature>", "<SignatureValue>AAAA</SignatureValue></Signature>"),
    ):
        with pytest.raises(DecodeError, match="twice"):
            read_envelope(f"{start}{both}{end}".encode())


@CLAIM
def test_a_signature_that_is_hidden_in_another_element_is_none() -> None:
    start, good = header_of(signed(rsa_key()))
    hidden = good.replace("</se:Header>", "</x></se:Header>")
    assert read_envelope(f"{start}<x>{hidden}".encode()).signature is None
    start, good = header_of(signed(rsa_key()))
    inner = good.replace("<SignedInfo>", "<Object><SignedInfo></SignedInfo></Object><SignedInfo>")
    read = read_envelope(f"{start}{inner}".encode())
    assert check(read, BODY, EXTENSION, rsa_key().public_key()) is SignatureResult.VERIFIED


@CLAIM
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<SignatureMethod", "<signatureMethod"),
        ("DigestMethod", "digestMethod"),
        ("DigestValue", "digestValue"),
        ("SignatureValue", "signatureValue"),
        ("SignedInfo", "signedInfo"),
        ("<DigestValue>", "<DigestValue>*"),
        ("<SignedInfo>", "<SignedInfo><Reference/>"),
    ],
)
def test_a_signature_without_one_of_its_elements_is_malformed(old: str, new: str) -> None:
    text = signed(rsa_key()).envelope_text.replace(old, new)
    if old == "<SignatureMethod":
        text = text.replace("</SignatureMethod>", "</signatureMethod>")
    with pytest.raises(DecodeError):
        read_envelope(text.encode())


def test_three_references_are_malformed() -> None:
    three = tuple(reference(f"cid:body@{number}", BODY) for number in range(3))
    with pytest.raises(DecodeError, match="3 references"):
        read_envelope(write_envelope(resigned(DSA_METHOD, *three)))


def test_what_is_signed_is_as_it_was_written_with_its_prefix_and_handed_on_so() -> None:
    plain_text = signed_info(DSA_METHOD, (reference("cid:body@1", BODY),)).decode()
    prefixed = "".join(
        f"<{'/d:' + each[1:] if each.startswith('/') else 'd:' + each}"
        for each in plain_text.split("<")[1:]
    )
    value = base64.b64encode(rsa_key().sign(prefixed.encode(), PKCS1v15(), SHA1())).decode()
    signature = (
        f'<d:Signature xmlns:d="{SIGNATURE}">{prefixed}'
        f"<d:SignatureValue>{value}</d:SignatureValue></d:Signature>"
    )
    read = read_envelope(minimal(msmq() + signature))
    assert read.signature is not None
    assert read.signature.signed_info == prefixed.encode()
    again = read_envelope(write_envelope(read))
    assert again == read
    assert check(again, BODY, None, rsa_key().public_key()) is SignatureResult.VERIFIED


def test_what_is_signed_depends_on_nothing_around_it() -> None:
    info = signed_info(DSA_METHOD, (reference("cid:body@1", BODY),)).decode()
    depends = info.replace("</SignedInfo>", "<se:x/></SignedInfo>")
    signature = (
        f'<Signature xmlns="{SIGNATURE}">{depends}<SignatureValue>AAAA</SignatureValue></Signature>'
    )
    with pytest.raises(DecodeError, match="cannot stand alone"):
        read_envelope(minimal(msmq() + signature))


@pytest.mark.bound("signatures.key_bits")
@pytest.mark.bound("signatures.exponent_bits")
@pytest.mark.parametrize(
    ("bits", "exponent", "expected"),
    [
        (KEY_BITS, 65_537, SignatureResult.WRONG),
        (KEY_BITS + 8, 65_537, SignatureResult.UNCHECKED),
        (2_048, (1 << EXPONENT_BITS) - 1, SignatureResult.WRONG),
        (2_048, (1 << EXPONENT_BITS) + 1, SignatureResult.UNCHECKED),
    ],
)
def test_a_key_that_takes_long_is_not_tried(
    bits: int, exponent: int, expected: SignatureResult
) -> None:
    modulus = (1 << bits) - 0x1235
    key = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    signature = sign(BODY, None, QUEUE_MANAGER, rsa_key(), certificate_for(key, rsa_key()))
    assert check(replace(plain(), signature=signature), BODY, None) is expected
