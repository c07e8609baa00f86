"""What clients did and were answered, and what is found afterwards.

Times are of one clock of the machine on which all clients run. A message is named by its sender and
its number, of which each sender has its own, from 1 on without a gap.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Outcome(enum.Enum):
    """What a client learned of a request that changes something."""

    DONE = "done"
    REFUSED = "refused"
    DOUBT = "in doubt"


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """A message's."""

    sender: str
    number: int

    def __str__(self) -> str:
        return f"{self.sender}:{self.number}"

    @property
    def body(self) -> bytes:
        """What the message has in it; no other name is a part of this one."""
        return f"<{self}>".encode()


@dataclass(frozen=True, slots=True)
class Sent:
    """One attempt to send a message.

    `node` is the one that was asked, "" if another queue manager brings the message there. Of a
    `unit` all messages are sent, or none. A message with a `key` may be tried again.
    """

    name: Name
    queue: str
    node: str
    began: float
    ended: float
    outcome: Outcome
    unit: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that was given to a reader between `began` and `given`, and the outcome of its
    removal, which was known at `ended`. Refused: it was given back, or the hold was lost."""

    name: Name
    queue: str
    node: str
    began: float
    given: float
    ended: float
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Missed:
    """A read whose answer did not come: a message may have been held meanwhile."""

    queue: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Seen:
    """All messages of a queue, as one node showed them in that time."""

    queue: str
    node: str
    began: float
    ended: float
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A record of the log, the writer of its epoch, and the messages in it."""

    number: int
    epoch: int
    writer: str
    names: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong, and until when."""

    what: str
    began: float
    ended: float


@dataclass(slots=True)
class History:
    """All of it. `held` is what is in each queue at the end, in its order; `copies` are the rows of
    each database, and of one that was made of the log from its beginning."""

    sent: list[Sent] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    held: dict[str, tuple[Name, ...]] = field(default_factory=dict)
    records: list[Written] = field(default_factory=list)
    copies: dict[str, Mapping[tuple[str, bytes], bytes]] = field(default_factory=dict)

    @property
    def acknowledged(self) -> set[Name]:
        """Messages whose sender was told that they are there."""
        return {each.name for each in self.sent if each.outcome is Outcome.DONE}

    def answers(self) -> list[tuple[float, float]]:
        """When each request began that changed something and was answered so, and when it ended."""
        done = [(each.began, each.ended) for each in self.sent if _answered(each)]
        done += [(each.given, each.ended) for each in self.taken if each.outcome is Outcome.DONE]
        return sorted(done, key=lambda times: times[1])


def _answered(sent: Sent) -> bool:
    return bool(sent.node) and sent.outcome is Outcome.DONE
