"""The conditions that need an operator's attention, the worst first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote

from rpcqm.adm.enums import OutgoingQueueState, QueueType
from rpcqm.adm.queue import Queue
from rpcqm.base.text import iso_time, visible
from rpcqm.base.units import duration_text
from rpcqm.codec.names.written import short_name
from rpcqm.qm.identity_conflicts import IdentityConflict
from rpcqm.qm.lost_copies import LostCopies
from rpcqm.qm.quota_levels import percent_of
from rpcqm.qm.quota_use import (
    ALMOST_FULL,
    NEARLY_FULL,
    QuotaUse,
    QuotaUses,
    name_for_people,
    named_largest,
)
from rpcqm.qm.quotas import KILOBYTE
from rpcqm.qm.totals import StuckQueue
from rpcqm.qm.trigger_rules import TriggerStates

if TYPE_CHECKING:
    from rpcqm.operations.machine import Standing
    from rpcqm.operations.overview import Overview

OLD_MESSAGE = 3_600_000
OLD_TRANSACTION = 600_000
STUCK_AFTER = 60_000
"""Milliseconds after which a message, a transaction and an outgoing queue need attention."""

FAILED_LOGONS = 5
"""Failed logons within an hour; a mistyped password causes fewer."""

MOST_LISTED = 20
"""Identities, and queues that cannot be used, that an overview lists.

