"""Permissions in words: the list, its explanation, and changes of it."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rpcqm.api import models, parameters
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.base.errors import MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.security.permissions import QUEUE, mask_of
from rpcqm.operations.permission_words import described_explanation, described_permissions
from rpcqm.operations.permissions import PermissionChange
from rpcqm.operations.probing import probing

MOST_CHANGES = 64
"""Changes of permissions in one request.

A descriptor has room for some hundreds of entries.

Bound `program.permission_changes` [changes]: the request is refused.
"""

Right = Literal[
    "full",
    "receive",
    "receive-journal",
    "peek",
    "send",
    "get-properties",
    "set-properties",
    "get-permissions",
    "change-permissions",
    "take-ownership",
    "delete",
]


@dataclass(frozen=True)
class PermissionEntry:
    """The rights of an account or a group, allowed and denied; `removed` is a deleted account."""

    name: str
    sid: str
    allowed: list[str]
    denied: list[str]
    removed: bool


@dataclass(frozen=True)
class PermissionEntries:
    """The owner of a queue and its entries; a change names the `version` that it is made to."""

    owner: str | None
    owner_name: str | None
    entries: list[PermissionEntry]
    version: str


@dataclass(frozen=True)
class EntryChange(models.Strict):
    """What becomes of the entries of `who`; without `rights` it is about all of them.

    A denial leaves what is allowed in the list: `revoke-denial` lets that count again, and `revoke`
    takes out both.
    """

    action: Literal["allow", "deny", "revoke", "revoke-denial"]
    who: models.Name
    rights: Annotated[list[Right], Field(max_length=len(QUEUE.words))] = field(default_factory=list)


@dataclass(frozen=True)
class PermissionChanges(models.Strict):
    """Changes in one order; `lock_out` lets the caller lose the right to change them."""

    changes: Annotated[list[EntryChange], Field(max_length=MOST_CHANGES)] = field(
        default_factory=list
    )
    owner: models.Name | None = None
    version: models.Version | None = None
    lock_out: bool = False


@dataclass(frozen=True)
class ExplainedRight:
    """Whether an account has a right, the numbers of the entries that decide it, and why."""

    right: str
    granted: bool
    because: str
    entries: list[int]
    why: str


@dataclass(frozen=True)
class ExplainedStep:
    """A step of the check: an entry by its number, or a rule that precedes the entries."""

    entry: int | None
    reason: str
    effect: str
    name: str | None
    sid: str | None
    rights: list[str]
    decides: list[str]
    concern: str


@dataclass(frozen=True)
class AccessExplanation:
    """The rights of an account, with the steps of the check; `token` is the one that it shows."""

    account: str
    sid: str
    groups: list[str]
    token: str | None
    owner: str | None
    rights: list[ExplainedRight]
    steps: list[ExplainedStep]


@dataclass(frozen=True)
class ByToken(models.Strict):
    """The token that the account shows, by its name."""

    token: models.Name | None = None


@dataclass(frozen=True)
class QueueByToken(ByToken, parameters.Named):
    """The token that the account shows, by its name."""


async def list_permission_entries(asked: Asked) -> Reply:
    """The owner of a queue and its permissions, by name."""
    shown = asked.operations.permissions.shown(asked.identity, asked.queue)
    return Reply(200, described_permissions(shown))


async def change_permission_entries(asked: Asked) -> Reply:
    """Grant, deny or revoke rights; the answer is the new list."""
    wanted: PermissionChanges = asked.content
    permissions, identity, name = asked.operations.permissions, asked.identity, asked.queue
    changes = [_change(each) for each in wanted.changes]
    version, owner = wanted.version or "", wanted.owner or ""
    changed = permissions.change(identity, name, changes, owner, version, wanted.lock_out)
    await settled(changed)
    try:
        with probing():
            return Reply(200, described_permissions(permissions.shown(identity, name)))
    except MQError:  # whoever may not see them any more
        return Reply(204)


def _change(wanted: EntryChange) -> PermissionChange:
    return PermissionChange(wanted.action, wanted.who, mask_of(wanted.rights))


async def explain_access(asked: Asked) -> Reply:
    """The rights of an account to a queue, with the entries that decide them."""
    return _explained(asked, asked.queue)


async def explain_machine_access(asked: Asked) -> Reply:
    """The rights of an account to the queue manager itself, with the entries that decide them."""
    return _explained(asked, None)


def _explained(asked: Asked, name: FormatName | None) -> Reply:
    account, token = asked.path["account"], asked.parameters.token or ""
    found = asked.operations.permissions.explain(asked.identity, name, account, token)
    return Reply(200, described_explanation(found, machine=name is None))
