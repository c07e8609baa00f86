"""What travels as JSON, and in parameters and headers: the OpenAPI is made of these."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from rpcqm.api.derived import model_of
from rpcqm.operations import machine


class Strict:
    """A model that refuses members which it does not have."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = {"extra": "forbid"}


Number = Annotated[int, Field(ge=0, le=0xFFFF_FFFF)]
Seconds = Annotated[int, Field(ge=0, le=0xFFFF_FFFE)]
Count = Annotated[int, Field(ge=1, le=1000)]
LookupId = Annotated[str, Field(pattern=r"^[0-9]{1,20}$")]
IDENTIFIER = r"^(\{?[0-9A-Fa-f-]{36}\}?\\[0-9]{1,10}|[0-9A-Fa-f]{40})$"
Identifier = Annotated[
    str, Field(min_length=1, max_length=64, json_schema_extra={"pattern": IDENTIFIER})
]
"""Of a message; another text is refused in better words than by the pattern."""
Base64 = Annotated[str, Field(max_length=6 << 20, json_schema_extra={"contentEncoding": "base64"})]
Name = Annotated[str, Field(min_length=1, max_length=512)]
Version = Annotated[str, Field(min_length=1, max_length=64)]
Acknowledgement = Literal["arrival", "receive", "no-arrival", "no-receive"]
Privacy = Literal["none", "optional", "body"]


@dataclass(frozen=True)
class QueueDraft(Strict):
    """A queue to be created; quotas are KB, null without a quota."""

    name: Name
    transactional: bool = False
    label: Annotated[str, Field(max_length=124)] = ""
    journal: bool = False
    quota: Number | None = None
    journal_quota: Number | None = None
    authenticate: bool = False
    privacy: Privacy = "optional"
    base_priority: Annotated[int, Field(ge=-0x8000, le=0x7FFF)] = 0
    sddl: Annotated[str, Field(max_length=65536)] | None = None


@dataclass(frozen=True)
class QueueChanges(Strict):
    """What is to change of a queue; members that are missing stay. A quota of -1 is no bound.

    Copies in its journal go when they are older than so many seconds, and the oldest ones when
    there are more than so many; 0 is no bound.
    """

    label: Annotated[str, Field(max_length=124)] | None = None
    journal: bool | None = None
    quota: Annotated[int, Field(ge=-1, le=0xFFFF_FFFF)] | None = None
    journal_quota: Annotated[int, Field(ge=-1, le=0xFFFF_FFFF)] | None = None
    authenticate: bool | None = None
    privacy: Privacy | None = None
    base_priority: Annotated[int, Field(ge=-0x8000, le=0x7FFF)] | None = None
    max_deliveries: Number | None = None
    poison: Annotated[str, Field(min_length=1, max_length=31)] | None = None
    trail: bool | None = None
    journal_max_age: Number | None = None
    journal_max_messages: Number | None = None


@dataclass(frozen=True)
class OtherName(Strict):
    """The new name of a queue: `orders`, or a path name of this machine."""

    name: Name


@dataclass(frozen=True)
class QueueInformation:
    """A queue; counts are null for those who may not peek at it.

    `quota_percent` is how much of its quota is used, null without one; so is that of its journal.
    """

    name: str
    path_name: str
    format_name: str
    label: str
    transactional: bool
    journal: bool
    quota: int | None
    journal_quota: int | None
    authenticate: bool
    privacy: str
    base_priority: int
    max_deliveries: int
    poison: str
    trail: bool
    journal_max_age: int
    journal_max_messages: int
    created: str | None
    modified: str | None
    subqueues: list[str]
    messages: int | None
    bytes: int | None
    journal_messages: int | None
    journal_bytes: int | None
    quota_percent: int | None
    journal_quota_percent: int | None


@dataclass(frozen=True)
class QueueList:
    """Queues by name; `next` is the name to go on after, null at the end."""

    queues: list[QueueInformation]
    next: str | None


@dataclass(frozen=True)
class Permissions(Strict):
    """A security descriptor in Windows' notation; `version` is of the one that is replaced."""

    sddl: Annotated[str, Field(min_length=1, max_length=65536)]
    version: Version | None = None


