"""The elements of the naive queue manager."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Effect = Callable[[], None]
Step = tuple[Effect, Effect]
"""What a commit does to the queues, and whom it tells when all of it is done."""

Key = tuple[int, int]

REACHED, RECEIVED = "REACH_QUEUE", "RECEIVE"
AVAILABLE, LOCKED, PURGE_PENDING, LEAVING = "available", "locked", "purge pending", "leaving"


class Refused(Exception):
    """What the caller is told."""


@dataclass(eq=False)
class Outcome:
    """What a call comes to: `value` is None while it is pending."""

    value: Any = None


@dataclass(eq=False)
class MMessage:
    body: bytes
    key: Key
    size: int
    express: bool
    expiry: int | None
    open_when_locked: bool = False
    state: str = AVAILABLE
    owner: object = None
    aborts: int = 0
    moves: int = 0
    moved_at: int = 0
    transactional: bool = False
    dead_letter: bool = False
    source_journal: bool = False
    acknowledge: frozenset[str] = frozenset()
    kept_aborts: int = 0
    kept_purge: bool = False

    def copy(self, key: Key) -> "MMessage":
        """The same in a journal or a dead-letter queue: nothing follows from it any more."""
        return MMessage(
            self.body,
            key,
            self.size,
            self.express,
            None,
            aborts=self.aborts,
            moves=self.moves,
            moved_at=self.moved_at,
            transactional=self.transactional,
            kept_aborts=self.aborts,
        )


@dataclass(eq=False)
class MQueue:
    name: str
    transactional: bool = False
    journal: "MQueue | None" = None
    journaling: bool = False
    quota: int | None = None
    journal_quota: int | None = None
    parent: "MQueue | None" = None
    is_journal: bool = False
    messages: dict[Key, MMessage] = field(default_factory=dict)
    arriving: dict[Key, MMessage] = field(default_factory=dict)
    subqueues: dict[str, "MQueue"] = field(default_factory=dict)
    descriptors: list["MDescriptor"] = field(default_factory=list)
    waiting: list["MWait"] = field(default_factory=list)
    charged: int = 0
    deleted: bool = False

    @property
    def main(self) -> "MQueue":
        return self.parent or self

    def ordered(self) -> list[MMessage]:
        return [self.messages[key] for key in sorted(self.messages)]

    @property
    def is_system(self) -> bool:
        return self.is_journal and self.parent is None

    def has_room(self, size: int) -> bool:
        """Whether its quota, or that of the journal it is, lets so many bytes more in."""
        quota = self.quota
        if self.is_journal and self.parent is not None:
            quota = self.parent.journal_quota
        return quota is None or self.charged + size <= quota * 1024

    def account(self) -> "MQueue":
        """Who is charged: a journal for itself, a subqueue its parent (G56)."""
        return self if self.is_journal else self.main


@dataclass(eq=False)
class MCursor:
    descriptor: "MDescriptor"
    key: Key | None = None
    state: str = "Unread"
    before: str = "Unread"
    closed: bool = False


@dataclass(eq=False)
class MDescriptor:
    queue: MQueue | None
    access: str
    deny: bool
    reads: set[bytes] = field(default_factory=set)
    cursors: list[MCursor] = field(default_factory=list)
    closed: bool = False


@dataclass(eq=False)
class MWait:
    descriptor: MDescriptor
    destructive: bool
    cursor: MCursor | None
    tag: object
    due: int | None
    outcome: Outcome
    take: Callable[[MMessage], None]


@dataclass(eq=False)
class MTransaction:
    operations: list[tuple[Any, ...]] = field(default_factory=list)
    prepared: bool = False
    gone: bool = False
    ended: bool = False
    rejected: set[bytes] = field(default_factory=set)

    def reason(self, message: MMessage) -> str:
        """Why it removes a message that it has received."""
        return "RECEIVE_REJECTED" if message.body in self.rejected else RECEIVED


def in_order(steps: list[Step], then: Effect | None) -> Effect:
    """One commit: everything happens, then everybody is told, then the caller."""

    def effect() -> None:
        for apply, _ in steps:
            apply()
        for _, tell in steps:
            tell()
        if then is not None:
            then()

    return effect


def is_held(queue: MQueue, message: MMessage, transaction: MTransaction) -> bool:
    held = message.owner is transaction and message.state in (LOCKED, PURGE_PENDING)
    return held and not queue.deleted


def nothing() -> None:
    pass
