"""XML signatures of the draft ([MC-MQSRM] 2.2.7), made without the product, which signs nothing."""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import dsa, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA1

from rpcqm.srmp import writing
from rpcqm.srmp.elements import Reference, Signature
from tests.support.certificates import certificate_of
from tests.support.srmp.srmp_text import SOURCE

DRAFT = "http://www.w3.org/2000/02/xmldsig#"
Key = rsa.RSAPrivateKey | dsa.DSAPrivateKey


@cache
def rsa_key(_: str) -> rsa.RSAPrivateKey:
    """Somebody's key."""
    return rsa.generate_private_key(65537, 1024)


@cache
def dsa_key(_: str) -> dsa.DSAPrivateKey:
    return dsa.generate_private_key(1024)


@cache
def certificate(key: Key) -> bytes:
    """The certificate of a key, which is alice's by its name, whoever has the key."""
    return certificate_of(key)


def signature(
    key: Key, attached: Mapping[str, bytes], known: bytes | None = None, digest: str = "sha1"
) -> str:
    """<Signature> over what is attached, with a certificate, or with none if it is b""."""
    return sealed(key, signed_info(attached, digest), known)


def sealed(key: Key, info: str, known: bytes | None = None) -> str:
    """<Signature> with a <SignedInfo>, whatever that says."""
    value = base64.b64encode(_value(key, info.encode())).decode()
    text = base64.b64encode(certificate(key) if known is None else known).decode()
    shown = f"<KeyInfo><X509Data><X509Certificate>{text}</X509Certificate></X509Data></KeyInfo>"
    return (
        f'<Signature xmlns="{DRAFT}">{info}<SignatureValue>{value}</SignatureValue>'
        f"{'' if known == b'' else shown}</Signature>"
    )


def signed_info(attached: Mapping[str, bytes], digest: str = "sha1") -> str:
    """<SignedInfo> as [MC-MQSRM] 3.1.7.2.4 writes it."""
    references = (
        f'<Reference URI="cid:{name}@{SOURCE}"><DigestMethod Algorithm="{DRAFT}{digest}">'
        f"</DigestMethod><DigestValue>{_digest(digest, octets)}</DigestValue></Reference>"
        for name, octets in attached.items()
    )
    method = f'<SignatureMethod Algorithm="{DRAFT}dsa"></SignatureMethod>'
    return f"<SignedInfo>{method}{''.join(references)}</SignedInfo>"


def _digest(name: str, octets: bytes) -> str:
    return base64.b64encode(hashlib.new(name, octets, usedforsecurity=False).digest()).decode()


def _value(key: Key, octets: bytes) -> bytes:
    """PKCS #1 v1.5, or the two numbers of DSA of 20 octets each."""
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(octets, PKCS1v15(), SHA1())
    numbers = decode_dss_signature(key.sign(octets, SHA1()))
    return b"".join(number.to_bytes(20, "big") for number in numbers)


def sign(
    body: bytes | None,
    extension: bytes | None,
    guid: UUID,
    key: Key,
    known: bytes | None = None,
    digest: str = "sha1",
) -> Signature:
    """The same as the element that the product reads and writes, by either method of the draft."""
    attached = (("body", body), ("extension", extension))
    references = tuple(
        Reference(
            f"cid:{name}@{guid}",
            f"{DRAFT}{digest}",
            hashlib.new(digest, octets, usedforsecurity=False).digest(),
        )
        for name, octets in attached
        if octets is not None
    )
    method = f"{DRAFT}dsa" if isinstance(key, dsa.DSAPrivateKey) else f"{DRAFT}rsa-sha1"
    info = writing.signed_info(method, references)
    return Signature(method, references, _value(key, info), info, known)
