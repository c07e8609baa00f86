"""The hash of a password, which is what a queue manager keeps."""

from rpcqm.rpc.security.ntlm_messages import nt_hash

__all__ = ["nt_hash"]
