"""Definitions as a text: what queues, accounts, permissions and triggers are to be like (G655).

It is TOML with one line for each setting and each entry of a list of permissions, in an order that
does not depend on when something was made, so that two texts differ where the definitions do.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.files import read_at_most
from rpcqm.cli.errors import CommandError, UsageMistake, reason
from rpcqm.client.names import HERE, path_name
from rpcqm.codec.security.permissions import MACHINE, QUEUE, Vocabulary
from rpcqm.codec.trigger_expressions import check_usable
from rpcqm.codec.trigger_rule import rule_of
from rpcqm.config.load import parse_toml
from rpcqm.config.values import ConfigurationError

VERSION = 1
LARGEST_FILE = 64 << 20
"""Octets of a file that is read: 100,000 queues with all their settings take half of it."""
UNLIMITED = "unlimited"
HEAD = f"""\
# Definitions of a queue manager, as `rpcqm export --definitions` writes them and `rpcqm apply`
# makes them. A setting that is left out stays as it is; there are no passwords here.
version = {VERSION}
"""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"\s*\[\[?\s*([\w-]+)\s*\]?\]")
_KEY = re.compile(r"""\s*(?:"([^"\\]+)"|'([^']+)'|([\w-]+))\s*(?:\.[^=]*)?=""")
"""Each part begins with what the one before cannot have: a line takes time linear in its length."""
_MOST_QUOTA = (1 << 32) - 2


