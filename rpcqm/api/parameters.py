"""Parameters of paths and queries: the OpenAPI is made of these as of `models`."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rpcqm.api.models import Count, Identifier, LookupId, Name, Strict
from rpcqm.codec.filters.written import LONGEST_CONDITION


@dataclass(frozen=True)
class Named(Strict):
    """Parameters of everything that is about a queue."""

    queue: Name | None = None


@dataclass(frozen=True)
class PageOfQueues(Strict):
    """Which queues are listed."""

    after: Name | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000


@dataclass(frozen=True)
class Peek(Named):
    """How a message is shown; unless it is to `decode`, `value` is the octets of its body."""

    decode: bool = True


@dataclass(frozen=True)
class PeekBody(Named):
    """How a body is shown: as it is, or as what it says, if it is to `decode`."""

    decode: bool = False


Condition = Annotated[str, Field(json_schema_extra={"maxLength": LONGEST_CONDITION})]
"""What is wrong with one is said in better words than by its length."""


@dataclass(frozen=True)
class Conditions(Strict):
    """What a message meets all of; docs/search.md says how each is written."""

    label: Condition | None = None
    body: Condition | None = None
    regex: Condition | None = None
    correlation_id: Condition | None = None
    sender: Condition | None = None
    since: Condition | None = None
    until: Condition | None = None
    class_: Annotated[Condition | None, Field(alias="class")] = None
    size_min: Condition | None = None
    size_max: Condition | None = None
    priority: Condition | None = None
    transactional: Condition | None = None
    ignore_case: Condition | None = None


@dataclass(frozen=True)
class PageOfMessages(Conditions, Peek):
    """Which messages are looked at; it waits so many seconds for the first one.

    With conditions it searches for messages that meet all of them, and never waits.
    """

    after: LookupId | None = None
    limit: Count = 100
    wait: Annotated[int, Field(ge=0, le=86_400)] = 0


@dataclass(frozen=True)
class Search(Conditions):
    """Which messages are looked for in all queues; `after` is `next` of the page before."""

    decode: bool = True
    after: Annotated[str, Field(pattern=r"^[0-9]{1,18}-[0-9]{0,20}$")] | None = None
    limit: Count = 100


@dataclass(frozen=True)
class DeadLetters(Strict):
    """Which dead letters are looked at: those of transactional messages, or of others."""

    transactional: bool = False
    after: LookupId | None = None
    limit: Count = 100


@dataclass(frozen=True)
class WhichDeadLetters(Strict):
    """Those of transactional messages, or of others."""

    transactional: bool = False


@dataclass(frozen=True)
class Receive(Named):
    """How messages are received; times are seconds. A lease of 0 removes them at once.

    With `correlation_id` it is the one message that has it, which answers another one.
    """

    max: Count = 1
    wait: Annotated[int, Field(ge=0, le=86_400)] = 0
    lease: Annotated[int, Field(ge=0, le=3600)] = 30
    correlation_id: Identifier | None = None


@dataclass(frozen=True)
class Listening(Strict):
    """What is listened to: queues, with commas between their names; without them everything."""

    queues: Annotated[str, Field(min_length=1, max_length=4096)] | None = None


@dataclass(frozen=True)
class Extend(Strict):
    """How long a lease lasts from now on, in seconds."""

    lease: Annotated[int, Field(ge=1, le=3600)] = 30


@dataclass(frozen=True)
class Nothing(Strict):
    """No parameters."""
