"""What makes a queue manager as definitions say, in words, and step by step (G655)."""

import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from rpcqm.cli.definitions_file import UNLIMITED, Definitions, Rights
from rpcqm.cli.definitions_here import (
    ADMINISTRATOR,
    PRIVACY,
    Here,
    know_administrator,
    know_machine,
)
from rpcqm.cli.deliveries import POISON
from rpcqm.client.names import HERE, format_name, path_name
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.security.descriptor import Ace, AceType, Acl, SecurityDescriptor
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.permissions import MACHINE, QUEUE, WELL_KNOWN, Vocabulary, has_way_back
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.trigger_rule import rule_of
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

    Act = Callable[[QueueManagerClient], Awaitable[object]]
    Write = Callable[[QueueManagerClient, SecurityDescriptor], Awaitable[None]]

OF_MSMQ = (
    *("label", "transactional", "journal", "quota", "journal_quota"),
    *("authenticate", "privacy", "base_priority"),
)
"""Settings that MSMQ knows, too; the others are rpcqm's own."""


class NotHereError(Exception):
    """Definitions name an account that is not here; the text is a clause."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that differs, and what makes it right; None where nothing here can."""

    sentence: str
    act: "Act | None" = None


def plan(wanted: Definitions, here: Here, *, prune: bool) -> list[Step]:
    """The steps in their order; what others need comes before them."""
    steps = [*_accounts(wanted, here), *_machine(wanted, here)]
    steps += _queues(wanted, here)
    steps += _triggers(wanted, here)
    return [*steps, *_pruned(wanted, here)] if prune else steps


# Accounts


def _accounts(wanted: Definitions, here: Here) -> Iterator[Step]:
    for key, (name, groups) in sorted(wanted.accounts.items()):
        known = here.definitions.accounts.get(key)
        if known is None:
            sentence = (
                f"add the account {name} ({', '.join(groups)}), which logs on when it has got a "
                f"password: rpcqm user password {name}"
            )
            yield Step(sentence, partial(_add_account, here, name, groups))
        elif set(known[1]) != set(groups):
            sentence = (
                f"the account {name} is in {', '.join(known[1])}, not in {', '.join(groups)}: "
                "groups are chosen when an account is added"
            )
            yield Step(sentence)


async def _add_account(
    here: Here, name: str, groups: tuple[str, ...], client: "QueueManagerClient"
) -> None:
    """Nobody knows the password of the account, and so nobody logs on by it."""
    sid = await client.accounts.add(name, secrets.token_bytes(16), groups)
    here.sid_of[name] = Sid.parse(sid)
    know_machine(here, here.sid_of[name])


# Queues


def _queues(wanted: Definitions, here: Here) -> Iterator[Step]:
    untold = {name.casefold() for name in here.untold}
    for key, (name, settings, rights) in sorted(wanted.queues.items()):
        known = here.definitions.queues.get(key)
        if key in untold:
            yield Step(
                f"the queue {name} does not let you see what it is: take it over first, by "
                f"rpcqm queue acl owner {name} administrators"
            )
        elif known is None:
            shown = ", ".join(f"{key} {_shown(value)}" for key, value in settings.items())
            act = partial(_create, here, name, settings, rights)
            yield Step(f"create the queue {name}{': ' if shown else ''}{shown}", act)
        else:
            yield from _changes(here, name, settings, known[1])
            yield from _rights(here, _queue_subject(name), rights, known[2])


def _changes(
    here: Here, name: str, settings: dict[str, Any], known: dict[str, Any]
) -> Iterator[Step]:
    present = {"base_priority": 0, "poison": POISON, **known}
    differs = {key: value for key, value in settings.items() if present[key] != value}
    if "transactional" in differs:
        yield Step(
            f"the queue {name} is {'not ' if differs.pop('transactional') else ''}transactional: "
            "that is chosen when a queue is created"
        )
    for key, value in differs.items():
        yield Step(
            f"change {key} of the queue {name} from {_shown(present[key])} to {_shown(value)}",
            partial(_set, name, {**present, key: value}, (key,)),
        )


