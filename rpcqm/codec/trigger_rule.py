"""Rules of triggers: for which messages of a queue something is to be done, and what.

A rule is written as a JSON object, whose members are the fields of `TriggerRule`. The queue manager
keeps rules and runs nothing; the service of triggers (`rpcqm.triggers`) runs them.
"""

import enum
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit
from uuid import UUID

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.filters.patterns import pattern_of_glob
from rpcqm.codec.names.written import format_name
from rpcqm.codec.security.identifier import Sid

LARGEST_RULE = 65_536
"""Octets of a rule as JSON.

Every rule is held in memory, and read by the service as a whole.

Bound `triggers.largest_rule` [octets]: the rule is refused.
"""
LONGEST_TEXT = 4_096
"""Characters of a condition, of an argument and of an address in a rule.

Conditions are looked at for every message.

Bound `triggers.longest_text` [characters]: the rule is refused.
"""
MOST_ARGUMENTS = 256
"""Arguments of a rule's program.

Bound `triggers.most_arguments` [arguments]: the rule is refused.
"""
MOST_AT_ONCE = 64
"""Messages for which one rule does something at a time.

Each of them may be a process.

Bound `triggers.most_at_once` [messages]: the rule is refused.
"""
LONGEST_NAME = 64
LONGEST_RUN = 3_600
LONGEST_BACK_OFF = 86_400
"""Seconds."""
MOST_ATTEMPTS = 1_000
LARGEST_NUMBER = 0xFFFF_FFFF

PLACEHOLDERS = (
    "{label}",
    "{text}",
    "{queue}",
    "{lookup-id}",
    "{id}",
    "{correlation-id}",
    "{priority}",
    "{class}",
    "{size}",
    "{application-tag}",
    "{sender}",
    "{source}",
)
"""Arguments that stand for a value of the message."""
END_OF_OPTIONS = "--"
HIDDEN_ARGUMENTS = "(arguments are for administrators)"
DEAD_LETTER = "dead-letter"
CLASSES = ("normal", "report", "acknowledgement", "refusal")
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\]{1,64}")
_BRACED = re.compile(r"\{[^{}\s]*\}")
_SHELLS = re.compile(
    r"(?:(?:ba|da|z|k|c|tc|fi)?sh|busybox|env|python[0-9.]*|perl|ruby|node|php|lua[0-9.]*|awk|gawk)"
)
BOUNDS = {
    "priority_from": (0, 7),
    "priority_to": (0, 7),
    "size_from": (0, LARGEST_NUMBER),
    "size_to": (0, LARGEST_NUMBER),
    "application_tag": (0, LARGEST_NUMBER),
    "parallelism": (1, MOST_AT_ONCE),
    "time_limit": (1, LONGEST_RUN),
    "back_off": (1, LONGEST_BACK_OFF),
    "longest_back_off": (1, LONGEST_BACK_OFF),
    "poison_after": (0, MOST_ATTEMPTS),
}
"""From where to where the numbers of a rule go."""


class Mode(enum.StrEnum):
    """What becomes of the message."""

    PEEK = "peek"
    RECEIVE = "receive"
    TRANSACTION = "transaction"


