"""Rules of triggers, as the queue manager keeps them, and how the service that runs them does.

The queue manager runs nothing: one service at a time holds the rules, tells how they do, and is
told when they have changed (G641, G642). Rules and how far they have come are records of the store.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rpcqm.adm.queue import Queue
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError, NtStatus
from rpcqm.base.identity import Identity, folded_name
from rpcqm.base.log import get_logger
from rpcqm.codec.names.written import short_name
from rpcqm.codec.trigger_report import (
    Answer,
    NumberedRule,
    Position,
    Report,
    RuleReport,
    encode_position,
    read_position,
)
from rpcqm.codec.trigger_rule import DEAD_LETTER, TriggerRule, encode_rule, rule_of
from rpcqm.store.records import Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

RECORD_PREFIX = b"trigger:"
POSITION_PREFIX = b"trigger-position:"

MOST_RULES = 1_000
"""Rules of triggers, which administrators make.

Each has series of its own among the metrics, and a reader of its queue.

Bound `triggers.in_all` [triggers]: the call is refused.
"""
HELD_FOR = 15_000
"""Milliseconds after which a service that says nothing no longer holds the rules."""

_IDENTIFIER_BYTES = 8

_log = get_logger("qm")


@dataclass(slots=True)
class Trigger:
    """A rule that is kept, and how it does; `changed` is milliseconds since 1970."""

    identifier: str
    rule: TriggerRule
    changed: int
    changed_by: str
    told: RuleReport = field(default_factory=RuleReport)
    """What the service has told last; its counts are those since the start."""

    def encode(self) -> bytes:
        members = {
            "id": self.identifier,
            "rule": encode_rule(self.rule),
            "changed": self.changed,
            "changed_by": self.changed_by,
        }
        return json.dumps(members).encode()

    @classmethod
    def decode(cls, value: bytes) -> "Trigger":
        """Read a record; raises DecodeError if it is damaged."""
        try:
            members: Mapping[str, Any] = json.loads(value)
            rule, changed = rule_of(members["rule"]), int(members["changed"])
            return cls(str(members["id"]), rule, changed, str(members["changed_by"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DecodeError(f"damaged record of a trigger: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Holder:
    """The service that holds the rules; `until` is on the monotonic clock."""

    instance: str
    told: str
    account: str
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class TriggerStates:
    """How many rules are to work, whether a service runs them, and which do not work, and why."""

    enabled: int = 0
    served: bool = False
    troubles: tuple[tuple[str, str], ...] = ()


class TriggerRules:
    """The rules of one queue manager; names are compared without regard to case."""

    def __init__(self, store: Store, clock: Clock, key_of: Callable[[str], str]) -> None:
        """`key_of` gives what all names of a queue here have in common."""
        self._store = store
        self._key_of = key_of
        self._clock = clock
        self._triggers: dict[str, Trigger] = {}
        self._holder: Holder | None = None
        self._generation = 0

    def load(self) -> None:
        """Read what is kept; raises DecodeError if it is damaged."""
        for _, value in self._store.records(Family.META, RECORD_PREFIX):
            trigger = Trigger.decode(value)
            self._triggers[folded_name(trigger.rule.name)] = trigger
        positions = {
            key[len(POSITION_PREFIX) :].decode(): read_position(value)
            for key, value in self._store.records(Family.META, POSITION_PREFIX)
        }
        for trigger in self._triggers.values():
            position = positions.get(trigger.identifier, Position())
            trigger.told = replace(trigger.told, position=position)
        self._generation = self._clock.now()

    def list(self) -> list[Trigger]:
        """All rules, by name."""
        return sorted(self._triggers.values(), key=lambda each: folded_name(each.rule.name))

    def find(self, name: str) -> Trigger:
        """The rule of a name; raises MQError(STATUS_OBJECT_NAME_NOT_FOUND)."""
        trigger = self._triggers.get(folded_name(name))
        if trigger is None:
            raise MQError(NtStatus.STATUS_OBJECT_NAME_NOT_FOUND, name)
        return trigger

    @property
    def holder(self) -> Holder | None:
        """The service that runs the rules now."""
        held = self._holder
        return None if held is None or held.until <= self._clock.monotonic() else held

    def states(self) -> TriggerStates:
        """How all of them do."""
        enabled = [each for each in self.list() if each.rule.enabled]
        served = self.holder is not None
        troubles = tuple((t.rule.name, t.told.trouble) for t in enabled if t.told.trouble)
        return TriggerStates(len(enabled), served, troubles if served else ())

    # Changing

    def add(self, rule: TriggerRule, identity: Identity) -> Completion[None]:
        """Keep another rule.

        Raises MQError: STATUS_OBJECT_NAME_COLLISION, MQ_ERROR_INSUFFICIENT_RESOURCES.
        """
        if folded_name(rule.name) in self._triggers:
            raise MQError(NtStatus.STATUS_OBJECT_NAME_COLLISION, rule.name)
        if len(self._triggers) >= MOST_RULES:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many triggers")
        made = Trigger(_identifier(), rule, self._clock.now(), identity.name)
        with self._store.transaction("add a trigger") as change:
            self._put(change, made)
        return change.committed

    def set(self, rule: TriggerRule, identity: Identity) -> Completion[None]:
        """Put a rule in the place of the one of its name; STATUS_OBJECT_NAME_NOT_FOUND.

        With another queue or mode it begins anew.
        """
        before = self.find(rule.name)
        same = (before.rule.queue, before.rule.mode) == (rule.queue, rule.mode)
        identifier = before.identifier if same else _identifier()
        told = before.told if same else RuleReport()
        after = Trigger(identifier, rule, self._clock.now(), identity.name, told)
        with self._store.transaction("set a trigger") as change:
            if not same:
                change.delete(Family.META, _position_key(before))
            self._put(change, after, before)
        return change.committed

    def _put(self, change: StoreTransaction, now: Trigger, before: Trigger | None = None) -> None:
        key = folded_name(now.rule.name)
        change.put(Family.META, _key(now), now.encode())
        self._triggers[key] = now
        self._generation += 1
        change.call_when_undone(lambda: self._put_back(key, before))

    def _put_back(self, key: str, before: Trigger | None) -> None:
        self._generation += 1
        if before is None:
            self._triggers.pop(key, None)
        else:
            self._triggers[key] = before

    def remove(self, name: str) -> Completion[None]:
        """Forget a rule; what runs for it goes on to its end. STATUS_OBJECT_NAME_NOT_FOUND."""
        trigger = self.find(name)
        key = folded_name(name)
        with self._store.transaction("remove a trigger") as change:
            change.delete(Family.META, _key(trigger))
            change.delete(Family.META, _position_key(trigger))
            del self._triggers[key]
            self._generation += 1
            change.call_when_undone(lambda: self._put_back(key, trigger))
        return change.committed

    def queue_renamed(
        self, change: StoreTransaction, queue: Queue, before: str, after: str
    ) -> None:
        """Let rules that name a queue name it anew, in the same commit (G653)."""
        old = self._key_of(before)
        for trigger in self.list():
            rule, new = trigger.rule, short_name(after)
            changed = {
                member: new + getattr(rule, member)[len(main) :]
                for member in ("queue", "send_to", "poison_queue")
                if (main := getattr(rule, member).partition(";")[0])
                and main != DEAD_LETTER
                and self._names(main, old)
            }
            if changed:
                self._put(change, replace(trigger, rule=replace(rule, **changed)), trigger)

    def _names(self, text: str, key: str) -> bool:
        try:
            return self._key_of(text) == key
        except MQError:
            return False

    # The service

    def report(self, report: Report, identity: Identity) -> Answer:
        """Take what a service tells of its rules, if no other one holds them."""
        other = self.holder
        if other is not None and other.instance != report.instance:
            return Answer(self._generation, f"{other.told} ({other.account})")
        self._hold(report, identity, other)
        self._take(report.rules)
        if report.stops:
            self._let_go(report)
        if report.generation == self._generation:
            return Answer(self._generation)
        return Answer(self._generation, rules=tuple(self._numbered()))

    def _hold(self, report: Report, identity: Identity, other: Holder | None) -> None:
        now = self._clock.now()
        if other is None:
            _log.info("the service of triggers works", service=report.holder, who=identity.name)
        since = now if other is None else other.since
        until = self._clock.monotonic() + HELD_FOR
        self._holder = Holder(report.instance, report.holder, identity.name, since, until)

    def _let_go(self, report: Report) -> None:
        _log.info("the service of triggers has stopped", service=report.holder)
        self._holder = None
        for trigger in self._triggers.values():
            trigger.told = replace(trigger.told, running=0, next_try=0)

    def _numbered(self) -> Iterable[NumberedRule]:
        for each in self.list():
            yield NumberedRule(each.identifier, each.rule, each.told.position)

    def _take(self, told: Mapping[str, RuleReport]) -> None:
        moved: list[Trigger] = []
        for trigger in self._triggers.values():
            report = told.get(trigger.identifier)
            if report is None:
                continue
            if report.position != trigger.told.position:
                moved.append(trigger)
            self._tell_of_trouble(trigger, report.trouble)
            trigger.told = _added(trigger.told, report)
        if moved:
            self._keep(moved)

    def _keep(self, moved: Iterable[Trigger]) -> None:
        """Keep how far rules have come; a crash before a later commit lets them look again."""
        with self._store.transaction("keep positions of triggers") as change:
            for trigger in moved:
                change.put(
                    Family.META, _position_key(trigger), encode_position(trigger.told.position)
                )
            change.sync = False

    def _tell_of_trouble(self, trigger: Trigger, trouble: str) -> None:
        if trouble and not trigger.told.trouble:
            _log.warning("a trigger does not work", trigger=trigger.rule.name, why=trouble)
        elif trigger.told.trouble and not trouble:
            _log.info("a trigger works again", trigger=trigger.rule.name)


def _added(before: RuleReport, now: RuleReport) -> RuleReport:
    """What was told last, with the counts since the start."""
    return replace(
        now,
        last_run=now.last_run or before.last_run,
        outcome=now.outcome or before.outcome,
        done=before.done + now.done,
        failed=before.failed + now.failed,
        poisoned=before.poisoned + now.poisoned,
    )


def _identifier() -> str:
    return secrets.token_hex(_IDENTIFIER_BYTES)


def _key(trigger: Trigger) -> bytes:
    return RECORD_PREFIX + folded_name(trigger.rule.name).encode()


def _position_key(trigger: Trigger) -> bytes:
    return POSITION_PREFIX + trigger.identifier.encode()
