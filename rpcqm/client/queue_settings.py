"""The settings of a queue, and what a queue manager tells about it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Properties for a queue; None means the default in a new queue, no change in an old one.

    Quotas are KB. `privacy` is 0 (none), 1 (optional) or 2 (body) ([MS-MQMQ] 2.3.1.12).
    `transactional` can only be chosen when the queue is created.
    """

    transactional: bool | None = None
    journal: bool | None = None
    authenticate: bool | None = None
    quota: int | None = None
    journal_quota: int | None = None
    label: str | None = None
    privacy: int | None = None
    base_priority: int | None = None

    def given(self) -> Iterator[tuple[str, bool | int | str]]:
        """Names and values of the settings that are not None."""
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is not None:
                yield entry.name, value


@dataclass(frozen=True, slots=True)
class QueueProperties:
    """Properties that only the queue's own computer tells ([MS-MQMP] 3.1.1.12).

    Quotas are KB, times are seconds since 1970.
    """

    label: str
    journal: bool
    quota: int
    journal_quota: int
    base_priority: int
    authenticate: bool
    privacy: int
    create_time: int
    modify_time: int


@dataclass(frozen=True, slots=True)
class QueueInformation:
    """What a queue manager tells about a queue and its content ([MS-MQMR] 2.2.3.2)."""

    path_name: str
    format_name: str
    type: str
    location: str
    state: str
    transactional: bool
    message_count: int
    bytes_in_queue: int
    journal_message_count: int
    bytes_in_journal: int
    subqueues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublicQueue:
    """A public queue, of this machine if `here` is true.

    `fixed` is true if the directory's file lists the queue; then only the file can change it.
    """

    path_name: str
    format_name: str
    label: str
    here: bool
    fixed: bool