@dataclass(frozen=True, slots=True)
class TriggerRule:
    """A rule; sizes are octets, times seconds.

    A condition that is None, or an empty text, holds for every message; all of them must hold.
    One of `program`, `url` and `send_to` says what is done. A message for which that has failed
    `poison_after` times (0: for ever) goes to `poison_queue`: a subqueue of its queue such as
    `;poison`, another queue, or `dead-letter`; with "" it is passed over.
    """

    name: str
    queue: str
    mode: str = Mode.TRANSACTION
    enabled: bool = True
    label: str = ""
    priority_from: int | None = None
    priority_to: int | None = None
    message_class: str = ""
    text: str = ""
    xpath: str = ""
    json_path: str = ""
    size_from: int | None = None
    size_to: int | None = None
    sender: str = ""
    source: str = ""
    application_tag: int | None = None
    program: tuple[str, ...] = ()
    url: str = ""
    send_to: str = ""
    parallelism: int = 1
    time_limit: int = 60
    back_off: int = 1
    longest_back_off: int = 300
    poison_after: int = 5
    poison_queue: str = ";poison"

    @property
    def looks_at_body(self) -> bool:
        """Whether the body has to be read before it is clear whether the conditions hold."""
        return bool(self.text or self.xpath or self.json_path)

    @property
    def action(self) -> str:
        """What it does, in a few words."""
        if self.program:
            return f"run {self.program[0]}"
        return f"POST to {self.address}" if self.url else f"send to {self.send_to}"

    @property
    def address(self) -> str:
        """The `url` without its query, which may have a secret in it."""
        return self.url.partition("#")[0].partition("?")[0]

    @property
    def without_secrets(self) -> "TriggerRule":
        """The rule without a program's arguments and the query of an address (G796)."""
        program = self.program[:1] + ((HIDDEN_ARGUMENTS,) if self.program[1:] else ())
        url = self.url if self.url == self.address else f"{self.address}?hidden"
        return replace(self, program=program, url=url)


_TYPES = get_type_hints(TriggerRule)
MEMBERS = tuple(field.name for field in fields(TriggerRule))


def encode_rule(rule: TriggerRule) -> dict[str, Any]:
    """The members of a rule, as JSON has them."""
    members = asdict(rule)
    members["program"] = list(rule.program)
    members["mode"] = str(rule.mode)
    return members


def read_rule(text: str | bytes) -> TriggerRule:
    """The rule in a JSON text; raises DecodeError with a clause about what is wrong with it."""
    return rule_of(read_members(text))


def read_members(text: str | bytes) -> dict[str, Any]:
    """The JSON object in a text, as short as a rule; raises DecodeError."""
    if len(text) > LARGEST_RULE:
        raise DecodeError(f"the rule has {len(text):,} octets, and may have {LARGEST_RULE:,}")
    try:
        members = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError("the rule is no JSON") from error
    if not isinstance(members, dict):
        raise DecodeError("the rule is no JSON object")
    return members


def rule_of(members: Mapping[str, Any]) -> TriggerRule:
    """A rule of its members, whose types and bounds are right; raises DecodeError."""
    for name in members:
        if name not in _TYPES:
            raise DecodeError(f"a rule has no member `{name}`")
    for name in ("name", "queue"):
        if not members.get(name):
            raise DecodeError(f"the rule has no {name}")
    rule = TriggerRule(**{name: _typed(name, value) for name, value in members.items()})
    _check(rule)
    return rule


def _typed(name: str, value: Any) -> Any:
    if name == "program":
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            return tuple(value)
        raise DecodeError("`program` is a list of texts")
    hint = _TYPES[name]
    kinds = get_args(hint) if get_origin(hint) else (hint,)
    wrong_bool = isinstance(value, bool) and bool not in kinds
    if wrong_bool or not isinstance(value, kinds):
        raise DecodeError(f"`{name}` has a value of a wrong type")
    return value


def _check(rule: TriggerRule) -> None:
    _check_texts(rule)
    _check_numbers(rule)
    _check_names(rule)
    _check_action(rule)
    if len(json.dumps(encode_rule(rule))) > LARGEST_RULE:
        raise DecodeError(f"the rule is longer than {LARGEST_RULE:,} octets")


def _check_texts(rule: TriggerRule) -> None:
    for name in MEMBERS:
        value = getattr(rule, name)
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and len(text) > LONGEST_TEXT:
                raise DecodeError(
                    f"`{name}` has {len(text):,} characters, and may have {LONGEST_TEXT:,}"
                )
            if isinstance(text, str) and "\0" in text:
                raise DecodeError(f"`{name}` has a null character")


def _check_numbers(rule: TriggerRule) -> None:
    for name, (low, high) in BOUNDS.items():
        value = getattr(rule, name)
        if value is not None and not low <= value <= high:
            raise DecodeError(f"`{name}` is {value}, and goes from {low:,} to {high:,}")
    for low_name, high_name in (("priority_from", "priority_to"), ("size_from", "size_to")):
        low_value, high_value = getattr(rule, low_name), getattr(rule, high_name)
        if None not in (low_value, high_value) and low_value > high_value:
            raise DecodeError(f"`{low_name}` is above `{high_name}`, so that no message matches")
    if rule.longest_back_off < rule.back_off:
        raise DecodeError("`longest_back_off` is below `back_off`")


