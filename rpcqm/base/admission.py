"""Admission of connections: one count for all doors of a process, whatever they speak (G93)."""

import enum
from collections import Counter

OTHER_DESCRIPTORS = 128
"""Open files that are left for the store and the listening ports, besides an eighth of all.

The store, the listening sockets and the loop need them.

Bound `connections.other_descriptors` [descriptors]: fewer connections are let in than
limits.connections says.
"""
LOCAL_RESERVE = 64
"""Connections beyond all others for administrators on the local socket.

So strangers do not shut out the local socket.

Bound `connections.local_reserve` [connections]: a connection to the local socket is closed as soon
as it is there.
"""
USERS_RESERVE = LOCAL_RESERVE // 2
"""How many of these are for other users of the machine as well.

Bound `connections.users_reserve` [connections]: a connection to the local socket is closed as soon
as it is there.
"""
FEWEST = 8
"""Connections that are let in however few files may be open.

Bound `connections.fewest` [connections]: further connections are refused.
"""


def room_for_connections(descriptors: int) -> int:
    """How many connections leave enough of the descriptors of a process for everything else."""
    return max(descriptors - descriptors // 8 - OTHER_DESCRIPTORS - LOCAL_RESERVE, FEWEST)


class Caller(enum.Enum):
    """A kind of caller, with the number of connections that it may open beyond the common bound."""

    STRANGER = 0
    USER = USERS_RESERVE
    ADMINISTRATOR = LOCAL_RESERVE


class Ticket:
    """One connection that was let in; `leave` may be called again and again."""

    __slots__ = ("_admission", "_owner")

    def __init__(self, admission: "Admission", owner: str | None) -> None:
        self._admission: Admission | None = admission
        self._owner = owner

    def leave(self) -> None:
        """The connection has ended."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission.forget(self._owner)


class Admission:
    """Counts connections: all of them, and those of each address or local user.

    `connections` and `per_address` are the configured limits. `room` is the number of connections
    for which the system allows open files, or None if the system was not asked.
    """

    def __init__(self, connections: int, per_address: int, room: int | None = None) -> None:
        self._room = room
        self._of_owner: Counter[str] = Counter()
        self.count = 0
        self.limit(connections, per_address)

    def limit(self, connections: int, per_address: int) -> None:
        """Set new limits; connections that are open stay."""
        self.bound = connections if self._room is None else min(connections, self._room)
        self.per_address = per_address

    def refusal(self, owner: str, caller: Caller = Caller.STRANGER) -> str:
        """Why a caller is not let in now; "" if it may connect."""
        if self.count >= self.bound + caller.value:
            return "too many connections"
        if caller is not Caller.ADMINISTRATOR and self._of_owner.get(owner, 0) >= self.per_address:
            return "too many connections of one address"
        return ""

    def let_in(self, owner: str) -> Ticket:
        """Count a connection of an address (`owner_of` names it) or of a local user."""
        self._of_owner[owner] += 1
        self.count += 1
        return Ticket(self, owner)

    def go_out(self) -> Ticket:
        """Count a connection that this process has opened itself; it is never refused."""
        self.count += 1
        return Ticket(self, None)

    def forget(self, owner: str | None) -> None:
        """Forget one connection of an owner; tickets call this."""
        self.count -= 1
        if owner is not None:
            self._of_owner[owner] -= 1
            if not self._of_owner[owner]:
                del self._of_owner[owner]
