"""One queue manager, near or far, as a program uses it.

What speaks an interface is imported when it is first needed, because each takes time to load and
most programs need one or two.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Self

from rpcqm.client.connection import Connections
from rpcqm.client.target import Target
from rpcqm.codec.names.format_name import FormatName

if TYPE_CHECKING:
    from rpcqm.client.accounts import Accounts
    from rpcqm.client.bulk import BulkReader
    from rpcqm.client.dependent import DependentQueue
    from rpcqm.client.maintenance import Maintenance
    from rpcqm.client.management import Management
    from rpcqm.client.queues import Queues
    from rpcqm.client.remote_read import MoveTarget, QueueReader
    from rpcqm.client.sending import InternalTransaction, QueueSender


class QueueManagerClient:
    """A client of one queue manager, rpcqm or Windows.

    Connections are made when they are first needed. Every call may raise MQError or RpcFault
    for a refusal, DecodeError for an answer that cannot be read, and ServerUnreachableError.
    A server that is lost is looked for again for `patience` seconds; nothing that may have been
    done is repeated.

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
        """Close the connections, and with them everything that is still open."""
        await self._connections.close()

    @cached_property
    def queues(self) -> "Queues":
        """The private queues, to create, change and delete."""
        from rpcqm.client.queues import Queues

        return Queues(self._connections)

    @cached_property
    def management(self) -> "Management":
        """What the queue manager tells administrators."""
        from rpcqm.client.management import Management

        return Management(self._connections)

    @cached_property
    def accounts(self) -> "Accounts":
        """The accounts that callers log on with."""
        from rpcqm.client.accounts import Accounts

        return Accounts(self._connections)

    @cached_property
    def maintenance(self) -> "Maintenance":
        """Backups, and disk space."""
        from rpcqm.client.maintenance import Maintenance

        return Maintenance(self._connections)

    def open_reader(
        self, name: FormatName, *, peek_only: bool = False, exclusive: bool = False
    ) -> "QueueReader":
        """A queue to read from, move from and purge; open it with `async with`."""
        from rpcqm.client.remote_read import QueueReader

        return QueueReader(self._connections, name, peek_only=peek_only, exclusive=exclusive)

    def open_bulk_reader(self, name: FormatName, *, peek_only: bool = False) -> "BulkReader":
        """A queue to read and remove many messages from; open it with `async with`."""
        from rpcqm.client.bulk import BulkReader

        return BulkReader(self._connections, name, peek_only=peek_only)

    def open_move_target(self, name: FormatName) -> "MoveTarget":
        """A queue to move to; open it with `async with`."""
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
        """A queue to read as a dependent client of this server; open it with `async with`.

        `target_of` tells where the machine of a queue elsewhere is reached; without it that is
        by the machine's name, with the same credentials.
        """
        from rpcqm.client.dependent import DependentQueue

        def connect(machine: str) -> Connections:
            return Connections(target_of(machine) if target_of else self.target.at(machine))

        return DependentQueue(
            self._connections, name, connect, peek_only=peek_only, exclusive=exclusive
        )

    def open_sender(self, name: FormatName, *more: FormatName) -> "QueueSender":
        """A queue, or several, to send to; open it with `async with`."""
        from rpcqm.client.sending import QueueSender

        return QueueSender(self._connections, name, more=more)

    def begin_transaction(self) -> "InternalTransaction":
        """A unit of work; begin it with `async with`."""
        from rpcqm.client.sending import InternalTransaction

        return InternalTransaction(self._connections)
