"""What long runs write down of themselves: the parts they have done, and a row of docs/soak.md.

A run consists of parts.  Each part's figures and failures are kept in a file below var/soak, whose
name tells the run, the commit and the parameters: a later call with the same ones goes on where
the run was interrupted.  After each part the run's row is written anew.
"""

import argparse
import datetime
import fcntl
import hashlib
import itertools
import json
import re
import shlex
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "soak.md"
STATE = ROOT / "var" / "soak"
WRITTEN = ("docs/soak.md", "docs/evidence.md")
"""What runs write themselves: no change of what they try."""
SHOWN = 5
"""So many failures of a run are in its row."""
LONGEST = 240

HEADER = "| Run | Came to | Figures | Done | Seed | Commit | Ended | Command |"
TITLE = f"# Long runs\n\n{HEADER}\n{'|---' * 8}|\n"


@dataclass(slots=True)
class Part:
    """What came of one part.

    Figures are numbers by what they count; of those in `most` a run tells the greatest.  A failure
    is a sentence, and so is a note, about what is no failure but should be looked at.
    """

    figures: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Goal:
    """When a run is over: after so many parts, or after so many minutes of work."""

    parts: int | None = None
    minutes: float | None = None

    def reached(self, parts: int, seconds: float) -> bool:
        return (self.parts is not None and parts >= self.parts) or (
            self.minutes is not None and seconds >= 60 * self.minutes
        )

    def told(self, parts: int, seconds: float) -> str:
        """How much of it was done."""
        counted = f"{parts} of {self.parts}" if self.parts is not None else f"{parts}"
        if self.minutes is None:
            return f"{counted} parts"
        return f"{counted} parts, {seconds / 60:,.1f} of {self.minutes:g} minutes"


@dataclass(slots=True)
class State:
    """What is kept of a run."""

    seed: str
    parts: dict[str, Part] = field(default_factory=dict)
    ended: str = ""


