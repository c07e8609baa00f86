"""Rules of triggers as commands get them: from the queue manager, or of members that are given."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rpcqm.base.errors import DecodeError
from rpcqm.cli.errors import CommandError, UsageMistake
from rpcqm.codec.trigger_rule import TriggerRule, rule_of

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

TOLD = frozenset(
    {
        "changed",
        "changed_by",
        "running",
        "last_run",
        "outcome",
        "trouble",
        "next_try",
        "done",
        "failed",
        "poisoned",
        "version",
    }
)
"""The state of a rule, which lists have beside its members."""


def rule_from(members: Mapping[str, Any]) -> TriggerRule:
    """The rule of its members; raises UsageMistake."""
    try:
        return rule_of(members)
    except DecodeError as error:
        raise UsageMistake(f"The rule is wrong: {error}.") from None


def members_of(listed: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a rule, of what a list or a file has of it, without its state."""
    return {name: value for name, value in listed.items() if name not in TOLD}


def named(rules: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """A rule of a list, with its state; CommandError if no rule has the name."""
    for each in rules:
        if each["name"].casefold() == name.casefold():
            return each
    raise CommandError(f"There is no trigger `{name}`; `rpcqm trigger list` shows them.")


async def listed_rule(client: "QueueManagerClient", name: str) -> Mapping[str, Any]:
    """A rule of the queue manager, with its state; CommandError if no rule has the name."""
    return named((await client.triggers.list())["triggers"], name)
