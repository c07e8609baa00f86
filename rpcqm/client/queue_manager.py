"""A client of one queue manager, on this machine or another.

The modules that speak an interface are imported when they are first needed: each takes time to
load, and most programs need one or two.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Self
from uuid import UUID

from rpcqm.client.connection import Connections
from rpcqm.client.target import Target
from rpcqm.codec.names.format_name import FormatName

if TYPE_CHECKING:
    from rpcqm.client.accounts import AccountsClient
    from rpcqm.client.bulk import BulkReader
    from rpcqm.client.cluster import ClusterClient
    from rpcqm.client.dependent import DependentQueue
    from rpcqm.client.maintenance import MaintenanceClient
    from rpcqm.client.management import ManagementClient
    from rpcqm.client.message_orders import MessageOrdersClient
    from rpcqm.client.queues import QueuesClient
    from rpcqm.client.remote_read import MoveTarget, QueueReader
    from rpcqm.client.scheduled import ScheduledClient
    from rpcqm.client.sending import InternalTransaction, QueueSender
    from rpcqm.client.tokens import TokensClient
    from rpcqm.client.triggers import TriggersClient


class QueueManagerClient:
    """A client of one queue manager, rpcqm or Windows.

    Connections are made when they are first needed. Every call may raise MQError or RpcFault
    for a refusal, DecodeError for an answer that cannot be read, and ServerUnreachableError.
    If the connection is lost, calls try for `patience` seconds to reach the server again; a call
    that the server may have done is never repeated.

        async with QueueManagerClient(LocalServer(socket)) as client:
            async with client.open_sender(name) as sender:
                await sender.send(OutgoingMessage(b"hello"))
            async with client.open_reader(name) as reader:
                async with await reader.receive() as message:
                    print(message.body)
    """

    def __init__(self, target: Target, patience: float = 0.0) -> None:
        self.target = target
        self._connections = Connections(target, patience)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, and with them all queues that are still open."""
        await self._connections.close()

    @cached_property
    def queues(self) -> "QueuesClient":
        """Creates, changes and deletes queues."""
        from rpcqm.client.queues import QueuesClient

        return QueuesClient(self._connections)

    @cached_property
    def management(self) -> "ManagementClient":
        """Tells administrators about queues and messages on their way."""
        from rpcqm.client.management import ManagementClient

        return ManagementClient(self._connections)

    @cached_property
    def cluster(self) -> "ClusterClient":
        """Tells how this node of a cluster is, and gives it orders."""
        from rpcqm.client.cluster import ClusterClient

        return ClusterClient(self._connections)

    @cached_property
    def accounts(self) -> "AccountsClient":
        """Adds, changes and lists the accounts that callers log on with."""
        from rpcqm.client.accounts import AccountsClient

        return AccountsClient(self._connections)

    @cached_property
    def tokens(self) -> "TokensClient":
        """Makes, lists and deletes the tokens that programs show instead of a password."""
        from rpcqm.client.tokens import TokensClient

        return TokensClient(self._connections)

    @cached_property
    def scheduled(self) -> "ScheduledClient":
        """Lets the queue manager hold messages back until their time."""
        from rpcqm.client.scheduled import ScheduledClient

        return ScheduledClient(self._connections)

    @cached_property
    def triggers(self) -> "TriggersClient":
        """Makes and lists the rules of triggers, and reports how they do."""
        from rpcqm.client.triggers import TriggersClient

        return TriggersClient(self._connections)

    @cached_property
    def maintenance(self) -> "MaintenanceClient":
        """Makes backups, gives back disk space, and tells what happened to messages."""
        from rpcqm.client.maintenance import MaintenanceClient

        return MaintenanceClient(self._connections)

    @cached_property
    def message_orders(self) -> "MessageOrdersClient":
        """Moves, copies, sends again and removes chosen messages."""
        from rpcqm.client.message_orders import MessageOrdersClient

        return MessageOrdersClient(self._connections)

    def open_reader(
        self,
        name: FormatName,
        *,
        peek_only: bool = False,
        exclusive: bool = False,
        outgoing: bool = False,
    ) -> "QueueReader":
        """Open a queue, with `async with`, to read it, move messages out of it or purge it.

        If the queue is not there and `outgoing` is set, administrators of an rpcqm server get the
        messages that wait there for a queue of that name elsewhere.
        """
        from rpcqm.client.remote_read import QueueReader

        return QueueReader(
            self._connections, name, peek_only=peek_only, exclusive=exclusive, outgoing=outgoing
        )

    def open_bulk_reader(
        self, name: FormatName, *, peek_only: bool = False, outgoing: bool = False
    ) -> "BulkReader":
        """Open a queue, with `async with`, to read or remove many messages.

        `outgoing` means what it means to `open_reader`.
        """
        from rpcqm.client.bulk import BulkReader

        return BulkReader(self._connections, name, peek_only=peek_only, outgoing=outgoing)

    def open_move_target(self, name: FormatName) -> "MoveTarget":
        """Open a queue, with `async with`, that messages are to be moved to."""
        from rpcqm.client.remote_read import MoveTarget

        return MoveTarget(self._connections, name)

    def open_dependent(
        self,
        name: FormatName,
        *,
        peek_only: bool = False,
        exclusive: bool = False,
        target_of: Callable[[str], Target] | None = None,
    ) -> "DependentQueue":
        """Open a queue, with `async with`, as a dependent client of this server.

        `target_of` finds the machine of a queue elsewhere; without it, the machine is reached by
        its name, with the same credentials.
        """
        from rpcqm.client.dependent import DependentQueue

        def connect(machine: str) -> Connections:
            return Connections(target_of(machine) if target_of else self.target.at(machine))

        return DependentQueue(
            self._connections, name, connect, peek_only=peek_only, exclusive=exclusive
        )

    def open_sender(self, name: FormatName, *more: FormatName) -> "QueueSender":
        """Open one or more queues, with `async with`; each message goes to all of them."""
        from rpcqm.client.sending import QueueSender

        return QueueSender(self._connections, name, more=more)

    def begin_transaction(self, joined: UUID | None = None) -> "InternalTransaction":
        """A transaction, which begins and ends with its `async with` block.

        With `joined` it is one that another program has begun, as the same user, and ends.
        """
        from rpcqm.client.sending import InternalTransaction

        return InternalTransaction(self._connections, joined)
