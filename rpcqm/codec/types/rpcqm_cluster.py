"""The types, requests and responses of idl/rpcqm_cluster.idl.

Written by scripts/generate, as is the stub beside it.
"""

from rpcqm.codec.interface import types_of

globals().update(types_of("rpcqm_cluster", __name__))
