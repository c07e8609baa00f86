"""The stories that the documentation tells: commands in ```console blocks, and what they print.

A line of a story begins with the prompt of a machine (`$ `, `a$ `, `b$ `); what it prints follows.
Identifiers, times and ports differ from run to run, and columns with them, so each is compared by
its kind only. A command that names an identifier that the page has shown before is given the one
that was printed in its place. `…` stands for any text in a line, or for any lines on a line of
its own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_PROMPT = re.compile(r"(?P<machine>[a-z]*)\$ (?P<command>.*)")
_FENCE = re.compile(r"(?m)^```")
_STOP = "^C"
_VARYING = {
    "IDENTIFIER": r"\{?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}?(?:\\\d+)?",
    "TIME": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?",
    "SID": r"S-1-5-21-\d+-\d+-\d+(?:-\d+)?",
    "NUMBER": r"\b\d{15,19}\b",
    "ADDRESS": r"127\.0\.0\.1:\d+",
}
_ANY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _VARYING.items()))


@dataclass
class Step:
    """One command, on which machine, and the lines that follow it on the page."""

    machine: str
    command: str
    line: int
    expected: list[str] = field(default_factory=list)

    @property
    def stops(self) -> bool:
        """Whether this is Ctrl-C for the queue manager of the machine."""
        return self.command == _STOP


@dataclass
class Block:
    """A fenced block: its language, the number of its first line, and its lines."""

    language: str
    line: int
    lines: list[str]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    block: Block | None = None
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if not line.startswith("```"):
            if block is not None:
                block.lines.append(line)
        elif block is None:
            block = Block(line.removeprefix("```").strip(), number + 1, [])
        else:
            yield block
            block = None
    assert block is None, f"{page.name}: a block is not closed"


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return "".join(_FENCE.split(page.read_text("utf-8"))[::2])


def steps(page: Path) -> list[Step]:
    """The commands of a page's story, in their order."""
    found: list[Step] = []
    for block in blocks(page):
        if block.language == "console":
            found.extend(_steps_of(block))
    return found


def _steps_of(block: Block) -> Iterator[Step]:
    step: Step | None = None
    for number, line in enumerate(block.lines, block.line):
        if step is not None and step.command.endswith("\\"):
            step.command += f"\n{line}"
        elif match := _PROMPT.fullmatch(line):
            if step is not None:
                yield step
            step = Step(match["machine"], match["command"], number)
        else:
            assert step is not None, f"line {number} belongs to no command"
            step.expected.append(line)
    if step is not None:
        yield step


def normal(line: str) -> str:
    """A line with the kinds of what varies, and one space between columns."""
    named = _ANY.sub(lambda match: match.lastgroup or "", line)
    return " ".join(named.split())


def agrees(expected: list[str], printed: list[str]) -> bool:
    """Whether a command printed what the page shows."""
    pattern = "".join(_pattern(line) for line in expected)
    return re.fullmatch(pattern, "".join(f"{normal(line)}\n" for line in printed)) is not None


def _pattern(line: str) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*"
    return ".*".join(re.escape(part) for part in normal(line).split("…")) + r"\n"


def translations(expected: list[str], printed: list[str]) -> dict[str, str]:
    """What was printed in place of each identifier of the page."""
    shown = [match[0] for line in expected for match in _ANY.finditer(line)]
    real = [match[0] for line in printed for match in _ANY.finditer(line)]
    if len(shown) != len(real):
        return {}
    return dict(zip(shown, real, strict=True))


def translated(command: str, words: dict[str, str]) -> str:
    """A command with the identifiers of this run."""
    return _ANY.sub(lambda match: words.get(match[0], match[0]), command)


def difference(expected: list[str], printed: list[str]) -> str:
    """What the page shows and what was printed, side by side, for a failure."""
    pairs = zip_longest(expected, printed, fillvalue="(nothing)")
    return "\n".join(f"  page    {one}\n  printed {other}" for one, other in pairs)
