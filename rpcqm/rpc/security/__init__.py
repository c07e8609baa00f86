"""Who a peer is, and how its PDUs are protected: NTLM, Kerberos, SPNEGO."""

from rpcqm.rpc.security.context import CONNECT, NONE, PKT, PKT_INTEGRITY, PKT_PRIVACY

__all__ = ["CONNECT", "NONE", "PKT", "PKT_INTEGRITY", "PKT_PRIVACY"]