def _different(what: str, rights: Rights, known: Rights) -> list[str]:
    """What differs of two lists of permissions, in words."""
    sentences = []
    if _is_given_away(rights, known):
        sentences.append(f"give {what} to {rights.owner}, in place of {known.owner}")
    if not rights.has_list:
        return sentences
    if (rights.sddl or known.sddl) and rights.sddl != known.sddl:
        return [*sentences, f"replace the permissions of {what}"]
    lists = (("may", rights.allow, known.allow), ("may not", rights.deny, known.deny))
    for verb, wanted, present in lists:
        now, before = _folded(wanted), _folded(present)
        for who in sorted({*now, *before}):
            if now.get(who) != before.get(who):
                words = ", ".join(sorted(now.get(who, ()))) or "nothing by an entry"
                sentences.append(f"{who} {verb} {words} with {what}")
    return sentences


def _is_given_away(rights: Rights, known: Rights) -> bool:
    """Whether another owner is wanted than the one that is there."""
    wanted = rights.owner
    return wanted is not None and wanted.casefold() != (known.owner or "").casefold()


def _folded(entries: Any) -> dict[str, set[str]]:
    return {who.casefold(): set(words) for who, words in (entries or {}).items() if words}


async def _create(
    here: Here, name: str, settings: dict[str, Any], rights: Rights, client: "QueueManagerClient"
) -> None:
    """A queue has its list from the beginning: the default one may let more in.

    Where the SID of the queue manager's own user is not known yet, the owner of the new queue is
    that, and its entries follow.
    """
    late = ADMINISTRATOR not in here.sid_of
    descriptor = _descriptor(here, _without_administrator(rights) if late else rights, QUEUE)
    given = QueueSettings(**{key: _value(key, settings[key]) for key in OF_MSMQ if key in settings})
    await client.queues.create(path_name(name, HERE), given, descriptor)
    await _set_ours(name, settings, tuple(settings), client)
    if late:
        know_administrator(here, await client.queues.security(format_name(name)))
        if (whole := _descriptor(here, rights, QUEUE)) is not None:
            await client.queues.set_security(format_name(name), whole)
    if rights.owner is not None:
        owner = SecurityDescriptor(owner=_sid(here, rights.owner))
        await client.queues.set_security(format_name(name), owner)


def _without_administrator(rights: Rights) -> Rights:
    if rights.allow is None:
        return rights
    others = {who: each for who, each in rights.allow.items() if who.casefold() != ADMINISTRATOR}
    return replace(rights, allow=others)


async def _set(
    name: str, settings: dict[str, Any], keys: tuple[str, ...], client: "QueueManagerClient"
) -> None:
    changed = {key: _value(key, settings[key]) for key in keys if key in OF_MSMQ}
    if changed:
        await client.queues.set_properties(format_name(name), QueueSettings(**changed))
    await _set_ours(name, settings, keys, client)


async def _set_ours(
    name: str, settings: dict[str, Any], keys: tuple[str, ...], client: "QueueManagerClient"
) -> None:
    queue = format_name(name)
    if "trail" in keys:
        await client.maintenance.switch_trail(queue, settings["trail"])
    if {"journal_max_age", "journal_max_messages"}.intersection(keys):
        bounds = settings.get("journal_max_age", 0), settings.get("journal_max_messages", 0)
        await client.maintenance.set_journal_bounds(queue, *bounds)
    if {"max_deliveries", "poison"}.intersection(keys):
        limit, poison = settings.get("max_deliveries", 0), settings.get("poison", POISON)
        await client.maintenance.set_max_deliveries(queue, limit, poison)


def _value(key: str, value: Any) -> Any:
    if key == "privacy":
        return PRIVACY.index(value)
    return INFINITE if value == UNLIMITED else value


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"'{value}'" if isinstance(value, str) and value != UNLIMITED else str(value)


# Permissions


class _Subject(NamedTuple):
    """What has permissions: a queue, or the queue manager itself."""

    name: str
    words: Vocabulary
    write: "Write"


_OF_THE_MACHINE = _Subject(
    "the queue manager", MACHINE, lambda client, given: client.maintenance.set_security(given)
)


def _queue_subject(name: str) -> _Subject:
    return _Subject(
        f"the queue {name}",
        QUEUE,
        lambda client, given: client.queues.set_security(format_name(name), given),
    )


def _descriptor(here: Here, rights: Rights, words: Vocabulary) -> SecurityDescriptor | None:
    """The list of permissions; None where nothing is said of it."""
    if rights.sddl is not None:
        return SecurityDescriptor(dacl=parse_sddl(rights.sddl).dacl)
    if not rights.has_list:
        return None
    aces = [
        Ace(kind, mask=_mask(entry, words), sid=_sid(here, who))
        for kind, entries in (
            (AceType.ACCESS_DENIED_ACE_TYPE, rights.deny),
            (AceType.ACCESS_ALLOWED_ACE_TYPE, rights.allow),
        )
        for who, entry in sorted((entries or {}).items())
    ]
    return SecurityDescriptor(dacl=Acl(tuple(aces)))


