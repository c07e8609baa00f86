"""What commands print: tables for people, JSON for programs, progress on a terminal."""

import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TextIO

from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.text import json_text, visible, within_calendar


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    print(json_text(value, indent=2))


def json_line(value: object) -> str:
    """A JSON document without a line break."""
    return json_text(value)


class Table:
    """Rows under aligned headings; columns whose heading begins with `>` are numbers.

    On a terminal a line is cut where the screen ends; elsewhere nothing is.
    """

    def __init__(self, headings: Sequence[str], stream: TextIO | None = None) -> None:
        self._headings = [heading.lstrip(">") for heading in headings]
        self._right = [heading.startswith(">") for heading in headings]
        self._stream = stream or sys.stdout
        self._rows: list[list[str]] = []

    def add(self, *cells: object) -> None:
        self._rows.append([visible(str(cell)) for cell in cells])

    def print(self) -> None:
        widths = [max(map(display_width, column)) for column in zip(*self._all(), strict=True)]
        for row in self._all():
            print(self._cut(self._line(row, widths)), file=self._stream)

    def _all(self) -> list[list[str]]:
        return [self._headings, *self._rows]

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        cells = []
        for text, width, right in zip(row, widths, self._right, strict=True):
            padding = " " * (width - display_width(text))
            cells.append(padding + text if right else text + padding)
        return "  ".join(cells).rstrip()

    def _cut(self, line: str) -> str:
        if not self._stream.isatty():
            return line
        return cut(line, shutil.get_terminal_size().columns)


def print_fields(fields: Mapping[str, object]) -> None:
    """Names and values, one pair per line."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        lines = visible(str(value), keep="\n").split("\n")
        print(f"{name:<{width}}  " + f"\n{'':<{width}}  ".join(lines))


def display_width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """The text, its end replaced by an ellipsis where it is wider than `width`."""
    if display_width(text) <= width:
        return text
    taken, room = [], width - 1
    for character in text:
        room -= _character_width(character)
        if room < 0:
            break
        taken.append(character)
    return "".join(taken) + "…"


def aligned(cells: Sequence[str], columns: Sequence[tuple[str, int]], last: str) -> str:
    """A line of a list whose columns have widths of their own, so that lines come one by one."""
    padded = [
        text + " " * (width - display_width(text))
        for text, (_, width) in zip(cells, columns, strict=True)
    ]
    return "  ".join([*padded, last]).rstrip()


def size_text(size: int) -> str:
    """A number of bytes for people."""
    if size < 1024:
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        if amount < 1024 or unit == "TiB":
            break
    return f"{amount:.1f} {unit}"


def time_text(seconds: float) -> str:
    """A moment in local time; empty for 0."""
    if not seconds:
        return ""
    return datetime.fromtimestamp(within_calendar(seconds)).strftime("%Y-%m-%d %H:%M:%S")


def told_time(text: str | None) -> str:
    """A moment that the queue manager has told in ISO 8601, as `time_text`; empty for None."""
    return time_text(datetime.fromisoformat(text).timestamp()) if text else ""


def counted(number: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class ProgressDisplay:
    """How far long work is, on standard error and only on a terminal.

    Nothing is shown during the first half second, nor where the output itself scrolls by
    (`scrolls`). `total` is None where the end is not known.
    """

    INTERVAL = 100
    DELAY = 500

    def __init__(
        self,
        verb: str,
        total: int | None = None,
        stream: TextIO | None = None,
        clock: Clock | None = None,
        scrolls: bool = False,
    ) -> None:
        self._verb = verb
        self._total = total
        self._stream = stream or sys.stderr
        self._clock = clock or SystemClock()
        self._shown = False
        self._count = 0
        self._active = self._stream.isatty() and not scrolls
        self._began = self._clock.monotonic()
        self._next = self._began + self.DELAY

    def __enter__(self) -> "ProgressDisplay":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    @property
    def count(self) -> int:
        """The steps that are done."""
        return self._count

    def advance(self, steps: int = 1) -> None:
        self._count += steps
        if self._active and (now := self._clock.monotonic()) >= self._next:
            self._next = now + self.INTERVAL
            self._show(now)

    def advance_to(self, count: int) -> None:
        """So many steps are done; 0 begins anew."""
        self._count = 0 if count < self._count else self._count
        self.advance(count - self._count)

    def _show(self, now: int) -> None:
        rate = self._count * 1000 / (now - self._began)
        text = f"{self._verb} {self._count:,}"
        if self._total:
            text += f" of {self._total:,} ({self._count / self._total:.0%})"
        self._stream.write(f"\r{text}, {rate:,.0f}/s\x1b[K")
        self._stream.flush()
        self._shown = True
