"""The questions of check.ps1, and the form of its answers.

A file of answers, version 1, is ASCII, a line each:

    rpcqm-windows-check 1
    about windows 10.0.20348
    A09 windows 0xC00E0003 COMException
    A09 rpcqm 0xC00E0003 COMException
    # whatever explains something to people
    end 4

The number behind `end` counts the lines before it, so that a file that was cut is known. An answer
is `ok`, `nothing`, `yes`, `no`, `number N`, `text T`, `value TYPE T`, `class 0xNNNN`, `octets TYPE
HEX`, a code (`0xNNNNNNNN`, with the name of an exception behind it), or `not-asked`; blanks,
backslashes and characters beyond ASCII are `\\uNNNN` in T, and `-` is an empty one.
"""

import csv
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSION = 1
HEADER = "rpcqm-windows-check"
NOT_ASKED = "not-asked"
PLACES = ("windows", "rpcqm")
"""Whose queue manager has answered: that of Windows, or the rpcqm, asked by Windows."""
QUESTIONS = Path(__file__).parent / "questions.csv"
_LISTS = ("of", "why", "replayed")
_CODE = re.compile(r"(0x[0-9A-F]{8})(?: \w+)?")
_LINE = re.compile(r"([A-Z][0-9]{2}) (windows|rpcqm) ([!-~](?:[ -~]*[!-~])?)")
_PRIVATE = {
    "an address": re.compile(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])"),
    "an address of IPv6": re.compile(r"[0-9A-Fa-f:]*::[0-9A-Fa-f:]*|(?:[0-9A-Fa-f]{1,4}:){4,}"),
    "a SID": re.compile(r"S-1-[0-9]+(?:-[0-9]+)+"),
    "a GUID": re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    "an address of mail": re.compile(r"[\w.]+@[\w.]+"),
}
"""What may not be in a file that is given away."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, of whom, and what rpcqm answers.

    `here` is an answer, `json` in its place the value that our decoder gives for octets.
    `windows` is what Windows is said to answer, where that is something else. `why` names
    decisions and pages that the answer proves or ends. `replayed` are tests that ask the same of
    peers here; where there are none, `not_replayed` says why.
    """

    id: str
    asks: str
    of: tuple[str, ...]
    here: str = ""
    json: str = ""
    windows: str = ""
    why: tuple[str, ...] = ()
    replayed: tuple[str, ...] = ()
    not_replayed: str = ""


class ReportError(Exception):
    """A file is not what check.ps1 writes; the text says where."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a file holds: answers by question and place, and what it tells about the machine."""

    about: dict[str, str] = field(default_factory=dict)
    answers: dict[tuple[str, str], str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def questions(path: Path = QUESTIONS) -> dict[str, Question]:
    """All questions by their identifiers, in the order of the file."""
    with path.open(encoding="utf-8", newline="") as file:
        found = [_question(row) for row in csv.DictReader(file)]
    return {each.id: each for each in found}


def _question(row: dict[str, str]) -> Question:
    fields: dict[str, Any] = {
        name: tuple(value.split()) if name in _LISTS else value for name, value in row.items()
    }
    return Question(**fields)


def code_of(answer: str) -> str:
    """An answer without the name of the exception that follows a code."""
    match = _CODE.fullmatch(answer)
    return match[1] if match else answer


def read_report(text: str) -> Report:
    """What a file of answers says; raises ReportError."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    _check_frame(lines)
    report = Report()
    remarks: list[str] = []
    for number, line in enumerate(lines[1:-1], 2):
        _check_private(number, line)
        kind, _, rest = line.partition(" ")
        if kind == "#":
            remarks.append(rest)
        elif kind == "about":
            name, _, value = rest.partition(" ")
            report.about[name] = value
        else:
            _add_answer(report, number, line)
    return Report(report.about, report.answers, tuple(remarks))


def _check_frame(lines: list[str]) -> None:
    name, _, version = lines[0].removeprefix("\ufeff").partition(" ") if lines else ("", "", "")
    if name != HEADER:
        raise ReportError(f"the first line is not `{HEADER} {VERSION}`")
    if version != str(VERSION):
        raise ReportError(f"it has version {version} of the form; this reads version {VERSION}")
    if lines[-1] != f"end {len(lines) - 1}":
        raise ReportError(f"it does not end with `end {len(lines) - 1}`: it was cut or changed")


def _check_private(number: int, line: str) -> None:
    for what, pattern in _PRIVATE.items():
        if pattern.search(line):
            raise ReportError(f"line {number} seems to have {what}; take it out first")


def _add_answer(report: Report, number: int, line: str) -> None:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ReportError(f"line {number} is no answer: {line[:60]}")
    if (match[1], match[2]) in report.answers:
        raise ReportError(f"line {number} answers {match[1]} of {match[2]} again")
    report.answers[match[1], match[2]] = match[3]


def value_of_octets(answer: str) -> str | None:
    """The value, in JSON, that our decoder has for an answer `octets TYPE HEX`; else None."""
    kind, _, rest = answer.partition(" ")
    number, _, octets = rest.partition(" ")
    if kind != "octets":
        return None
    # Only now, because most answers are no octets.
    from rpcqm.codec.bodies.described import described_body

    told = described_body(bytes.fromhex(octets.removeprefix("-")), int(number))
    return json.dumps(told.get("undecoded", told["value"]), ensure_ascii=True)
