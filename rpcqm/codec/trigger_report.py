"""Reports of the service of triggers, and the queue manager's answers to them.

Both are JSON: the service reports how its rules do, and gets the rules if they have changed.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.codec.trigger_rule import TriggerRule, encode_rule, rule_of

LARGEST_REPORT = 1 << 20
"""Octets of a report of the service of triggers.

Bound `triggers.largest_report` [octets]: the call is refused.
"""
LONGEST_OUTCOME = 512
"""Characters that are kept of the last outcome of a rule."""
MOST_COUNTED = 1_000
"""Messages of one rule whose failures are remembered."""
LANES = 8
"""Priorities, each of which has lookup identifiers of its own."""
LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Position:
    """How far a rule has come, which outlives restarts.

    `made` is when its queue was made (seconds since 1970), `seen` has the largest lookup identifier
    that was looked at by priority, from 7 to 0, `failures` how often it has failed by lookup
    identifier.
    """

    made: int = 0
    seen: tuple[int, ...] = (0,) * LANES
    failures: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleReport:
    """How a rule does; times are milliseconds since 1970, counts those since the last report.

    `trouble` is a sentence about what keeps the whole rule from working, "" if it works.
    """

    running: int = 0
    last_run: int = 0
    outcome: str = ""
    trouble: str = ""
    next_try: int = 0
    done: int = 0
    failed: int = 0
    poisoned: int = 0
    position: Position = Position()


@dataclass(frozen=True, slots=True)
class Report:
    """A report; `generation` is that of the rules it has, `stops` marks its last report."""

    instance: str
    holder: str
    generation: int = -1
    stops: bool = False
    rules: Mapping[str, RuleReport] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NumberedRule:
    """A rule with the identifier that it keeps as long as it is for one queue in one mode."""

    identifier: str
    rule: TriggerRule
    position: Position = Position()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a report.

    `other` names another service that works, "" if there is no other one. `rules` is None if the
    service has them already.
    """

    generation: int
    other: str = ""
    rules: tuple[NumberedRule, ...] | None = None


def encode_report(report: Report) -> str:
    """A report as JSON."""
    members = asdict(report)
    for told in members["rules"].values():
        told["position"] = _encoded(told["position"])
    return json.dumps(members, separators=(",", ":"))


def encode_position(position: Position) -> bytes:
    """A position as the store keeps it."""
    return json.dumps(_encoded(asdict(position)), separators=(",", ":")).encode()


def _encoded(position: dict[str, Any]) -> dict[str, Any]:
    failures = {str(key): count for key, count in position["failures"].items()}
    return {**position, "failures": failures}


def read_position(text: bytes) -> Position:
    """A position that was kept; raises DecodeError if it is damaged."""
    try:
        return _position(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DecodeError("damaged position of a trigger") from error


def read_report(text: str) -> Report:
    """Read a report; raises DecodeError if the text is no report."""
    if len(text) > LARGEST_REPORT:
        raise DecodeError("the report is too long")
    try:
        members = json.loads(text)
        rules = {str(key): _rule_report(told) for key, told in dict(members["rules"]).items()}
        return Report(
            str(members["instance"])[:64],
            str(members["holder"])[:128],
            _number(members["generation"], -1),
            bool(members["stops"]),
            rules,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DecodeError(f"no report of triggers: {error!r}") from error


def _rule_report(members: Mapping[str, Any]) -> RuleReport:
    return RuleReport(
        running=_number(members["running"]),
        last_run=_number(members["last_run"]),
        outcome=str(members["outcome"])[:LONGEST_OUTCOME],
        trouble=str(members["trouble"])[:LONGEST_OUTCOME],
        next_try=_number(members["next_try"]),
        done=_number(members["done"]),
        failed=_number(members["failed"]),
        poisoned=_number(members["poisoned"]),
        position=_position(members["position"]),
    )


def _position(members: Mapping[str, Any]) -> Position:
    seen = tuple(map(_number, members["seen"]))
    failures = {int(key): _number(count) for key, count in dict(members["failures"]).items()}
    if len(seen) != LANES or len(failures) > MOST_COUNTED:
        raise ValueError("a position of another shape")
    return Position(_number(members["made"]), seen, failures)


def _number(value: Any, low: int = 0) -> int:
    if not isinstance(value, int) or not low <= value <= LARGEST:
        raise ValueError(f"{value!r} is no number in bounds")
    return int(value)


def encode_answer(answer: Answer) -> str:
    """An answer as JSON."""
    rules = None
    if answer.rules is not None:
        rules = [
            {
                "id": each.identifier,
                "rule": encode_rule(each.rule),
                "position": _encoded(asdict(each.position)),
            }
            for each in answer.rules
        ]
    members = {"generation": answer.generation, "other": answer.other, "rules": rules}
    return json.dumps(members, separators=(",", ":"))


def read_answer(text: str) -> Answer:
    """Read an answer; raises DecodeError if the text is no answer."""
    try:
        members = json.loads(text)
        rules = members["rules"]
        read = None if rules is None else tuple(map(_numbered, rules))
        return Answer(int(members["generation"]), str(members["other"]), read)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DecodeError(f"no answer about triggers: {error!r}") from error


def _numbered(members: Mapping[str, Any]) -> NumberedRule:
    rule, position = rule_of(members["rule"]), _position(members["position"])
    return NumberedRule(str(members["id"]), rule, position)
