"""The certificates of a user in a directory: MQUSERSIGNCERTS ([MS-MQMQ] 2.2.21, 2.2.22)."""

import hashlib
import struct
from collections.abc import Sequence
from uuid import NAMESPACE_URL, uuid5

_HEADER = struct.Struct("<16s16sI")
_NAMESPACE = uuid5(NAMESPACE_URL, "urn:rpcqm:directory")


def digest_of(certificate: bytes) -> bytes:
    """By which a certificate is found: its MD5."""
    return hashlib.md5(certificate, usedforsecurity=False).digest()


def pack_certificates(certificates: Sequence[bytes]) -> bytes:
    """An MQUSERSIGNCERTS; each identifier is made of the certificate, so that it is always one."""
    parts = [len(certificates).to_bytes(4, "little")]
    for certificate in certificates:
        digest = digest_of(certificate)
        identifier = uuid5(_NAMESPACE, digest.hex()).bytes_le
        parts.append(_HEADER.pack(digest, identifier, len(certificate)) + certificate)
    return b"".join(parts)


def unpack_certificates(packed: bytes) -> list[bytes]:
    """The certificates of an MQUSERSIGNCERTS; damaged ones end the list."""
    certificates, position = [], 4
    for _ in range(int.from_bytes(packed[:4], "little")):
        start = position + _HEADER.size
        size = int.from_bytes(packed[start - 4 : start], "little")
        certificate = packed[start : start + size]
        if len(certificate) != size or digest_of(certificate) != packed[position : position + 16]:
            break
        certificates.append(certificate)
        position = start + size
    return certificates
