"""Rules of triggers: administrators make them, and the account of their service reads them."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError, NtStatus
from rpcqm.base.identity import Identity, folded_name
from rpcqm.base.text import iso_time
from rpcqm.codec.names.written import format_name
from rpcqm.codec.trigger_expressions import FEEDS_ITSELF, check_usable
from rpcqm.codec.trigger_report import Answer, read_report
from rpcqm.codec.trigger_rule import (
    DEAD_LETTER,
    TriggerRule,
    check_what_runs,
    encode_rule,
    read_members,
    rule_of,
)
from rpcqm.operations.audit import note, ordered, refusals
from rpcqm.qm.access import require_administrator, require_observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.trigger_rules import Holder, Trigger

_VERSION_DIGITS = 16


class TriggerChangedError(MQError):
    """Somebody else has changed a rule since it was shown."""

    def __init__(self) -> None:
        said = "the trigger has been changed since it was shown; look at it again"
        super().__init__(HResult.MQ_ERROR_SHARING_VIOLATION, said)


class TriggerOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for others than administrators; read-only accounts may look."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._triggers, self._registry = engine.triggers, engine.registry
        self.service_account: Callable[[], str] = lambda: ""
        """The account that may run rules without being an administrator; "" if no account may."""

    def list(self, identity: Identity) -> Sequence[Trigger]:
        """All rules, by name, with how they do."""
        require_observer(identity)
        return [self._shown(each, identity) for each in self._triggers.list()]

    def find(self, identity: Identity, name: str) -> Trigger:
        """One of them; raises MQError(STATUS_OBJECT_NAME_NOT_FOUND)."""
        require_observer(identity)
        return self._shown(self._triggers.find(name), identity)

    def _shown(self, trigger: Trigger, identity: Identity) -> Trigger:
        """A rule as a caller may see it, with the trouble that can be seen before it runs."""
        rule = trigger.rule if identity.is_administrator else trigger.rule.without_secrets
        trouble = trigger.told.trouble or self._missing_queue(trigger.rule)
        return replace(trigger, rule=rule, told=replace(trigger.told, trouble=trouble))

    def _missing_queue(self, rule: TriggerRule) -> str:
        """What to say of a queue that a rule names and that is not here; "" if all are there."""
        for text in (rule.queue, rule.send_to, rule.poison_queue):
            main = text.partition(";")[0]
            if main and main != DEAD_LETTER:
                name = format_name(main)
                if self._registry.is_here(name) and not self._registry.find_by_format_name(name):
                    return f"there is no queue {main} here"
        return ""

    def described(self, identity: Identity) -> dict[str, object]:
        """All rules with how they do, and the service, for programs."""
        held = self.holder(identity)
        service = None
        if held is not None:
            service = {
                "told": held.told,
                "account": held.account,
                "since": iso_time(held.since / 1000),
            }
        return {"service": service, "triggers": [described(each) for each in self.list(identity)]}

    def holder(self, identity: Identity) -> Holder | None:
        """The service that runs the rules, None while there is no such service."""
        require_observer(identity)
        return self._triggers.holder

    def add(self, identity: Identity, rule: TriggerRule) -> Completion[None]:
        """Make a rule.

        Raises MQError: STATUS_OBJECT_NAME_COLLISION, MQ_ERROR_INSUFFICIENT_RESOURCES, and
        STATUS_INVALID_PARAMETER for what could never work (G727).
        """
        with ordered(identity, "add trigger", rule.name, queue=rule.queue, does=rule.action):
            require_administrator(identity)
            self._check(rule)
            return self._triggers.add(rule, identity)

    def set(self, identity: Identity, rule: TriggerRule, version: str = "") -> Completion[None]:
        """Change the rule of that name, if it still has the `version` that somebody has seen.

        Raises MQError as `add`, STATUS_OBJECT_NAME_NOT_FOUND, and MQ_ERROR_SHARING_VIOLATION.
        """
        with refusals(identity, "set trigger", rule.name):
            require_administrator(identity)
        self._check(rule)
        before = self._triggers.find(rule.name)
        if version and version != version_of(before):
            raise TriggerChangedError
        changed = _changed(before.rule, rule)
        done = self._triggers.set(rule, identity)
        note(identity, "set trigger", rule.name, queue=rule.queue, changed=changed)
        return done

    def remove(self, identity: Identity, name: str) -> Completion[None]:
        """Forget a rule; raises MQError(STATUS_OBJECT_NAME_NOT_FOUND)."""
        with ordered(identity, "remove trigger", name):
            require_administrator(identity)
            return self._triggers.remove(name)

    def _check(self, rule: TriggerRule) -> None:
        """Refuse what could never work or no rule may run; a rule of before can be disabled."""
        try:
            check_usable(rule)
            if rule.enabled:
                check_what_runs(rule)
        except DecodeError as error:
            raise MQError(NtStatus.STATUS_INVALID_PARAMETER, str(error)) from error
        if rule.enabled and rule.send_to:
            found = self._registry.find_by_format_name(format_name(rule.send_to))
            if found is not None and found is self._queue_of(rule):
                raise MQError(NtStatus.STATUS_INVALID_PARAMETER, FEEDS_ITSELF)

    def _queue_of(self, rule: TriggerRule) -> Queue | None:
        return self._registry.find_by_format_name(format_name(rule.queue))

    def report(self, identity: Identity, text: str) -> Answer:
        """What the service of triggers tells; the answer has the rules if they have changed.

        Raises MQError(STATUS_INVALID_PARAMETER) for what is no report.
        """
        account = self.service_account()
        if not account or folded_name(identity.name) != folded_name(account) or identity.scope:
            with refusals(identity, "run triggers", "triggers"):
                require_administrator(identity)
        try:
            report = read_report(text)
        except DecodeError as error:
            raise MQError(NtStatus.STATUS_INVALID_PARAMETER, str(error)) from error
        return self._triggers.report(report, identity)


def rule_in(text: str) -> TriggerRule:
    """The rule that a caller has written; raises MQError(STATUS_INVALID_PARAMETER)."""
    rule, version = versioned_rule_in(text)
    if version:
        raise MQError(NtStatus.STATUS_INVALID_PARAMETER, "a new rule has no version")
    return rule


def versioned_rule_in(text: str) -> tuple[TriggerRule, str]:
    """The same with the `version` that it is to replace, "" for any."""
    try:
        members = read_members(text)
        version = members.pop("version", "")
        return rule_of(members), str(version)
    except DecodeError as error:
        raise MQError(NtStatus.STATUS_INVALID_PARAMETER, str(error)) from error


def version_of(trigger: Trigger) -> str:
    """A text that is another one for every other rule, and tells nothing of what is in it."""
    members = json.dumps(encode_rule(trigger.rule), sort_keys=True)
    digest = hashlib.sha256(f"{trigger.identifier}{members}".encode())
    return digest.hexdigest()[:_VERSION_DIGITS]


def described(trigger: Trigger) -> dict[str, object]:
    """A rule and how it does, for programs."""
    told = trigger.told
    return {
        **encode_rule(trigger.rule),
        "changed": iso_time(trigger.changed / 1000),
        "changed_by": trigger.changed_by,
        "running": told.running,
        "last_run": iso_time(told.last_run / 1000),
        "outcome": told.outcome,
        "trouble": told.trouble,
        "next_try": iso_time(told.next_try / 1000),
        "done": told.done,
        "failed": told.failed,
        "poisoned": told.poisoned,
        "version": version_of(trigger),
    }


def _changed(before: TriggerRule, after: TriggerRule) -> str:
    """The names of what differs."""
    names = TriggerRule.__dataclass_fields__
    return ", ".join(name for name in names if getattr(before, name) != getattr(after, name))
