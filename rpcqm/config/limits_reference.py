"""The bounds on everything that a stranger can make grow: names, values, and consequences.

docs/limits.md and `rpcqm doctor` are made from what stands beside the constants and settings that
hold them. A test requires for each bound a test with its name (`@pytest.mark.bound`).
"""

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path

from rpcqm.config.schema import Configuration, settings

PACKAGE = Path(__file__).parents[1]
SUBJECTS = [
    "limits",
    "connections",
    "rpc",
    "bulk",
    "guard",
    "log",
    "outgoing",
    "names",
    "binary",
    "strangers",
    "srmp",
    "packet",
    "http",
    "signatures",
    "body",
    "file",
    "directory",
    "backup",
    "identity",
    "overview",
    "dcom",
    "leases",
    "metrics",
    "program",
    "dead_letters",
    "orders",
    "routing",
    "traces",
    "otel",
    "events",
    "tokens",
    "domain",
    "search",
    "triggers",
    "console",
]
"""What bounds are of, the first part of their names, in the order of the page."""
MARK = "Bound `"
"""How the last paragraph begins of the text beside a constant that is a bound.

The whole of it is "Bound `NAME` [UNIT]: CONSEQUENCE."; the first paragraph says what is bounded.
"""
_DECLARED = re.compile(
    r"^(?P<indent> *)(?P<constant>\w+)(?:: \w+)? = .+\n"
    r' *"""(?P<text>(?:(?!""")(?s:.))+?)\n\n'
    rf" *{MARK}(?P<name>[a-z0-9_.]+)` \[(?P<unit>[^]]+)\]: "
    r'(?P<beyond>(?:(?!""")(?s:.))+?)\.\n *"""',
    re.MULTILINE,
)
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound.

    `name` is the key of a setting, or a name of its own where the bound is fixed; then `where` is
    the module and the attribute that hold its value, and `unit` what that counts.
    """

    name: str
    beyond: str
    text: str
    where: str = ""
    unit: str = ""

    @property
    def is_setting(self) -> bool:
        return not self.where

    def value(self, configuration: Configuration) -> int:
        """The bound under a configuration."""
        if self.is_setting:
            return int(attrgetter(self.name)(configuration))
        module, _, path = self.where.partition(":")
        found: object = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
            if isinstance(found, type):
                found = found()
        if not isinstance(found, int | float):
            raise TypeError(f"{self.where} is no number")
        return int(found)


@cache
def bounds() -> tuple[Bound, ...]:
    """All bounds in the order of the page; those of one subject as the sources have them."""
    found = [*_of_settings(), *_of_constants()]
    return tuple(sorted(found, key=lambda bound: SUBJECTS.index(bound.name.partition(".")[0])))


def _of_settings() -> Iterator[Bound]:
    for setting in settings():
        if setting.about.beyond:
            yield Bound(setting.key, setting.about.beyond, setting.about.text)


def _of_constants() -> Iterator[Bound]:
    """What the sources say of their constants; only the page and `doctor` read them."""
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text("utf-8")
        if MARK in source:
            module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            yield from (_bound(module, source, found) for found in _DECLARED.finditer(source))


def _bound(module: str, source: str, found: re.Match[str]) -> Bound:
    constant = found["constant"]
    if found["indent"]:
        constant = f"{_CLASS.findall(source, 0, found.start())[-1]}.{constant}"
    return Bound(
        found["name"],
        " ".join(found["beyond"].split()),
        " ".join(found["text"].partition("\n\n")[0].split()),
        f"{module}:{constant}",
        found["unit"],
    )