def _check_names(rule: TriggerRule) -> None:
    name = rule.name
    if not _NAME.fullmatch(name) or not name.isprintable() or name != name.strip():
        raise DecodeError(
            f"{name!r} is no name of a trigger, which has 1 to {LONGEST_NAME} printable characters "
            "and no slash"
        )
    if rule.mode not in set(Mode):
        raise DecodeError(f"`mode` is one of {', '.join(Mode)}")
    if rule.message_class and rule.message_class not in CLASSES:
        raise DecodeError(f"`message_class` is one of {', '.join(CLASSES)}")
    for member in ("queue", "send_to", "poison_queue"):
        text = getattr(rule, member)
        if text.startswith(";") and member == "poison_queue":
            text = rule.queue + text
        if text and not (member == "poison_queue" and text == DEAD_LETTER):
            _check_queue(member, text)
    _check_senders(rule)


def _check_senders(rule: TriggerRule) -> None:
    try:
        if rule.sender:
            Sid.parse(rule.sender)
        if rule.source:
            UUID(rule.source)
        pattern_of_glob(rule.label)
    except ValueError as error:
        raise DecodeError(f"a condition is wrong: {error}") from error


def _check_queue(member: str, text: str) -> None:
    try:
        format_name(text)
    except MQError as error:
        raise DecodeError(f"`{member}` names no queue: {text!r}") from error


def _check_action(rule: TriggerRule) -> None:
    if sum(map(bool, (rule.program, rule.url, rule.send_to))) != 1:
        raise DecodeError("a rule has one of `program`, `url` and `send_to`")
    if rule.program:
        _check_program(rule.program)
    elif rule.url:
        _check_url(rule.url)


def _check_program(words: tuple[str, ...]) -> None:
    """Values of messages are arguments of their own, never part of a program for a shell."""
    if len(words) > MOST_ARGUMENTS:
        raise DecodeError(f"`program` has {len(words)} arguments, and may have {MOST_ARGUMENTS}")
    if not words[0].startswith("/"):
        raise DecodeError("`program` begins with the whole path of a program, as /usr/bin/mail")
    shell = _is_shell(words[0])
    for before, word in pairwise(words):
        if _BRACED.fullmatch(word) and word not in PLACEHOLDERS:
            raise DecodeError(f"there is no value {word}; there are {', '.join(PLACEHOLDERS)}")
        if word not in PLACEHOLDERS and any(each in word for each in PLACEHOLDERS):
            raise DecodeError(f"a value of a message is a whole argument, not a part of {word!r}")
        if word in PLACEHOLDERS and shell and before.startswith("-") and before != END_OF_OPTIONS:
            raise DecodeError(f"{word} behind {before} would be a program for {words[0]}")


def check_what_runs(rule: TriggerRule) -> None:
    """Refuse a rule by which a shell would run what a message names; raises DecodeError.

    Other programs run shells, such as `timeout`, and shells run shells. It is asked when a rule is
    made or changed (G721): those that are kept can be read.
    """
    shell, named = "", False
    for word in rule.program:
        if shell and not named and word in PLACEHOLDERS:
            raise DecodeError(f"{word} would be a program for {shell}: name what it runs before it")
        if _is_shell(word):
            shell = word
        elif shell and not word.startswith("-") and not (shell.endswith("env") and "=" in word):
            named = True


def _is_shell(word: str) -> bool:
    return _SHELLS.fullmatch(word.rpartition("/")[2]) is not None


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        right = False
    if not right or not url.isascii() or not url.isprintable() or " " in url:
        raise DecodeError("`url` is no address that begins with http:// or https://")
    if "@" in parts.netloc:
        raise DecodeError("`url` has a password in it, which everybody would see who lists rules")
