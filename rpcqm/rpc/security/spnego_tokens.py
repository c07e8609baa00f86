"""SPNEGO's tokens (RFC 4178, 4.2), by pyspnego.

The package has no public names for them, so that this is the only module that uses its private
ones. They may change with any minor release: setup.cfg has an upper bound, to be raised once the
tests of the negotiation pass with the next one.
"""

from spnego import _spnego
from spnego._asn1 import (
    ASN1Value,
    TagClass,
    unpack_asn1,
    unpack_asn1_tagged_sequence,
)
from spnego._spnego import NegState, NegTokenInit, NegTokenResp, pack_mech_type_list

__all__ = ["NegState", "NegTokenInit", "NegTokenResp", "pack_mech_type_list", "unpack_token"]

LONGEST_NAMES = 512
"""Octets of the object identifiers in a token; Windows sends 50."""

_MECH_TYPES, _SUPPORTED_MECH = 0, 1


def unpack_token(token: bytes) -> object:
    """Decode a NegTokenInit or a NegTokenResp; another kind of token gives another object.

    Raises ValueError for object identifiers that are too long: the time that the package takes for
    them grows with the square of their length. Any other exception means that the octets are no
    token at all.
    """
    if len(token) > LONGEST_NAMES and not token.startswith(b"NTLMSSP\0"):
        _check_names(token)
    return _spnego.unpack_token(token)


def _check_names(token: bytes) -> None:
    value = unpack_asn1(token)[0]
    if value.tag_class == TagClass.application and value.tag_number == 0:
        name, inner = unpack_asn1(value.b_data)
        _check_length(name)
        value = unpack_asn1(inner)[0]
        if value.tag_class == TagClass.application:
            raise ValueError("a frame inside another one")
    if value.tag_class == TagClass.context_specific:
        fields = unpack_asn1_tagged_sequence(unpack_asn1(value.b_data)[0])
        for number in (_MECH_TYPES, _SUPPORTED_MECH):
            if number in fields:
                _check_length(fields[number])


def _check_length(names: ASN1Value) -> None:
    if len(names.b_data) > LONGEST_NAMES:
        raise ValueError(f"object identifiers of {len(names.b_data)} octets")
