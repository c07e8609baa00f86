"""SPNEGO's tokens (RFC 4178, 4.2), by pyspnego.

The package has no public names for them, so that this is the only module that uses its private
ones. They may change with any minor release: setup.cfg has an upper bound, to be raised once the
tests of the negotiation pass with the next one.
"""

from spnego._spnego import (
    NegState,
    NegTokenInit,
    NegTokenResp,
    pack_mech_type_list,
    unpack_token,
)

__all__ = ["NegState", "NegTokenInit", "NegTokenResp", "pack_mech_type_list", "unpack_token"]
