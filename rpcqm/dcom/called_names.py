"""Names by which clients call this computer, but which no binding of its objects has.

Windows' clients write the name that their program has used into an activation ([MS-DCOM]
2.2.22.2.7.1). They call the objects by the bindings that they get, and some go no further without
that name among them; here this shows as an ordinary logon.
"""

import re

from rpcqm.base.log import get_logger
from rpcqm.dcom.bindings import Bindings
from rpcqm.rpc.call import Call

MOST_NAMES = 32
"""Names by which clients have called this computer, and which its COM objects lack.

Bound `dcom.names_that_are_remembered` [names]: others are not told.
"""

_HOST = re.compile(r"[\w.:%-]{1,255}")
"""Characters of names and addresses; the DNS has no longer names."""

_log = get_logger("dcom")


class CalledNames:
    """Remembers each name once, and logs it in one line."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._reached: dict[str, str] = {}
        """The address of ours that the first caller by a name has reached, by the folded name."""

    def note(self, call: Call, name: str) -> None:
        """Note the name under which a client has activated an object; "" if it gave none."""
        folded = name.strip("\\").removesuffix(".").casefold()
        if folded in self._reached or len(self._reached) >= MOST_NAMES:
            return
        if not _HOST.fullmatch(folded) or self._bindings.has(folded, call.local_address):
            return
        self._reached[folded] = call.local_address
        _log.warning(
            "a client of COM objects calls this computer by a name that they do not have",
            name=folded,
            peer=call.peer,
            identity=call.identity.name,
        )

    def lacking(self) -> list[str]:
        """The names used since the start that the bindings still lack."""
        return [
            name for name, reached in self._reached.items() if not self._bindings.has(name, reached)
        ]
