"""Rules of triggers; the service that runs them is a process of its own."""

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, make_dataclass
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field

from rpcqm.api import models
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.derived import list_of, model_of
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.trigger_rule import (
    BOUNDS,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_ARGUMENTS,
    TriggerRule,
    rule_of,
)
from rpcqm.operations.triggers import described

_Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
_TYPES: dict[str, Any] = {
    "queue": models.Name,
    "mode": Literal["peek", "receive", "transaction"],
    "message_class": Literal["", "normal", "report", "acknowledgement", "refusal"],
    "program": Annotated[list[_Text], Field(max_length=MOST_ARGUMENTS)] | None,
}
"""Members whose types in JSON say more than those of a rule."""
_HINTS = get_type_hints(TriggerRule)


def _setting(member: dataclasses.Field[Any]) -> tuple[str, Any, Any]:
    """A member of a rule as a caller may give it: its name, type and default."""
    name, default = member.name, member.default
    if name in BOUNDS:
        low, high = BOUNDS[name]
        number = Annotated[int, Field(ge=low, le=high)]
        return name, number | None if default is None else number, field(default=default)
    hint = _TYPES.get(name, _Text if _HINTS[name] is str else _HINTS[name])
    if default is dataclasses.MISSING:
        return name, hint, field()
    return name, hint, field(default=None if default == () else default)


TriggerSettings = make_dataclass(
    "TriggerSettings",
    [_setting(each) for each in fields(TriggerRule) if each.name != "name"],
    bases=(models.Strict,),
    frozen=True,
    kw_only=True,
    namespace={
        "__doc__": """What a rule says but for its name.

    Conditions that are null or empty hold for every message. One of `program`, `url` and `send_to`
    says what is done. Sizes are octets, times seconds.
    """
    },
)
TriggerDraft = make_dataclass(
    "TriggerDraft",
    [("name", Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)])],
    bases=(TriggerSettings,),
    frozen=True,
    kw_only=True,
    namespace={"__doc__": "A rule to be made."},
)
TriggerChange = make_dataclass(
    "TriggerChange",
    [("version", models.Version | None, field(default=None))],
    bases=(TriggerSettings,),
    frozen=True,
    kw_only=True,
    namespace={
        "__doc__": "A rule in the place of another; with a `version`, of the one that was shown."
    },
)
Trigger = model_of(
    TriggerRule,
    "Trigger",
    "A rule and how it does since the start; `trouble` is why the whole rule does not work.",
    {
        "changed": str | None,
        "changed_by": str,
        "running": int,
        "last_run": str | None,
        "outcome": str,
        "trouble": str,
        "next_try": str | None,
        "done": int,
        "failed": int,
        "poisoned": int,
        "version": str,
    },
)


@dataclass(frozen=True)
class TriggerService:
    """The service that runs the rules: where it is, and as which account."""

    told: str
    account: str
    since: str | None


Triggers = list_of(
    Trigger,
    "Triggers",
    "triggers",
    "All rules, by name, and the service that runs them; null while there is none.",
    {"service": TriggerService | None},
)


async def list_triggers(asked: Asked) -> Reply:
    """All rules of triggers, and their states."""
    return Reply(200, asked.operations.triggers.described(asked.identity))


async def show_trigger(asked: Asked) -> Reply:
    """A rule of a trigger, and its state."""
    return _told(asked, asked.path["name"], 200)


async def create_trigger(asked: Asked) -> Reply:
    """Create a rule of a trigger."""
    rule = _rule(asdict(asked.content))
    await settled(asked.operations.triggers.add(asked.identity, rule))
    return _told(asked, rule.name, 201)


async def change_trigger(asked: Asked) -> Reply:
    """Put another rule in the place of one; with another queue or mode it begins anew.

    With `version` it is refused (409) once somebody else has changed the rule.
    """
    name = asked.operations.triggers.find(asked.identity, asked.path["name"]).rule.name
    members = asdict(asked.content)
    version = members.pop("version") or ""
    rule = _rule({**members, "name": name})
    await settled(asked.operations.triggers.set(asked.identity, rule, version))
    return _told(asked, name, 200)


async def delete_trigger(asked: Asked) -> Reply:
    """Delete a rule of a trigger; its actions in progress go on to their end."""
    await settled(asked.operations.triggers.remove(asked.identity, asked.path["name"]))
    return Reply(204)


def _told(asked: Asked, name: str, status: int) -> Reply:
    return Reply(status, described(asked.operations.triggers.find(asked.identity, name)))


def _rule(members: Mapping[str, Any]) -> TriggerRule:
    try:
        return rule_of({**members, "program": members["program"] or ()})
    except DecodeError as error:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, str(error)) from error
