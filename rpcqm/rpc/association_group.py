"""Association groups: the connections of one client that share context handles."""

import secrets

from rpcqm.rpc.context_handle import ContextHandleTable


class AssociationGroup:
    """One group ([MS-RPCE] 3.3.1.1.1); it ends with its last connection."""

    __slots__ = ("client", "connections", "group_id", "handles", "transport")

    def __init__(self, group_id: int, transport: str, client: str, handle_limit: int) -> None:
        self.group_id = group_id
        self.transport = transport
        self.client = client
        self.connections = 0
        self.handles = ContextHandleTable(handle_limit)


class AssociationGroups:
    """All groups of a server, by assoc_group_id."""

    def __init__(self, handle_limit: int) -> None:
        self._groups: dict[int, AssociationGroup] = {}
        self._handle_limit = handle_limit

    def limit(self, handles: int) -> None:
        """How many handles groups may have that are made from now on."""
        self._handle_limit = handles

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
        """One connection less; the last one runs every handle down."""
        group.connections -= 1
        if group.connections == 0:
            del self._groups[group.group_id]
            group.handles.run_down_all()

    def _create(self, transport: str, client: str) -> AssociationGroup:
        group_id = 0
        while group_id == 0 or group_id in self._groups:
            group_id = secrets.randbits(32)
        group = self._groups[group_id] = AssociationGroup(
            group_id, transport, client, self._handle_limit
        )
        return group
