"""Keytabs: the keys of Kerberos services, in version 2 of MIT's format."""

import struct
from dataclasses import dataclass, field

from rpcqm.base.errors import DecodeError

MAGIC = b"\x05\x02"
_SIZE = struct.Struct(">i")
_COUNT = struct.Struct(">H")
_NUMBER = struct.Struct(">I")
_BEHIND_NAME = struct.Struct(">IIB")


@dataclass(frozen=True, slots=True)
class KerberosKey:
    """A key of a principal `name@REALM`; `encryption_type` is RFC 3961's number."""

    principal: str
    version: int
    encryption_type: int
    octets: bytes = field(repr=False)


def read_keytab(octets: bytes) -> list[KerberosKey]:
    """The keys of a keytab; raises DecodeError if the octets are no keytab, or are cut short."""
    if octets[:2] != MAGIC:
        raise DecodeError("it is no keytab of version 2", 0)
    found, at = [], 2
    while at + _SIZE.size <= len(octets):
        (size,) = _SIZE.unpack_from(octets, at)
        at += _SIZE.size
        if abs(size) > len(octets) - at:
            raise DecodeError("the keytab ends in the middle of an entry", at)
        if size > 0:
            found.append(_entry(octets[at : at + size], at))
        # A negative size is that of a hole, where an entry was deleted.
        at += abs(size)
    return found


def _entry(octets: bytes, place: int) -> KerberosKey:
    try:
        (components,) = _COUNT.unpack_from(octets)
        realm, at = _counted(octets, _COUNT.size)
        names = []
        for _ in range(components):
            name, at = _counted(octets, at)
            names.append(name.decode())
        _, _, version = _BEHIND_NAME.unpack_from(octets, at)
        at += _BEHIND_NAME.size
        (kind,) = _COUNT.unpack_from(octets, at)
        key, at = _counted(octets, at + _COUNT.size)
        if len(octets) - at >= _NUMBER.size:
            version = _NUMBER.unpack_from(octets, at)[0] or version
    except (struct.error, UnicodeDecodeError) as error:
        raise DecodeError(f"an entry of the keytab is damaged: {error}", place) from error
    return KerberosKey(f"{'/'.join(names)}@{realm.decode('utf-8', 'replace')}", version, kind, key)


def _counted(octets: bytes, at: int) -> tuple[bytes, int]:
    (size,) = _COUNT.unpack_from(octets, at)
    start = at + _COUNT.size
    if start + size > len(octets):
        raise DecodeError("a string of the keytab is cut short", at)
    return octets[start : start + size], start + size