def options(made: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser with the options that all long runs have."""
    kept = made.add_argument_group("the record")
    kept.add_argument(
        "--page", type=Path, help="write the row here; docs/soak.md if all else is as by default"
    )
    kept.add_argument("--state", type=Path, default=STATE, help="keeps what is done (var/soak)")
    kept.add_argument("--again", action="store_true", help="forget what an earlier call has done")
    kept.add_argument("--parts", type=int, metavar="N", help="end after so many more parts")
    return made


SEEDS = ("seed", "first")
"""Options by which no run becomes a smaller one."""
MOST_SEEDS = 1 << 32
BOOKKEEPING = {"page", "state", "again", "parts"}


class RunningError(Exception):
    """Another process does the same run."""


class Record:
    """One run.

    `variants` names options that are part of the run's name, and `neutral` those that do not
    decide about what is tried.
    """

    def __init__(
        self,
        made: argparse.ArgumentParser,
        given: argparse.Namespace,
        goal: Goal,
        *,
        seed: object = "none",
        name: str | None = None,
        variants: Iterable[str] = (),
        neutral: Iterable[str] = (),
    ) -> None:
        self.name = name or made.prog.rpartition("/")[2].removeprefix("soak ")
        self.goal = goal
        self.commit = commit_of(ROOT)
        changed = _changed(made, given)
        self.command = shlex.join([*made.prog.split(), *_words(made, changed)])
        deciding = {key: value for key, value in changed.items() if key not in {*neutral}}
        self.page = given.page or (None if deciding.keys() - {*SEEDS, *variants} else PAGE)
        self._left = given.parts
        self._path = given.state / f"{self._key(deciding)}.json"
        self._lock = self._locked()
        self.state = State(str(seed)) if given.again else self._kept(str(seed))

    def _key(self, deciding: Mapping[str, object]) -> str:
        told = json.dumps([self.name, self.commit, deciding], sort_keys=True, default=str)
        digest = hashlib.sha256(told.encode()).hexdigest()[:8]
        return f"{re.sub('[^a-z0-9]+', '-', self.name)}-{self.commit[:12]}-{digest}"

    def _locked(self) -> TextIO:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lock: TextIO = self._path.with_suffix(".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunningError(f"another process does this run: {self._path}") from error
        return lock

    def _kept(self, seed: str) -> State:
        if not self._path.is_file():
            return State(seed)
        told = json.loads(self._path.read_text("utf-8"))
        parts = {name: Part(**part) for name, part in told["parts"].items()}
        return State(told["seed"], parts, told["ended"])

    def keep(self, name: str, part: Part) -> None:
        """A part is done: it is kept, and the row is written."""
        self.state.parts[name] = part
        self.state.ended = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
        if self._left is not None:
            self._left -= 1
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(asdict(self.state), indent=1), "utf-8")
        new.replace(self._path)
        self.write()

    def write(self) -> None:
        """Write the row of the run on its page, if it has one."""
        if self.page:
            write_row(self.page, self.name, self.row())

    def waiting(self, parts: Iterable[str]) -> Iterator[str]:
        """Those of the parts that this call is to do, while there is time and nothing ends it."""
        for part in parts:
            if self.ends:
                return
            if part not in self.state.parts:
                yield part

    @property
    def ends(self) -> bool:
        """Whether no other part is begun: the goal is reached, or this call has done its share."""
        return self.is_over or self._left == 0

    @property
    def is_over(self) -> bool:
        return self.goal.reached(len(self.state.parts), self.seconds)

    @property
    def figures(self) -> dict[str, float]:
        """The figures of all parts, summed."""
        summed: dict[str, float] = {}
        for part in self.state.parts.values():
            for name, count in part.figures.items():
                summed[name] = summed.get(name, 0) + count
        return summed

    @property
    def most(self) -> dict[str, float]:
        """The greatest of all parts."""
        greatest: dict[str, float] = {}
        for part in self.state.parts.values():
            for name, count in part.most.items():
                greatest[name] = max(greatest.get(name, 0), count)
        return greatest

    @property
    def failures(self) -> list[str]:
        return [failure for part in self.state.parts.values() for failure in part.failures]

    @property
    def notes(self) -> list[str]:
        return [note for part in self.state.parts.values() for note in part.notes]

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.state.parts.values())

    @property
    def left(self) -> float:
        """The seconds that are left of the goal's minutes."""
        return 60 * (self.goal.minutes or 0.0) - self.seconds

    @property
    def done(self) -> str:
        """How much of the run is done."""
        return self.goal.told(len(self.state.parts), self.seconds)

    @property
    def told(self) -> str:
        """The figures in words."""
        told = [f"{_number(count)} {name}" for name, count in self.figures.items()]
        told += [f"at most {_number(count)} {name}" for name, count in self.most.items()]
        return f"{', '.join(told) or 'nothing'}; {self.seconds / 60:,.1f} minutes of work"

    def row(self) -> list[str]:
        cells = [self.name, self.outcome, self.told, self.done, self.state.seed, self.commit]
        return [*cells, self.state.ended, f"`{on_one_line(self.command)}`"]

    @property
    def outcome(self) -> str:
        """`well`, what has failed, or that the run is not over."""
        if self.failures:
            shown = [_shortened(failure) for failure in self.failures[:SHOWN]]
            more = len(self.failures) - len(shown)
            told = f"**{len(self.failures)} failed**: {'; '.join(shown)}"
            return f"{told}; and {more} more" if more else told
        return "well" if self.is_over else "well so far"

    def status(self) -> int:
        """Tell the figures; the exit status, which is 0 when the run is over and all is well."""
        print(f"{self.name}: {self.done}: {self.told}")
        for failure in self.failures:
            print(f"failed: {failure}")
        if not self.is_over:
            print("The same command goes on with the parts that are left.")
        return int(bool(self.failures) or not self.is_over)


def run_parts(record: Record, parts: Iterable[str], work: Callable[[str], Part]) -> int:
    """Do the parts that are not done, one after the other; the exit status."""
    for name in record.waiting(parts):
        record.keep(name, attempted(work, name))
    record.write()
    return record.status()


def attempted(work: Callable[[str], Part], name: str) -> Part:
    """What came of the work, which has failed if it has raised."""
    began = time.monotonic()
    try:
        part = work(name)
    except Exception as error:
        traceback.print_exc()
        part = Part(failures=[f"{name}: {type(error).__name__}: {error}"])
    part.seconds = part.seconds or time.monotonic() - began
    return part


def seeds(first: int) -> Iterator[str]:
    """Parts without an end, each of which is named by its seed."""
    for number in itertools.count(first):
        yield str(number % MOST_SEEDS)


def _changed(made: argparse.ArgumentParser, given: argparse.Namespace) -> dict[str, object]:
    """The options that are not as by default, but for those of the record itself."""
    return {
        key: value
        for key, value in vars(given).items()
        if key not in BOOKKEEPING and value != made.get_default(key)
    }


def _words(made: argparse.ArgumentParser, changed: Mapping[str, object]) -> list[str]:
    """The words of a command with these options."""
    words: list[str] = []
    for action in made._actions:
        value = changed.get(action.dest)
        if value is None:
            continue
        values = value if isinstance(value, list) else [] if value is True else [value]
        words += [*action.option_strings[-1:], *map(str, values)]
    return words


def commit_of(root: Path) -> str:
    """The commit of the tree; with changes that are not committed, a number of their own."""
    try:
        commit = _git(root, "rev-parse", "HEAD").strip()[:12]
        changes = _git(root, "diff", "HEAD", "--", ".", *(f":!{path}" for path in WRITTEN))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    if not changes:
        return commit
    return f"{commit}+{hashlib.sha256(changes.encode()).hexdigest()[:6]}"


def _git(root: Path, *words: str) -> str:
    command = ["git", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def _number(count: float) -> str:
    return f"{count:,.0f}" if count == int(count) else f"{count:,.1f}"


def _shortened(text: str) -> str:
    line = on_one_line(text)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def on_one_line(text: str) -> str:
    """A text without the place of this checkout, which means nothing elsewhere."""
    return " ".join(text.replace(f"{ROOT}/", "").split())


def write_row(page: Path, name: str, cells: Sequence[str]) -> None:
    """Put a row in the place of the run's older one; rows are in the order of their names."""
    text = page.read_text("utf-8") if page.is_file() else TITLE
    before, header, rest = text.partition(HEADER)
    if not header:
        raise ValueError(f"{page} has no table of runs")
    lines = rest.splitlines()
    end = next((number for number, line in enumerate(lines) if number and not line), len(lines))
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines[2:end]}
    rows[name] = f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    table = [*lines[:2], *(rows[key] for key in sorted(rows)), *lines[end:]]
    new = page.with_suffix(".new")
    new.write_text(before + header + "\n".join(table) + "\n", "utf-8")
    new.replace(page)


def main_of(work: Callable[[Sequence[str]], int]) -> None:
    """Run a command with the words of this process, and end with its status."""
    try:
        sys.exit(work(sys.argv[1:]))
    except RunningError as error:
        sys.exit(str(error))
