"""The types, requests and responses of idl/dtyp.idl.

Written by scripts/generate, as is the stub beside it.
"""

from rpcqm.codec.interface import types_of

globals().update(types_of("dtyp", __name__))
