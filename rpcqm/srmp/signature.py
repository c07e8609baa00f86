"""Signatures of messages over HTTP ([MC-MQSRM] 2.2.7, 3.1.5.1.6.1).

They are XML signatures of a draft: SignedInfo is signed as it is written, without canonicalization,
and holds digests of the attachments. They cover no other part of the envelope.
"""

import enum
import hashlib
import hmac
from uuid import UUID

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.dsa import DSAPublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA1

from rpcqm.codec.packet.enums import HashAlgorithm
from rpcqm.codec.security.verifying_keys import VerifyingKey, verifying_key
from rpcqm.srmp.elements import Envelope, Reference, Signature
from rpcqm.srmp.writing import signed_info
from rpcqm.srmp.xml import SIGNATURE

DSA_METHOD, RSA_METHOD = f"{SIGNATURE}dsa", f"{SIGNATURE}rsa-sha1"
_DIGESTS = {f"{SIGNATURE}sha1": "sha1", f"{SIGNATURE}md5": "md5"}
_BODY, _EXTENSION = "cid:body@", "cid:extension@"


def unsigned(body: bytes, extension: bytes, guid: UUID, hash_algorithm: int) -> Signature:
    """The signature of attachments, without its value ([MC-MQSRM] 3.1.7.2.4, G297).

    A body is attached even if it is empty, because a signature that covers nothing proves nothing.
    The draft has MD5 and SHA-1: another requested hash becomes SHA-1.
    """
    name = "md5" if hash_algorithm == HashAlgorithm.MD5 else "sha1"
    attached = ((_BODY, body), *(((_EXTENSION, extension),) if extension else ()))
    references = tuple(
        Reference(
            f"{start}{guid}",
            f"{SIGNATURE}{name}",
            hashlib.new(name, octets, usedforsecurity=False).digest(),
        )
        for start, octets in attached
    )
    return Signature(RSA_METHOD, references, b"", signed_info(RSA_METHOD, references))


class SignatureResult(enum.Enum):
    """The result of checking a message's signature; WRONG ends the message's processing."""

    NONE = "none"
    UNCHECKED = "unchecked"
    VERIFIED = "verified"
    WRONG = "wrong"


def check(
    envelope: Envelope,
    body: bytes | None,
    extension: bytes | None,
    certificate: bytes | VerifyingKey | None = None,
) -> SignatureResult:
    """Whether the attachments are the signed ones, and the owner of a certificate has signed them.

    Without a certificate, that of the signature itself counts (G205): it does not prove its owner.
    A well-formed signature with an unavailable or unsupported key is UNCHECKED.
    """
    signature = envelope.signature
    if signature is None:
        return SignatureResult.NONE
    if signature.signature_method not in (DSA_METHOD, RSA_METHOD):
        return SignatureResult.WRONG
    if not _covers(signature, {_BODY: body, _EXTENSION: extension}):
        return SignatureResult.WRONG
    key = _public_key(signature.certificate if certificate is None else certificate)
    if key is None:
        return SignatureResult.UNCHECKED
    is_good = _verifies(key, signature.signature_value, signature.signed_info)
    return SignatureResult.VERIFIED if is_good else SignatureResult.WRONG


def _covers(signature: Signature, attachments: dict[str, bytes | None]) -> bool:
    """Whether each attachment has one reference with its digest."""
    missing = {start: octets for start, octets in attachments.items() if octets is not None}
    for reference in signature.references:
        start = next((start for start in missing if reference.uri.startswith(start)), None)
        digest = _DIGESTS.get(reference.digest_method)
        if start is None or digest is None:
            return False
        actual = hashlib.new(digest, missing.pop(start), usedforsecurity=False).digest()
        if not hmac.compare_digest(actual, reference.digest_value):
            return False
    return bool(signature.references) and not missing


def _public_key(certificate: bytes | VerifyingKey | None) -> VerifyingKey | None:
    return verifying_key(certificate) if isinstance(certificate, bytes) else certificate


def _verifies(key: VerifyingKey, value: bytes, data: bytes) -> bool:
    """Verify by the key's algorithm: the text has DSA, its sample the size of RSA."""
    try:
        if isinstance(key, DSAPublicKey):
            key.verify(_dss_signature(value), data, SHA1())
            return True
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return any(_verifies_rsa(key, each, data) for each in (value, value[::-1]))


def _verifies_rsa(key: RSAPublicKey, value: bytes, data: bytes) -> bool:
    """Verify an RSA signature, whose octets CryptoAPI writes in reverse."""
    try:
        key.verify(value, data, PKCS1v15(), SHA1())
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True


def _dss_signature(value: bytes) -> bytes:
    """Re-encode two numbers of equal length for the library."""
    half = len(value) // 2
    return encode_dss_signature(
        int.from_bytes(value[:half], "big"), int.from_bytes(value[half:], "big")
    )
