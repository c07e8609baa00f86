r"""Path names of queues, like Computer\private$\Queue;Subqueue ([MS-MQMQ] 2.1.1)."""

import enum
import re
from dataclasses import dataclass
from typing import Self

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import folded, visible, wide_length

MAXIMUM_QUEUE_NAME = 124
MAXIMUM_SUBQUEUE_NAME = 31  # the header has room for 32 characters with the null (G41)
MAXIMUM_COMPUTER_NAME = 256

# Every character of Unicode but \ ; + , " CR LF (G182), the end of texts, halves of surrogates
NAME_CHARACTERS = r'[^\\;+,"\r\n\0\ud800-\udfff]'
QUEUE_NAME = f"{NAME_CHARACTERS}{{1,{MAXIMUM_QUEUE_NAME}}}"
SUBQUEUE_NAME = f"{NAME_CHARACTERS}{{1,{MAXIMUM_SUBQUEUE_NAME}}}"
COMPUTER_NAME = rf"[\x21-\x5b\x5d-\x7e]{{1,{MAXIMUM_COMPUTER_NAME}}}"

# The part behind the computer's name, also used by format names
QUEUE_PART = re.compile(
    rf"system\$;(?P<system>{QUEUE_NAME})"
    rf"|(?:(?P<private>private\$)\\)?(?P<queue>{QUEUE_NAME})(?:;(?P<suffix>{SUBQUEUE_NAME}))?",
    re.IGNORECASE | re.ASCII,  # without ASCII the long s would be an s
)
_PATH = re.compile(rf"(?P<computer>{COMPUTER_NAME})\\(?P<rest>.+)", re.DOTALL)

JOURNAL = "JOURNAL"
DEADLETTER = "DEADLETTER"
DEADXACT = "DEADXACT"
SYSTEM_QUEUES = frozenset({JOURNAL, DEADLETTER, DEADXACT})
_RESERVED_NAMES = frozenset({"private$", "system$"})
_RESERVED_SUFFIXES = frozenset({DEADLETTER, DEADXACT, "XACTONLY"})


class QueueKind(enum.Enum):
    """The three forms of a path name."""

    PUBLIC = ""
    PRIVATE = "private$\\"
    SYSTEM = "system$;"


@dataclass(frozen=True, slots=True, eq=False)
class PathName:
    r"""The computer and the name of a queue; compared without regard to case.

    `suffix` is what follows a semicolon behind the queue's name: JOURNAL for its journal, else
    the name of a subqueue.
    """

    computer: str
    queue: str
    kind: QueueKind = QueueKind.PRIVATE
    suffix: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a path name; raises MQError(MQ_ERROR_ILLEGAL_QUEUE_PATHNAME)."""
        match = _PATH.fullmatch(text)
        parts = split_queue_part(match["rest"]) if match else None
        if not match or not parts:
            said = f"`{visible(text)}` is no path name"
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, said)
        return cls(match["computer"], *parts)

    @property
    def is_journal(self) -> bool:
        """Whether it names the journal of a queue."""
        return self.suffix.upper() == JOURNAL

    @property
    def subqueue(self) -> str:
        """The name of the subqueue; empty if the path names a queue or a journal."""
        return "" if self.is_journal else self.suffix

    @property
    def parent(self) -> "PathName":
        """The queue that the subqueue or journal belongs to; itself for an ordinary queue."""
        return PathName(self.computer, self.queue, self.kind) if self.suffix else self

    def __str__(self) -> str:
        suffix = f";{self.suffix}" if self.suffix else ""
        return f"{self.computer}\\{self.kind.value}{self.queue}{suffix}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathName) and folded(str(self)) == folded(str(other))

    def __hash__(self) -> int:
        return hash(folded(str(self)))


def split_queue_part(text: str) -> tuple[str, QueueKind, str] | None:
    """Queue name, kind and suffix in the text behind the computer's name; None if it is invalid."""
    match = QUEUE_PART.fullmatch(text)
    if not match or not _fits(match):
        return None
    if match["system"]:
        return match["system"], QueueKind.SYSTEM, ""
    suffix = match["suffix"] or ""
    if suffix.upper() in _RESERVED_SUFFIXES:
        return None
    if not match["private"] and folded(match["queue"]) in _RESERVED_NAMES:
        return None
    kind = QueueKind.PRIVATE if match["private"] else QueueKind.PUBLIC
    return match["queue"], kind, suffix


def _fits(match: re.Match[str]) -> bool:
    """Whether the names are short enough in UTF-16 characters, their form on the wire."""
    queue, suffix = match["system"] or match["queue"], match["suffix"] or ""
    return wide_length(queue) <= MAXIMUM_QUEUE_NAME and wide_length(suffix) <= MAXIMUM_SUBQUEUE_NAME
