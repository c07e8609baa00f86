"""What impacket writes into the trailers of its PDUs: how it logs on, and what protects calls."""

import pytest
from impacket.dcerpc.v5 import rpcrt

NTLM, SPNEGO = rpcrt.RPC_C_AUTHN_WINNT, rpcrt.RPC_C_AUTHN_GSS_NEGOTIATE


def sent_trailers(patch: pytest.MonkeyPatch, renamed: bool = False) -> set[tuple[int, int]]:
    """The authentication types and levels of all that impacket sends and reads from now on.

    `renamed`: NTLM is called SPNEGO there.
    """
    sent: set[tuple[int, int]] = set()

    kind = ("auth_type", NTLM)

    class Trailer(rpcrt.SEC_TRAILER):  # type: ignore[misc]
        def __setitem__(self, key: str, value: int) -> None:
            super().__setitem__(key, SPNEGO if renamed and (key, value) == kind else value)
            if key == "auth_level":
                sent.add((self["auth_type"], value))

    patch.setattr(rpcrt, "SEC_TRAILER", Trailer)
    return sent
