"""Rules of triggers; the service that runs them is a process of its own."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from rpcqm.api import models
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.trigger_rule import (
    LARGEST_NUMBER,
    LONGEST_BACK_OFF,
    LONGEST_NAME,
    LONGEST_RUN,
    LONGEST_TEXT,
    MOST_ARGUMENTS,
    MOST_AT_ONCE,
    MOST_ATTEMPTS,
    TriggerRule,
    rule_of,
)
from rpcqm.operations.triggers import described

Mode = Literal["peek", "receive", "transaction"]
MessageClass = Literal["", "normal", "report", "acknowledgement", "refusal"]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Number = Annotated[int, Field(ge=0, le=LARGEST_NUMBER)]
Priority = Annotated[int, Field(ge=0, le=7)]
BackOff = Annotated[int, Field(ge=1, le=LONGEST_BACK_OFF)]
TriggerName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


@dataclass(frozen=True, kw_only=True)
class TriggerSettings(models.Strict):
    """What a rule says but for its name.

    Conditions that are null or empty hold for every message. One of `program`, `url` and `send_to`
    says what is done. Sizes are octets, times seconds.
    """

    queue: models.Name
    mode: Mode = "transaction"
    enabled: bool = True
    label: Text = ""
    priority_from: Priority | None = None
    priority_to: Priority | None = None
    message_class: MessageClass = ""
    text: Text = ""
    xpath: Text = ""
    json_path: Text = ""
    size_from: Number | None = None
    size_to: Number | None = None
    sender: Text = ""
    source: Text = ""
    application_tag: Number | None = None
    program: Annotated[list[Text], Field(max_length=MOST_ARGUMENTS)] | None = None
    url: Text = ""
    send_to: Text = ""
    parallelism: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 1
    time_limit: Annotated[int, Field(ge=1, le=LONGEST_RUN)] = 60
    back_off: BackOff = 1
    longest_back_off: BackOff = 300
    poison_after: Annotated[int, Field(ge=0, le=MOST_ATTEMPTS)] = 5
    poison_queue: Text = ";poison"


@dataclass(frozen=True, kw_only=True)
class TriggerDraft(TriggerSettings):
    """A rule to be made."""

    name: TriggerName


@dataclass(frozen=True)
class Trigger:
    """A rule and how it does since the start; `trouble` is why the whole rule does not work."""

    name: str
    queue: str
    mode: str
    enabled: bool
    label: str
    priority_from: int | None
    priority_to: int | None
    message_class: str
    text: str
    xpath: str
    json_path: str
    size_from: int | None
    size_to: int | None
    sender: str
    source: str
    application_tag: int | None
    program: list[str]
    url: str
    send_to: str
    parallelism: int
    time_limit: int
    back_off: int
    longest_back_off: int
    poison_after: int
    poison_queue: str
    changed: str | None
    changed_by: str
    running: int
    last_run: str | None
    outcome: str
    trouble: str
    next_try: str | None
    done: int
    failed: int
    poisoned: int


@dataclass(frozen=True)
class TriggerService:
    """The service that runs the rules: where it is, and as which account."""

    told: str
    account: str
    since: str | None


@dataclass(frozen=True)
class Triggers:
    """All rules, by name, and the service that runs them; null while there is none."""

    service: TriggerService | None
    triggers: list[Trigger]


async def list_triggers(asked: Asked) -> Reply:
    """All rules of triggers, and how they do."""
    return Reply(200, asked.operations.triggers.described(asked.identity))


async def show_trigger(asked: Asked) -> Reply:
    """A rule of a trigger, and how it does."""
    return _told(asked, asked.path["name"], 200)


async def create_trigger(asked: Asked) -> Reply:
    """Make a rule of a trigger."""
    rule = _rule(asdict(asked.content))
    await settled(asked.operations.triggers.add(asked.identity, rule))
    return _told(asked, rule.name, 201)


async def change_trigger(asked: Asked) -> Reply:
    """Put another rule in the place of one; with another queue or mode it begins anew."""
    name = asked.operations.triggers.find(asked.identity, asked.path["name"]).rule.name
    rule = _rule({**asdict(asked.content), "name": name})
    await settled(asked.operations.triggers.set(asked.identity, rule))
    return _told(asked, name, 200)


async def delete_trigger(asked: Asked) -> Reply:
    """Forget a rule of a trigger; what it does now goes on to its end."""
    await settled(asked.operations.triggers.remove(asked.identity, asked.path["name"]))
    return Reply(204)


def _told(asked: Asked, name: str, status: int) -> Reply:
    return Reply(status, described(asked.operations.triggers.find(asked.identity, name)))


def _rule(members: Mapping[str, Any]) -> TriggerRule:
    try:
        return rule_of({**members, "program": members["program"] or ()})
    except DecodeError as error:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, str(error)) from error