def _mask(entry: tuple[str, ...], words: Vocabulary) -> int:
    mask = 0
    for word in entry:
        mask |= words.words[word]
    return mask


def _sid(here: Here, who: str) -> Sid:
    folded = who.casefold()
    if folded in WELL_KNOWN:
        return WELL_KNOWN[folded]
    for name, sid in here.sid_of.items():
        if name.casefold() == folded:
            return sid
    try:
        return Sid.parse(who.upper())
    except ValueError:
        raise NotHereError(f"there is no account {who} here") from None


def _leaves_a_way(rights: Rights, words: Vocabulary) -> bool:
    """Whether somebody could change the permissions then; unknown accounts are not here yet."""
    ruling = words.words["change-permissions"]
    if rights.sddl is not None:
        return has_way_back(SecurityDescriptor(dacl=parse_sddl(rights.sddl).dacl), words)
    if not rights.has_list:
        return True
    denied = {who: _mask(entry, words) for who, entry in (rights.deny or {}).items()}
    allowed = (rights.allow or {}).items()
    return any(_mask(entry, words) & ~denied.get(who, 0) & ruling for who, entry in allowed)


def _machine(wanted: Definitions, here: Here) -> Iterator[Step]:
    rights, known = wanted.machine, here.definitions.machine
    if rights is not None and known is not None:
        yield from _rights(here, _OF_THE_MACHINE, rights, known)


def _rights(here: Here, subject: _Subject, rights: Rights, known: Rights) -> Iterator[Step]:
    sentences = _different(subject.name, rights, known)
    if sentences and not _leaves_a_way(rights, subject.words):
        yield Step(f"nobody could change the permissions of {subject.name} any more")
    elif sentences:
        yield Step("; ".join(sentences), partial(_permit, here, subject, rights, known))


async def _permit(
    here: Here, subject: _Subject, rights: Rights, known: Rights, client: "QueueManagerClient"
) -> None:
    if (descriptor := _descriptor(here, rights, subject.words)) is not None:
        await subject.write(client, descriptor)
    if rights.owner is not None and _is_given_away(rights, known):
        await subject.write(client, SecurityDescriptor(owner=_sid(here, rights.owner)))


# Triggers, and what nobody wants any more


def _triggers(wanted: Definitions, here: Here) -> Iterator[Step]:
    for key, members in sorted(wanted.triggers.items()):
        rule, known = rule_of(members), here.definitions.triggers.get(key)
        if known is None:
            yield Step(
                f"add the trigger {rule.name}: {rule.action} for messages of {rule.queue}",
                partial(_of_triggers, "add", rule),
            )
        elif rule_of({key: value for key, value in known.items() if value is not None}) != rule:
            yield Step(f"change the trigger {rule.name}", partial(_of_triggers, "set", rule))


def _of_triggers(order: str, what: Any, client: "QueueManagerClient") -> Awaitable[None]:
    outcome: Awaitable[None] = getattr(client.triggers, order)(what)
    return outcome


def _pruned(wanted: Definitions, here: Here) -> Iterator[Step]:
    """Triggers first, which use queues; a queue with messages stays."""
    found = here.definitions
    for key in sorted(found.triggers.keys() - wanted.triggers.keys()):
        name = found.triggers[key]["name"]
        yield Step(f"remove the trigger {name}", partial(_of_triggers, "remove", name))
    for key in sorted(found.queues.keys() - wanted.queues.keys()):
        name = found.queues[key][0]
        if here.counts[key]:
            yield Step(f"the queue {name} is not wanted, and stays with its messages")
        else:
            yield Step(f"delete the queue {name}", partial(_delete, name))
    for key in sorted(found.accounts.keys() - wanted.accounts.keys()):
        name = found.accounts[key][0]
        yield Step(f"remove the account {name}", partial(_remove_account, name))


async def _delete(name: str, client: "QueueManagerClient") -> None:
    await client.queues.delete(format_name(name))


async def _remove_account(name: str, client: "QueueManagerClient") -> None:
    await client.accounts.remove(name)
