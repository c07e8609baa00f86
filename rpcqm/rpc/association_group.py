"""Association groups: the connections of one client that share context handles."""

import secrets

from rpcqm.base.allowance import Allowance
from rpcqm.rpc.context_handle import ContextHandleTable
from rpcqm.rpc.limits import Limits


class AssociationGroup:
    """One group ([MS-RPCE] 3.3.1.1.1); it ends with its last connection.

    `cursors` bounds what the interfaces open for the client on top of its handles.
    """

    __slots__ = ("client", "connections", "cursors", "group_id", "handles", "transport")

    def __init__(self, group_id: int, transport: str, client: str, limits: Limits) -> None:
        self.group_id = group_id
        self.transport = transport
        self.client = client
        self.connections = 0
        self.handles = ContextHandleTable(limits.handles)
        self.cursors = Allowance(limits.cursors, "cursors")


class AssociationGroups:
    """All groups of a server, by assoc_group_id."""

    def __init__(self, limits: Limits) -> None:
        self._groups: dict[int, AssociationGroup] = {}
        self._limits = limits

    def limit(self, limits: Limits) -> None:
        """Set the limits of groups that are made from now on."""
        self._limits = limits

    def __len__(self) -> int:
        return len(self._groups)

    def join(self, group_id: int, transport: str, client: str) -> AssociationGroup | None:
        """The group of a new connection: a new one for 0, else the known one of this client.

        `client` is the machine's address; a group of another client or transport is not joined
        ([MS-RPCE] 3.3.1.5.7).
        """
        group = self._groups.get(group_id) if group_id else self._create(transport, client)
        if group is None or (group.transport, group.client) != (transport, client):
            return None
        group.connections += 1
        return group

    def leave(self, group: AssociationGroup) -> None:
        """Take a connection out of the group; the last one to leave runs every handle down."""
        group.connections -= 1
        if group.connections == 0:
            del self._groups[group.group_id]
            group.handles.run_down_all()

    def end_handles(self, sid: str) -> None:
        """Run down the handles of an account, also where others share its group."""
        for group in list(self._groups.values()):
            for handle in [each for each in group.handles if each.owner.sid == sid]:
                group.handles.run_down(handle)

    def _create(self, transport: str, client: str) -> AssociationGroup:
        group_id = 0
        while group_id == 0 or group_id in self._groups:
            group_id = secrets.randbits(32)
        group = self._groups[group_id] = AssociationGroup(group_id, transport, client, self._limits)
        return group
