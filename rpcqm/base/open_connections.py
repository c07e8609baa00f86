"""The connections of all doors, as operators see and end them."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from rpcqm.base.told import Moment

_numbers = itertools.count(1)


def next_number() -> int:
    """A number that no connection of this process has had."""
    return next(_numbers)


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """A connection: by which door, from where, since when, and who has logged on by it.

    `accounts` is empty where nobody has, or each request proves it anew. `handles` are context
    handles that are open by it and others of its client.
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
        """End one; False if none has that number. What is in flight ends as when it is lost."""
