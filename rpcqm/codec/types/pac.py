"""The types, requests and responses of idl/pac.idl.

Written by scripts/generate, as is the stub beside it.
"""

from rpcqm.codec.interface import types_of

globals().update(types_of("pac", __name__))
