"""The connections of all doors, for operators to see and end."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from rpcqm.base.told import Moment

_numbers = itertools.count(1)


def next_number() -> int:
    """A number that no other connection of this process has or had."""
    return next(_numbers)


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """A connection: its door, its peer, its age, and the accounts that have logged on over it.

    `accounts` is empty where nobody has logged on, or where each request carries its own proof.
    `handles` counts the open context handles of its client.
    """

    number: int
    door: str
    peer: str
    accounts: tuple[str, ...]
    since: Moment
    handles: int


class ConnectionSource(Protocol):
    """A server with connections."""

    def open_connections(self) -> Iterable[ConnectionView]:
        """Those that are there now."""

    def end_connection(self, number: int) -> bool:
        """End a connection; False if no connection has that number.

        Calls in flight end as when a connection is lost.
        """
