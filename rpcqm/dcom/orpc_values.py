"""The common parts of ORPC requests and responses ([MS-DCOM] 2.2.13)."""

from rpcqm.codec.interface import Value
from rpcqm.codec.types.dcom import ORPCTHAT
from rpcqm.codec.types.oaut import EXCEPINFO

MAJOR, MINOR = 5, 7
"""The version of DCOM that we speak ([MS-DCOM] 2.2.11)."""

THAT = ORPCTHAT(flags=0, extensions=None)
NO_EXCEPTION = EXCEPINFO()


class CheckedRequest(Value):
    """A request whose ORPCTHIS was checked during decoding and is not kept."""

    __slots__ = ()
