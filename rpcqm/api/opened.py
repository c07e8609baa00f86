"""Handles, leases, transactions and connections, and ending them: for administrators."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.models import Strict
from rpcqm.api.parameters import Named
from rpcqm.codec.names.format_name import FormatName
from rpcqm.operations.opened import MOST_AT_ONCE, described_connection


@dataclass(frozen=True)
class Opened:
    """What an account has open: a handle, a lease or a transaction, by its `id`.

    `door` is rpc, com or http, `address` is `local` for the local socket. `messages` are those that
    are held or, in a transaction, sent and received; null `account` is the queue manager.
    """

    id: str
    kind: str
    queues: list[str]
    account: str | None
    address: str
    door: str
    since: str
    access: str | None
    exclusive: bool
    cursors: int
    waiting: int
    messages: int
    expires: str | None


@dataclass(frozen=True)
class OpenedPage:
    """Handles, then leases, then transactions; `next` is what `after` of the next page takes."""

    opened: list[Opened]
    next: str | None


@dataclass(frozen=True)
class WhichOpened(Strict):
    """Where to begin, and how many."""

    after: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 100


@dataclass(frozen=True)
class WhichOpenedOfQueue(WhichOpened, Named):
    """Where to begin, and how many."""


@dataclass(frozen=True)
class Connection:
    """A connection by a door; `accounts` have logged on by it, `handles` are its client's."""

    id: str
    door: str
    peer: str
    accounts: list[str]
    since: str
    handles: int


@dataclass(frozen=True)
class Connections:
    """Connections of all doors, the oldest first."""

    connections: list[Connection]


async def list_opened(asked: Asked) -> Reply:
    """The handles, leases and transactions of all queues."""
    return _page(asked, None)


async def list_opened_of_queue(asked: Asked) -> Reply:
    """The handles, leases and transactions of a queue, its journal and its subqueues."""
    return _page(asked, asked.queue)


def _page(asked: Asked, queue: FormatName | None) -> Reply:
    wanted: WhichOpened = asked.parameters
    page = asked.operations.opened.page(asked.identity, queue, wanted.after or "", wanted.limit)
    return Reply(200, {"opened": page.rows, "next": page.after or None})


async def end_opened(asked: Asked) -> Reply:
    """End a handle, a lease or a transaction, as a disconnected client's are ended."""
    await settled(asked.operations.opened.end(asked.identity, asked.path["opened"]))
    return Reply(204)


async def list_connections(asked: Asked) -> Reply:
    """The connections of all doors."""
    found = asked.operations.opened.connections(asked.identity)
    return Reply(200, {"connections": [described_connection(each) for each in found]})


async def end_connection(asked: Asked) -> Reply:
    """End a connection; what its client has open ends with its last one."""
    await settled(asked.operations.opened.end(asked.identity, asked.path["connection"]))
    return Reply(204)
