"""What requests and responses of ORPC have in common ([MS-DCOM] 2.2.13)."""

from rpcqm.codec.interface import Value
from rpcqm.codec.types.dcom import ORPCTHAT
from rpcqm.codec.types.oaut import EXCEPINFO

MAJOR, MINOR = 5, 7
"""The version of DCOM that we speak ([MS-DCOM] 2.2.11)."""

THAT = ORPCTHAT(flags=0, extensions=None)
NO_EXCEPTION = EXCEPINFO()


class CheckedRequest(Value):
    """A request whose ORPCTHIS was checked when it was read, and is of no further interest."""

    __slots__ = ()
