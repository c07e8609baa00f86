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
    "backup",
    "identity",
    "overview",
    "dcom",
    "leases",
    "metrics",
    "program",
    "dead_letters",
    "routing",
    "traces",
    "otel",
    "events",
    "tokens",
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


_OTHERS: tuple[Bound, ...] = (
    Bound(
        "binary.transfers",
        "of the address from which most come, the one that was used longest ago is read from the "
        "store again when it is needed",
        "Sources of transactional messages, for each queue that they name, that are in memory.",
        "rpcqm.binary.connection.incoming_transfers:CACHED",
        "sources",
    ),
    Bound(
        "binary.kept_transfers",
        "those are forgotten first that were for no queue here, then, of the address from which "
        "most have come, the one that was used longest ago",
        "The same in the store, where it is known over restarts how far they have come.",
        "rpcqm.binary.connection.incoming_transfers:KEPT",
        "sources",
    ),
    Bound(
        "binary.transfer_name",
        "a digest stands for the rest",
        "Characters of the names of queues by which these are told apart.",
        "rpcqm.binary.connection.incoming_transfers:LONGEST_NAME",
        "characters",
    ),
    Bound(
        "rpc.request_templates_of_a_handle",
        "they are looked for among all",
        "Templates that a connection keeps with a queue that it has open.",
        "rpcqm.fast.doors.rpc_send_lane:OF_HANDLE",
        "templates",
    ),
    Bound(
        "rpc.open_queues_of_a_lane",
        "all of them are forgotten, and found again",
        "Open queues that a connection sends to by templates without looking for them.",
        "rpcqm.fast.doors.rpc_send_lane:OF_LANE",
        "open queues",
    ),
    Bound(
        "rpc.templated_messages_of_a_turn",
        "those that wait are carried out",
        "Messages for one queue, or removals from it, that wait for the end of a turn.",
        "rpcqm.fast.turn:MOST_MESSAGES",
        "messages",
    ),
    Bound(
        "rpc.templated_octets_of_a_turn",
        "those that wait are carried out",
        "Octets of bodies for one queue that wait for the end of a turn.",
        "rpcqm.fast.turn:MOST_BYTES",
        "octets",
    ),
    Bound(
        "binary.packets_not_looked_at",
        "the next packet is looked at again",
        "Packets in a row that are not tried with any shape, because as many before had none.",
        "rpcqm.fast.doors.session_arrivals:MOST_MISSED",
        "packets",
    ),
    Bound(
        "binary.pending_messages",
        "nothing more is read from it until half of them are on the disk",
        "Messages of one connection that are not on the disk yet.",
        "rpcqm.binary.connection.receiving:MOST_PENDING",
        "messages",
    ),
    Bound(
        "identity.recent_octets",
        "those that came longest ago are not compared any more",
        "Messages at port 1801 that are remembered, to compare those that come again with them.",
        "rpcqm.binary.connection.recent_messages:MOST_OCTETS",
        "octets",
    ),
)


@cache
def bounds() -> tuple[Bound, ...]:
    """All bounds in the order of the page; those of one subject as the sources have them."""
    found = [*_of_settings(), *_of_constants(), *_OTHERS]
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
