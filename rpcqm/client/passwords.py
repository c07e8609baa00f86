"""What is kept of a password."""

from rpcqm.rpc.security.ntlm_messages import nt_hash

__all__ = ["nt_hash"]
