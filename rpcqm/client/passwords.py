"""The hash of a password, which is what a queue manager keeps."""

from rpcqm.codec.security.passwords import nt_hash

__all__ = ["nt_hash"]
