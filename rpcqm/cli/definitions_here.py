"""Reads the definitions of a queue manager that runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rpcqm.base.errors import HResult, MQError
from rpcqm.cli.account_names import (
    administrator_beside,
    is_administrator,
    is_of_a_machine,
    names_of_accounts,
)
from rpcqm.cli.definitions_file import UNLIMITED, Definitions, Rights
from rpcqm.client.names import HERE, format_name, path_name
from rpcqm.codec.names.path_name import QueueKind
from rpcqm.codec.security.descriptor import AceFlags, AceType, SecurityDescriptor
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.permissions import (
    MACHINE,
    QUEUE,
    Vocabulary,
    permissions,
    rights_in,
    words_of,
)
from rpcqm.codec.security.sddl import format_sddl
from rpcqm.codec.trigger_rule import MEMBERS
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.codec.names.format_name import FormatName

PRIVACY = ("none", "optional", "body")
ADMINISTRATOR = "administrator"
"""What root and the service's own user are called in lists of permissions."""
_KINDS = (AceType.ACCESS_ALLOWED_ACE_TYPE, AceType.ACCESS_DENIED_ACE_TYPE)


@dataclass(slots=True)
class Here:
    """The definitions of a queue manager, SIDs by name, and queues that the caller may not see."""

    definitions: Definitions
    sid_of: dict[str, Sid]
    untold: list[str] = field(default_factory=list)
    descriptors: dict[str, SecurityDescriptor] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Messages of queues, by their folded names."""

    @property
    def names(self) -> dict[Sid, str]:
        """The names of SIDs."""
        return {sid: name for name, sid in self.sid_of.items()}


async def look(client: "QueueManagerClient") -> Here:
    """Ask a queue manager for all of it."""
    named = await names_of_accounts(client)
    here = Here(Definitions(), {name: sid for sid, name in named.items()})
    for account in await client.accounts.list():
        found = account.name, tuple(sorted(account.groups))
        here.definitions.accounts[account.name.casefold()] = found
    for sid in list(here.sid_of.values()):
        know_machine(here, sid)
    machine = await client.maintenance.security()
    know_administrator(here, machine)
    for name in await _queue_names(client):
        await _look_at_queue(client, here, name)
    for told in (await client.triggers.list()).get("triggers", ()):
        rule = {key: told[key] for key in MEMBERS if key in told}
        here.definitions.triggers[rule["name"].casefold()] = rule
    rights = rights_of(machine, here.names, MACHINE)
    here.definitions = Definitions(
        here.definitions.accounts, rights, here.definitions.queues, here.definitions.triggers
    )
    return here


async def _queue_names(client: "QueueManagerClient") -> "list[FormatName]":
    names = [format_name(name) for name in await client.management.private_queues()]
    public = await client.queues.public()
    return names + [format_name(queue.format_name) for queue in public if queue.here]


async def _look_at_queue(client: "QueueManagerClient", here: Here, name: "FormatName") -> None:
    """Add a queue, unless it was deleted meanwhile or the caller may not see it."""
    try:
        information = await client.management.queue_information(name)
    except MQError as error:
        if error.status is HResult.MQ_ERROR_QUEUE_NOT_FOUND:
            return
        raise
    path = path_name(information.path_name, HERE)
    short = path.queue if path.kind is QueueKind.PRIVATE else f".\\{path.queue}"
    if path.queue.endswith("$"):
        return
    try:
        settings = await _settings(client, name, information.transactional)
        descriptor = await client.queues.security(name)
    except MQError as error:
        if error.status is not HResult.MQ_ERROR_ACCESS_DENIED:
            raise
        here.untold.append(short)
        return
    know_administrator(here, descriptor)
    here.descriptors[short.casefold()] = descriptor
    here.counts[short.casefold()] = information.message_count
    rights = rights_of(descriptor, here.names, QUEUE)
    here.definitions.queues[short.casefold()] = short, settings, rights


async def _settings(
    client: "QueueManagerClient", name: "FormatName", transactional: bool
) -> dict[str, Any]:
    told = await client.queues.properties(name)
    limit, poison = await client.maintenance.max_deliveries(name)
    settings: dict[str, Any] = {
        "label": told.label,
        "transactional": transactional,
        "journal": told.journal,
        "quota": _quota(told.quota),
        "journal_quota": _quota(told.journal_quota),
        "authenticate": told.authenticate,
        "privacy": PRIVACY[told.privacy],
    }
    if told.base_priority:
        settings["base_priority"] = told.base_priority
    settings["trail"] = await client.maintenance.has_trail(name)
    age, messages = await client.maintenance.journal_bounds(name)
    settings |= {"journal_max_age": age, "journal_max_messages": messages}
    settings["max_deliveries"] = limit
    return settings | ({"poison": poison} if limit else {})


def _quota(quota: int) -> int | str:
    return UNLIMITED if quota == INFINITE else quota


def know_machine(here: Here, account: Sid) -> None:
    """Learn the administrator's SID from that of an account here: only the last number differs."""
    if is_of_a_machine(account):
        here.sid_of.setdefault(ADMINISTRATOR, administrator_beside(account))


def know_administrator(here: Here, descriptor: SecurityDescriptor) -> None:
    """Learn the SID of root and the service's own user, where a descriptor has it."""
    sids = [
        descriptor.owner,
        *(ace.sid for ace in (descriptor.dacl.aces if descriptor.dacl else ())),
    ]
    for sid in sids:
        if sid is not None and is_administrator(sid):
            here.sid_of.setdefault(ADMINISTRATOR, sid)


def rights_of(
    descriptor: SecurityDescriptor, names: Mapping[Sid, str], words: Vocabulary
) -> Rights:
    """A descriptor in words; as SDDL where words do not say it."""
    owner = None if descriptor.owner is None else _name(descriptor.owner, names)
    if not _fits_words(descriptor, words):
        return Rights(owner, sddl=format_sddl(SecurityDescriptor(dacl=descriptor.dacl)))
    allow, deny = {}, {}
    for each in permissions(descriptor, words):
        who = _name(each.sid, names)
        if each.allowed:
            allow[who] = tuple(rights_in(each.allowed, words))
        if each.denied:
            deny[who] = tuple(rights_in(each.denied, words))
    return Rights(owner, allow, deny or None)


def _fits_words(descriptor: SecurityDescriptor, words: Vocabulary) -> bool:
    """Whether every entry counts, is of a plain kind, and denials come first."""
    if descriptor.dacl is None:
        return False
    aces = descriptor.dacl.aces
    kinds = [ace.type for ace in aces]
    plain = all(kind in _KINDS for kind in kinds) and kinds == sorted(kinds, reverse=True)
    said = all("0x" not in words_of(words.mapping.map(ace.mask), words) for ace in aces)
    return plain and said and not any(ace.flags & AceFlags.INHERIT_ONLY_ACE for ace in aces)


def _name(sid: Sid, names: Mapping[Sid, str]) -> str:
    return names.get(sid, str(sid))