@dataclass(frozen=True)
class MessageProperties(Strict):
    """What a message has beside its body; times are seconds, null is for ever."""

    label: Annotated[str, Field(max_length=249)] = ""
    priority: Annotated[int, Field(ge=0, le=7)] = 3
    body_type: Number = 0
    recoverable: bool = True
    transactional: bool = False
    ttbr: Seconds | None = None
    ttrq: Seconds | None = None
    correlation_id: Identifier | None = None
    response_queue: Name | None = None
    admin_queue: Name | None = None
    acknowledgements: Annotated[list[Acknowledgement], Field(max_length=4)] = field(
        default_factory=list
    )
    application_tag: Number = 0
    extension_base64: Base64 | None = None
    journal: bool = False
    dead_letter: bool = False
    dead_letter_queue: Name | None = None
    encrypt: bool = False


@dataclass(frozen=True)
class MessageDraft(MessageProperties):
    """A message to be sent among several."""

    body_base64: Base64 = ""


@dataclass(frozen=True)
class MessagesDraft(Strict):
    """Messages to be sent in one transaction."""

    messages: Annotated[list[MessageDraft], Field(min_length=1, max_length=1000)]


@dataclass(frozen=True)
class AddressedMessage(MessageDraft):
    """A message with the queue that it goes to, as commands name queues."""

    queue: Name = "-"


@dataclass(frozen=True)
class TransactionDraft(Strict):
    """Leases to complete and messages to send, all or none."""

    complete: Annotated[list[str], Field(max_length=1000)] = field(default_factory=list)
    send: Annotated[list[AddressedMessage], Field(max_length=1000)] = field(default_factory=list)


@dataclass(frozen=True)
class Sent:
    """The identifier of the message that was sent."""

    id: str


@dataclass(frozen=True)
class SentMessages:
    """The identifiers of the messages that were sent, in their order."""

    ids: list[str]


@dataclass(frozen=True)
class Message:
    """A message; `body` is there if it is text, `soap_envelope` if it came by HTTP.

    `extension_base64` is there if it has an extension, `extension` if that is text, `headers` if it
    is the headers of NServiceBus or Rebus, `traceparent` if it carries one. `sender_name` is there
    if somebody looks at it, and null where no account has that SID. The last three members are
    there if the message was received.
    """

    lookup_id: str
    id: str
    label: str
    class_: Annotated[str, Field(alias="class")]
    priority: int
    delivery: str
    transactional: bool
    sent: str | None
    arrived: str | None
    ttbr: int | None
    correlation_id: str | None
    acknowledgements: list[str]
    destination: str | None
    admin_queue: str | None
    response_queue: str | None
    source_machine: str
    sender: str | None
    application_tag: int
    move_count: int
    abort_count: int
    body_type: int
    body_size: int
    value_type: str
    value: Any
    body_base64: str
    body: str | None = None
    undecoded: str | None = None
    value_note: str | None = None
    extension_base64: str | None = None
    extension: str | None = None
    headers: dict[str, str | None] | None = None
    soap_envelope: str | None = None
    traceparent: str | None = None
    sender_name: str | None = None
    lease: str | None = None
    lease_expires: str | None = None
    delivery_count: int | None = None


@dataclass(frozen=True)
class Body:
    """What a body says, as a message tells it.

    `body` is there if it is text, `undecoded` if it is told by its octets, and says why,
    `value_note` if there is something to say about the value.
    """

    value_type: str
    value: Any
    body_base64: str
    body: str | None = None
    undecoded: str | None = None
    value_note: str | None = None


@dataclass(frozen=True)
class Messages:
    """Messages in order; `next` is the lookup identifier to go on after, null at the end."""

    messages: list[Message]
    next: str | None


@dataclass(frozen=True)
class FoundMessage(Message):
    """A message that a search has found, and the queue that it is in."""

    queue: str = ""


@dataclass(frozen=True)
class UnreadMessage:
    """A message that may match, but was not read whole: its body is too long, or too much."""

    queue: str
    lookup_id: str


@dataclass(frozen=True)
class FoundMessages:
    """A page of a search; `next` is what the next one goes on after, null at the end.

    `looked_at` counts the messages that the search has looked at for this page, `unread` those of
    them that may match, but were not read whole. `unread_first` says which the first of these are.
    """

    messages: list[FoundMessage]
    looked_at: int
    unread: int
    unread_first: list[UnreadMessage]
    next: str | None


@dataclass(frozen=True)
class PeekedMessages:
    """Messages in order, with what a search tells besides if there were conditions.

    `next` is the lookup identifier to go on after, null at the end.
    """

    messages: list[FoundMessage]
    next: str | None
    looked_at: int | None = None
    unread: int | None = None
    unread_first: list[UnreadMessage] | None = None


@dataclass(frozen=True)
class DeadLetter(Message):
    """A message that is dead, and why in words."""

    reason: str = ""