def _whole(low: int, high: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _quota(value: object) -> bool:
    return value == UNLIMITED or _whole(0, _MOST_QUOTA)(value)


def _text(most: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and len(value) <= most


def _one(value: object) -> bool:
    return isinstance(value, bool)


SETTINGS: dict[str, tuple[Callable[[object], bool], str]] = {
    "label": (_text(124), "a text of at most 124 characters"),
    "transactional": (_one, "true or false"),
    "journal": (_one, "true or false"),
    "quota": (_quota, f'a number of KB or "{UNLIMITED}"'),
    "journal_quota": (_quota, f'a number of KB or "{UNLIMITED}"'),
    "authenticate": (_one, "true or false"),
    "privacy": (lambda value: value in ("none", "optional", "body"), "none, optional or body"),
    "base_priority": (_whole(-32768, 32767), "a number from -32768 to 32767"),
    "trail": (_one, "true or false"),
    "journal_max_age": (_whole(0, 0xFFFF_FFFF), "a number of seconds, 0 for any"),
    "journal_max_messages": (_whole(0, 0xFFFF_FFFF), "a number, 0 for any"),
    "max_deliveries": (_whole(0, 0xFFFF_FFFF), "a number, 0 for any"),
    "poison": (_text(31), "the name of a subqueue"),
}
"""The settings of a queue, in their order: what each may be, and that in words."""
_RIGHTS = ("owner", "allow", "deny", "sddl")


@dataclass(frozen=True, slots=True)
class Rights:
    """Who may do what: words by names of accounts and groups, or SDDL where no words fit.

    A member is None where the file does not mention it.
    """

    owner: str | None = None
    allow: Mapping[str, tuple[str, ...]] | None = None
    deny: Mapping[str, tuple[str, ...]] | None = None
    sddl: str | None = None

    @property
    def has_list(self) -> bool:
        """Whether it says who may do what, beside the owner."""
        return self.allow is not None or self.deny is not None or self.sddl is not None


@dataclass(frozen=True, slots=True)
class Definitions:
    """What a file says, or what is here; names are as people write them, keys folded."""

    accounts: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    machine: Rights | None = None
    queues: dict[str, tuple[str, dict[str, Any], Rights]] = field(default_factory=dict)
    triggers: dict[str, dict[str, Any]] = field(default_factory=dict)


# Writing


def written(definitions: Definitions) -> str:
    """The text of definitions."""
    parts = [HEAD]
    for name, groups in _ordered(definitions.accounts):
        parts.append(_table("account", {"name": name, "groups": list(groups)}))
    if definitions.machine is not None:
        parts.append("[machine]\n" + _rights_text(definitions.machine))
    for name, settings, rights in _ordered(definitions.queues):
        parts.append(_table("queue", {"name": name, **settings}) + _rights_text(rights))
    for rule in _ordered(definitions.triggers):
        parts.append(_table("trigger", {k: v for k, v in rule.items() if v is not None}))
    return "\n".join(parts)


def _ordered(found: Mapping[str, Any]) -> list[Any]:
    return [found[key] for key in sorted(found)]


def _table(kind: str, members: Mapping[str, object]) -> str:
    return f"[[{kind}]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in members.items())


def _rights_text(rights: Rights) -> str:
    lines = [] if rights.owner is None else [f"owner = {_toml(rights.owner)}"]
    if rights.sddl is not None:
        lines.append(f"sddl = {_toml(rights.sddl)}")
    for key, entries in (("deny", rights.deny), ("allow", rights.allow)):
        if entries is not None and not entries:
            lines.append(f"{key} = {{}}")
        for who, words in sorted((entries or {}).items()):
            name = who if _BARE.fullmatch(who) else _toml(who)
            lines.append(f"{key}.{name} = {_toml(list(words))}")
    return "".join(f"{line}\n" for line in lines)


def _toml(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | int):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


# Reading


def read(path: Path) -> Definitions:
    """What a file says; raises CommandError or UsageMistake with one sentence and the line."""
    text = _text_of(path)
    try:
        document = parse_toml(path, text)
    except ConfigurationError as error:
        raise UsageMistake(str(error)) from None
    return _Reader(path, _lines(text)).read(document)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            octets = read_at_most(file, LARGEST_FILE + 1)
        if len(octets) > LARGEST_FILE:
            raise CommandError(f"{path} is larger than {LARGEST_FILE:,} octets.")
        return octets.decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {reason(error)}.") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageMistake(f"{path}:{line}: it is not UTF-8 text.") from error


def _lines(text: str) -> dict[tuple[str, int, str], int]:
    """The lines of tables and of their keys: by the kind, the number of the table, and the key."""
    found: dict[tuple[str, int, str], int] = {}
    kind, numbers = "", dict[str, int]()
    for line, each in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(each):
            kind = header[1]
            numbers[kind] = numbers.get(kind, -1) + 1
            found[kind, numbers[kind], ""] = line
        elif key := _KEY.match(each):
            name = key[1] or key[2] or key[3]
            found.setdefault((kind, numbers.get(kind, 0), name), line)
    return found


class _Reader:
    """Reads a document, and knows on which lines it stands."""

    def __init__(self, path: Path, lines: dict[tuple[str, int, str], int]) -> None:
        self._path = path
        self._lines = lines

    def read(self, document: Mapping[str, Any]) -> Definitions:
        version = document.get("version")
        if version != VERSION:
            known = f"`version = {VERSION}` is what this version of rpcqm reads"
            had = "and the file has no version" if version is None else f"not {version!r}"
            raise self._wrong("", 0, "version", f"{known}, {had}")
        for key in document:
            if key not in ("version", "account", "machine", "queue", "trigger"):
                raise self._wrong("" if ("", 0, key) in self._lines else key, 0, key, "is unknown")
        made = Definitions(machine=self._machine(document))
        for number, table in self._tables(document, "account"):
            self._add(made.accounts, "account", number, self._account(number, table))
        for number, table in self._tables(document, "queue"):
            self._add(made.queues, "queue", number, self._queue(number, table))
        for number, table in self._tables(document, "trigger"):
            self._add(made.triggers, "trigger", number, self._trigger(number, table))
        return made

    def _wrong(self, kind: str, number: int, key: str, what: str) -> UsageMistake:
        line = self._lines.get((kind, number, key)) or self._lines.get((kind, number, ""), 1)
        said = f"`{key}` {what}" if key and not what.startswith("`") else what
        return UsageMistake(f"{self._path}:{line}: {said}.")

    def _tables(
        self, document: Mapping[str, Any], kind: str
    ) -> Iterator[tuple[int, Mapping[str, Any]]]:
        tables = document.get(kind, [])
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            at = (kind, 0, "") if (kind, 0, "") in self._lines else ("", 0, kind)
            raise self._wrong(*at, f"`{kind}` is written as [[{kind}]]")
        yield from enumerate(tables)

    def _add(self, found: dict[str, Any], kind: str, number: int, what: Any) -> None:
        name = what["name"] if isinstance(what, dict) else what[0]
        if name.casefold() in found:
            raise self._wrong(kind, number, "name", f"`{name}` is there twice")
        found[name.casefold()] = what

    def _name(self, kind: str, number: int, table: Mapping[str, Any]) -> str:
        name = table.get("name")
        if not isinstance(name, str) or not name:
            raise self._wrong(kind, number, "name", f"a [[{kind}]] has a `name`, which is a text")
        return name

    def _account(self, number: int, table: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        for key in table:
            if key not in ("name", "groups"):
                raise self._wrong("account", number, key, "is unknown")
        groups = table.get("groups", ["users"])
        if not _are_texts(groups):
            raise self._wrong("account", number, "groups", "is a list of texts")
        return self._name("account", number, table), tuple(groups)

    def _machine(self, document: Mapping[str, Any]) -> Rights | None:
        table = document.get("machine")
        if table is None:
            return None
        if not isinstance(table, dict):
            raise self._wrong("", 0, "machine", "is a table, [machine]")
        for key in table:
            if key not in _RIGHTS:
                raise self._wrong("machine", 0, key, "is unknown")
        return self._rights("machine", 0, table, MACHINE)

    def _queue(self, number: int, table: Mapping[str, Any]) -> tuple[str, dict[str, Any], Rights]:
        name = self._name("queue", number, table)
        try:
            path = path_name(name, HERE)
        except MQError as error:
            raise self._wrong("queue", number, "name", f"`{name}`: {error}".rstrip(".")) from None
        if path.suffix or path.queue.endswith("$") or path.computer != HERE:
            raise self._wrong("queue", number, "name", f"`{name}` is no queue of applications here")
        for key, value in table.items():
            if key in SETTINGS and not SETTINGS[key][0](value):
                raise self._wrong("queue", number, key, f"is {SETTINGS[key][1]}, not {value!r}")
            if key != "name" and key not in SETTINGS and key not in _RIGHTS:
                raise self._wrong("queue", number, key, "is unknown")
        settings = {key: table[key] for key in SETTINGS if key in table}
        return name, settings, self._rights("queue", number, table, QUEUE)

    def _rights(
        self, kind: str, number: int, table: Mapping[str, Any], words: Vocabulary
    ) -> Rights:
        given: dict[str, Any] = {key: table[key] for key in _RIGHTS if key in table}
        for key in ("owner", "sddl"):
            if key in given and not isinstance(given[key], str):
                raise self._wrong(kind, number, key, "is a text")
        if "sddl" in given and ("allow" in given or "deny" in given):
            raise self._wrong(kind, number, "sddl", "stands in place of `allow` and `deny`")
        for key in ("allow", "deny"):
            if key in given:
                given[key] = self._entries(kind, number, key, given[key], words)
        return Rights(**given)

    def _entries(
        self, kind: str, number: int, key: str, entries: Any, words: Vocabulary
    ) -> dict[str, tuple[str, ...]]:
        if not isinstance(entries, dict) or not all(map(_are_texts, entries.values())):
            raise self._wrong(kind, number, key, f'is written as `{key}.NAME = ["send"]`')
        for who, rights in entries.items():
            for word in rights:
                if word not in words.words:
                    known = ", ".join(words.words)
                    what = f"`{word}`, of {who}, is no right; there are {known}"
                    raise self._wrong(kind, number, key, what)
        return {who: tuple(rights) for who, rights in entries.items()}

    def _trigger(self, number: int, table: Mapping[str, Any]) -> dict[str, Any]:
        self._name("trigger", number, table)
        try:
            check_usable(rule_of(table))
        except DecodeError as error:
            raise self._wrong("trigger", number, "", str(error.reason).rstrip(".")) from None
        return dict(table)


def _are_texts(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and all(isinstance(each, str) for each in value)
        and not (isinstance(value, str))
    )