Bound `overview.most_listed` [rows]: the others are counted by the metric, or named in the log.
"""

CERTIFICATE_SOON = 30 * 86_400_000
"""Milliseconds before the end of a certificate: time to get another one."""

LOW_DISK = 4
"""A multiple of the reserve that should be free; below the reserve no message is taken."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Something to look after: a code for programs, a sentence, and the path of where it is.

    `target` is a path below /api/v1; pages have their own of the same nouns. `urgent` is what keeps
    messages from being taken or sent.
    """

    code: str
    text: str
    target: str
    urgent: bool = False


def attention_of(
    overview: "Overview",
    stuck: list[StuckQueue],
    com_names: Sequence[str] = (),
    unusable: Iterable[str] = (),
    conflicts: Iterable[IdentityConflict] = (),
    uses: QuotaUses | None = None,
    lost: Iterable[LostCopies] = (),
    triggers: TriggerStates | None = None,
    certificates: Mapping[str, int] | None = None,
) -> tuple[Attention, ...]:
    """What an overview calls for; `stuck` are outgoing queues that have messages and no session.

    `com_names` are names by which clients call COM objects that do not have them, `unusable` those
    of queues that are left alone, `conflicts` what has been seen of identities, `uses` how full
    queues are, `lost` what journals had no room for, `triggers` how these do,
    `certificates` when these end.
    """
    uses = uses or QuotaUses()
    found = [
        *_disk(overview),
        *_machine_quota(overview, uses),
        *map(_quota, uses.fullest),
        *_standing(overview),
        *(_stuck(queue, overview.now) for queue in stuck if _is_stuck(queue, overview.now)),
        *_certificates(certificates or {}, overview.now),
        *_unusable(unusable),
        *map(_shared, islice(conflicts, MOST_LISTED)),
        *map(_lost_copies, islice(lost, MOST_LISTED)),
        *_triggers(triggers or TriggerStates()),
        *_dead_letters(overview),
        *_old(overview),
        *_logons(overview),
        *map(_com_name, com_names),
    ]
    return tuple(sorted(found, key=lambda each: not each.urgent))


def _certificates(ends: Mapping[str, int], now: int) -> Iterator[Attention]:
    """Certificates that have ended, or will within a month: programs refuse ended ones (G659)."""
    for setting, end in sorted(ends.items(), key=lambda each: each[1]):
        day = (iso_time(end / 1000) or "")[:10]
        if end <= now:
            text = f"The certificate of {setting} was valid until {day}: others refuse it."
            yield Attention("certificate_expired", text, "/queue-manager", urgent=True)
        elif end - now < CERTIFICATE_SOON:
            text = f"The certificate of {setting} is valid until {day} only."
            yield Attention("certificate_expires", text, "/queue-manager")


def _disk(overview: "Overview") -> Iterator[Attention]:
    free = f"{overview.disk_free >> 20} MiB are free on the disk of the store"
    if overview.disk_refusing:
        text = f"{free}: no new message is taken until there is more."
        yield Attention("disk_full", text, "/queue-manager", urgent=True)
    elif overview.disk_free < LOW_DISK * overview.disk_reserve:
        below = f"below {overview.disk_reserve >> 20} MiB no new message is taken"
        yield Attention("disk_low", f"Only {free}; {below}.", "/queue-manager", urgent=True)


def _machine_quota(overview: "Overview", uses: QuotaUses) -> Iterator[Attention]:
    part = overview.bytes / max(overview.quota_bytes, 1)
    if part < NEARLY_FULL:
        return
    text = (
        f"All messages together take {_kilobytes(overview.bytes)} of the quota of "
        f"{_kilobytes(overview.quota_bytes)}; most is in {', '.join(named_largest(uses))}."
    )
    if part < ALMOST_FULL:
        yield Attention("quota_low", text, "/queue-manager")
    else:
        yield Attention("quota_full", text, "/queue-manager", urgent=True)


def _quota(use: QuotaUse) -> Attention:
    """The attention for a queue near its quota; it is not urgent if only copies would be lost."""
    name, quota = name_for_people(use.queue), _kilobytes(use.quota or 0)
    text = f"{name[:1].upper()}{name[1:]}" if name.startswith("the journal") else name
    text = f"{text} takes {percent_of(use.bytes, use.quota)} % of its quota of {quota}."
    if use.part >= ALMOST_FULL and not (
        use.queue.is_journal or use.queue.queue_type is QueueType.SYSTEM
    ):
        return Attention("quota_full", text, _path_of(use.queue), urgent=True)
    return Attention("quota_low", text, _path_of(use.queue))


def _lost_copies(lost: LostCopies) -> Attention:
    name = name_for_people(lost.queue)
    text = (
        f"There was no room in {name} for {_number(lost.count, 'copy', 'copies')} of messages: "
        "purge it, or raise its quota."
    )
    return Attention("copies_lost", text, _path_of(lost.queue))


def _path_of(queue: Queue) -> str:
    """The path of a queue, or of the queue that a journal belongs to."""
    main = queue.parent or queue
    return f"/queues/{quote(short_name(main.pathname), safe='')}"


def _kilobytes(octets: int) -> str:
    return f"{octets // KILOBYTE:,} KB"


def _standing(overview: "Overview") -> Iterator[Attention]:
    """Orders of administrators that hold until they are taken back."""
    if overview.maintenance is not None:
        told = _ordered("In maintenance", overview.maintenance, overview.now)
        text = f"{told}. No new message is taken by any door."
        yield Attention("maintenance", text, "/queue-manager", urgent=True)
    if overview.disconnected is not None:
        told = _ordered("Disconnected", overview.disconnected, overview.now)
        text = f"{told}. Nothing is sent to others, and nothing of theirs is taken."
        yield Attention("disconnected", text, "/queue-manager", urgent=True)


def _ordered(what: str, order: "Standing", now: int) -> str:
    """`In maintenance for 3 min, by alice: a new disk`, without unrecorded parts."""
    since = f" for {duration_text(max(now - order.since, 0) / 1000)}" if order.since else ""
    by = f", by {visible(order.by)}" if order.by else ""
    reason = f": {visible(order.reason).rstrip('.')}" if order.reason else ""
    return f"{what}{since}{by}{reason}"


def _is_stuck(queue: StuckQueue, now: int) -> bool:
    """Whether it failed to connect, or was stopped by an operator, while messages wait."""
    held = queue.state in (OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED)
    return held or bool(queue.error) or now - queue.oldest >= STUCK_AFTER


def _stuck(queue: StuckQueue, now: int) -> Attention:
    waiting = _number(queue.messages, "message waits", "messages wait")
    since = duration_text(max(now - queue.oldest, 0) / 1000)
    target = f"/outgoing-queues/{quote(queue.name, safe='')}"
    if queue.state is OutgoingQueueState.ON_HOLD:
        text = f"{queue.name} is paused; {waiting}, the oldest for {since}."
        return Attention("outgoing_paused", text, target)
    if queue.state is OutgoingQueueState.LOCKED:
        text = f"{queue.name} is locked by hardened_security; {waiting}."
        return Attention("outgoing_locked", text, target)
    text = f"{queue.name} cannot connect; {waiting}, the oldest for {since}."
    return Attention("outgoing_stuck", text, target, urgent=True)


def _unusable(names: Iterable[str]) -> Iterator[Attention]:
    for name in islice(sorted(names), MOST_LISTED):
        text = (
            f"{name} cannot be used, because this version refuses its name; nothing of it is lost."
        )
        yield Attention("queue_unusable", text, "/queue-manager", urgent=True)


def _shared(conflict: IdentityConflict) -> Attention:
    one, other = conflict.addresses
    where = f"at {one} and at {other}" if one != other else f"both at {one}"
    text = (
        f"Two queue managers have the identity {conflict.identity}, {where}: messages of one are "
        "dropped as duplicates of the other's."
    )
    return Attention("identity_shared", text, "/queue-manager", urgent=True)


def _triggers(states: TriggerStates) -> Iterator[Attention]:
    if states.enabled and not states.served:
        number = _number(states.enabled, "trigger", "triggers")
        text = f"No service runs {number}: start one with `rpcqm triggers run`."
        yield Attention("triggers_unserved", text, "/triggers")
    for name, trouble in islice(states.troubles, MOST_LISTED):
        text = f"The trigger {name} does not work: {trouble}."
        yield Attention("trigger_failing", text, f"/triggers/{quote(name, safe='')}")


def _dead_letters(overview: "Overview") -> Iterator[Attention]:
    if overview.dead_letters_unread:
        number = _number(overview.dead_letters_unread, "dead letter", "dead letters")
        text = f"Nobody has looked at {number} yet."
        yield Attention("dead_letters_unread", text, "/dead-letters")


def _old(overview: "Overview") -> Iterator[Attention]:
    age = overview.now - overview.oldest
    if overview.oldest and age >= OLD_MESSAGE:
        since = duration_text(age / 1000)
        text = f"The oldest message has been in {overview.oldest_queue} for {since}."
        name = quote(overview.oldest_queue.rpartition("\\")[2], safe="")
        yield Attention("old_message", text, f"/queues/{name}")
    age = overview.now - overview.oldest_transaction
    if overview.oldest_transaction and age >= OLD_TRANSACTION:
        text = f"A transaction has been open for {duration_text(age / 1000)}."
        yield Attention("old_transaction", text, "/transactions")


def _logons(overview: "Overview") -> Iterator[Attention]:
    if overview.failed_logons >= FAILED_LOGONS:
        text = f"{overview.failed_logons} logons have failed within the last hour."
        yield Attention("failed_logons", text, "/accounts")


def _com_name(name: str) -> Attention:
    text = (
        f"Clients of COM objects call this computer {name}, and may go no further than creating "
        "objects: list that name in dcom.advertise."
    )
    return Attention("com_name", text, "/queue-manager")


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