@dataclass(frozen=True)
class DeadLetterPage:
    """Dead letters in order; `next` is the lookup identifier to go on after, null at the end."""

    messages: list[DeadLetter]
    next: str | None


@dataclass(frozen=True)
class Resend(Strict):
    """Which dead letters are sent again: those of `lookup_ids`, or `all`, or all of a `reason`.

    They go `to` another queue, or where they were for; `ttbr` (seconds) replaces their time to be
    received. `queue` is another one than the two of the system. `after` and `until` are those of
    the answer to the same request before, which says that there are `more`.
    """

    lookup_ids: Annotated[list[LookupId], Field(min_length=1, max_length=1000)] | None = None
    all: bool = False
    reason: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    to: Name | None = None
    ttbr: Seconds | None = None
    transactional: bool = False
    queue: Name | None = None
    after: LookupId | None = None
    until: LookupId | None = None


@dataclass(frozen=True)
class NotSent:
    """A dead letter that stays, and why."""

    lookup_id: str
    code: str
    detail: str


@dataclass(frozen=True)
class StayingLetters:
    """How many dead letters stay for one reason."""

    messages: int
    code: str
    detail: str


@dataclass(frozen=True)
class ResentLetters:
    """How many were sent again, which stay, and why.

    `more` are there that were meant: the same request with `after` and `until` goes on behind
    the last one that was looked at.
    """

    messages: int
    failed: list[NotSent]
    staying: list[StayingLetters]
    more: bool
    after: str | None
    until: str | None


@dataclass(frozen=True)
class Affected:
    """How many messages were moved or removed."""

    messages: int


@dataclass(frozen=True)
class Imported:
    """The lookup identifier that a message has got."""

    lookup_id: str


@dataclass(frozen=True)
class Lease:
    """A lease of the caller; administrators see those of all."""

    lease: str
    received: str
    lease_expires: str
    account: str
    queue: str
    lookup_id: str
    delivery_count: int


@dataclass(frozen=True)
class LeaseList:
    """Leases that go on."""

    leases: list[Lease]


Standing = model_of(
    machine.Standing,
    "Standing",
    "An order that holds until it is taken back, over restarts too: since when, by whom, and why.",
)
Machine = model_of(
    machine.MachineState,
    "Machine",
    """The queue manager; sizes are bytes.

    `disconnected` and `maintenance` are the orders that keep it off the network, and from taking
    new messages; null where there is none.
    """,
)


@dataclass(frozen=True)
class MachineChanges(Strict):
    """Whether messages go to and come from other queue managers, and whether any are taken.

    `reason` is kept for people, of what stops something.
    """

    connected: bool | None = None
    maintenance: bool | None = None
    reason: Annotated[str, Field(max_length=machine.LONGEST_REASON)] = ""


@dataclass(frozen=True)
class OutgoingQueue:
    """A queue to another queue manager; `state` is as [MS-MQMQ] names it."""

    format_name: str
    state: str
    messages: int
    bytes: int
    next_hops: list[str]
    oldest: str | None


@dataclass(frozen=True)
class OutgoingQueues:
    """All of them."""

    outgoing_queues: list[OutgoingQueue]


@dataclass(frozen=True)
class AccountDraft(Strict):
    """An account to be made; groups are administrators, users and guests, or observers alone.

    Observers see what administrators see, and change nothing.
    """

    name: Annotated[str, Field(min_length=1, max_length=64)]
    password: Annotated[str, Field(min_length=1, max_length=256)]
    groups: Annotated[list[str], Field(max_length=8)] = field(default_factory=list)


@dataclass(frozen=True)
class Password(Strict):
    """An account's new password."""

    password: Annotated[str, Field(min_length=1, max_length=256)]


@dataclass(frozen=True)
class Account:
    """An account."""

    name: str
    sid: str
    groups: list[str]


@dataclass(frozen=True)
class Accounts:
    """All accounts, by name."""

    accounts: list[Account]


@dataclass(frozen=True)
class TraceEvent:
    """One thing that happened to a message."""

    time: str | None
    event: str
    queue: str
    detail: str
    lookup_id: str


@dataclass(frozen=True)
class TracePlace:
    """Where a message or a copy of it is."""

    queue: str
    state: str
    label: str
    lookup_id: str
    arrived: str | None


@dataclass(frozen=True)
class MessageTrace:
    """What became of a message."""

    events: list[TraceEvent]
    places: list[TracePlace]


@dataclass(frozen=True)
class Problem:
    """A refusal (RFC 9457); `code` is the name of an HRESULT."""

    type: str
    title: str
    status: int
    code: str
    detail: str
