"""Lines of files as messages: `send --lines`, and the cells of tables (G658).

A line of a file is a body, a JSON object as `peek --json` prints it, or a row of a table.
"""

import base64
import binascii
import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from rpcqm.base.text import visible
from rpcqm.cli.errors import CommandError, UsageMistake, reason
from rpcqm.client.message_fields import check_size, message_identifier
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.packet.enums import BodyType

STANDARD_INPUT = "-"
LONGEST_LINE = 16 << 20
"""Octets of a line, or of a row: a body of 4 MiB in Base64, and some."""
DELIMITERS = ",;\t"
"""What may stand between the cells of a table."""
_FORMULAS = tuple("=+-@\t\r\n'\uff1d\uff0b\uff0d\uff20")
"""Beginnings of what a spreadsheet takes for a formula, before which an apostrophe is written.

The last four are the first four as wide as characters of Chinese or Japanese.
"""

Typed = Callable[[bytes], tuple[bytes, int]]
"""A body and its type, of the octets of a line."""


# Reading


def messages_of(
    file: str, kind: str, base: OutgoingMessage, typed: Typed
) -> Iterator[OutgoingMessage]:
    """A message like `base` for each line; empty lines of JSON and of tables are skipped.

    Raises UsageMistake with the line of what is wrong, CommandError for a file that is not there.
    """
    with _opened(file) as lines:
        if kind == "csv":
            yield from _of_table(file, lines, base)
            return
        for number, line in enumerate(iter(lambda: lines.readline(LONGEST_LINE + 1), b""), 1):
            if len(line) > LONGEST_LINE:
                raise UsageMistake(
                    f"{file}:{number}: the line is longer than {LONGEST_LINE:,} octets."
                )
            octets = line.removesuffix(b"\n").removesuffix(b"\r")
            if kind == "text":
                body, body_type = typed(octets)
                yield _checked(file, number, replace(base, body=body, body_type=body_type))
            elif octets.strip():
                yield _of_members(file, number, _object(file, number, octets), base)


def check(file: str, kind: str, base: OutgoingMessage, typed: Typed) -> int | None:
    """How many messages a file has, which is read once before any is sent.

    None for standard input, which can be read once only.
    """
    if file == STANDARD_INPUT:
        return None
    return sum(1 for _ in messages_of(file, kind, base, typed))


def _opened(file: str) -> BinaryIO:
    if file == STANDARD_INPUT:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {reason(error)}.") from error


def _object(file: str, number: int, octets: bytes) -> Mapping[str, Any]:
    try:
        members = json.loads(octets)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise UsageMistake(f"{file}:{number}: the line is no JSON object.")
    return members


def _of_table(file: str, lines: BinaryIO, base: OutgoingMessage) -> Iterator[OutgoingMessage]:
    csv.field_size_limit(LONGEST_LINE)
    text = io.TextIOWrapper(lines, encoding="utf-8-sig", newline="")
    parts = _Rows(file, text)
    rows = csv.DictReader(parts, strict=True, delimiter=parts.delimiter())
    try:
        if rows.fieldnames is None or not {"body", "body_base64"}.intersection(rows.fieldnames):
            raise UsageMistake(f"{file}:1: the first row names no column `body` or `body_base64`.")
        for row in rows:
            parts.characters = 0
            cells = {key: _plain(value) for key, value in row.items() if key and value}
            yield _of_members(file, rows.line_num, cells, base)
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageMistake(f"{file}:{rows.line_num}: it is no CSV in UTF-8: {error}.") from error


class _Rows:
    """The lines of a table, of which a row may have many; it ends with a row without an end."""

    def __init__(self, file: str, text: TextIO) -> None:
        self._file, self._text = file, text
        self.characters = 0
        """Those of the row that is being read."""
        self._first: str | None = None

    def delimiter(self) -> str:
        """What stands between the cells: the first of `DELIMITERS` behind a name of a column.

        Spreadsheets write semicolons where a comma stands in numbers, as in most of Europe.
        """
        self._first = self._text.readline(LONGEST_LINE + 1)
        names = self._first.strip().strip('"')
        return next((each for each in names if each in DELIMITERS), DELIMITERS[0])

    def __iter__(self) -> Iterator[str]:
        first = [] if self._first is None else [self._first]
        lines = chain(first, iter(lambda: self._text.readline(LONGEST_LINE + 1), ""))
        for number, line in enumerate(lines, 1):
            self.characters += len(line)
            if self.characters > LONGEST_LINE:
                told = f"the row is longer than {LONGEST_LINE:,} octets"
                raise UsageMistake(f"{self._file}:{number}: {told}.")
            yield line


def _of_members(
    file: str, number: int, members: Mapping[str, Any], base: OutgoingMessage
) -> OutgoingMessage:
    """Members that the sender of a message does not choose, such as its times, are skipped."""
    try:
        body, body_type = _body(members, base)
        changes: dict[str, Any] = {"body": body, "body_type": body_type}
        if "label" in members:
            changes["label"] = _text(members, "label")
        if members.get("priority") not in (None, ""):
            changes["priority"] = _whole(members, "priority", 7)
        if members.get("correlation_id"):
            changes["correlation_identifier"] = message_identifier(_text(members, "correlation_id"))
        message = replace(base, **changes)
    except (ValueError, binascii.Error) as error:
        raise UsageMistake(f"{file}:{number}: {error}.") from None
    return _checked(file, number, message)


def _body(members: Mapping[str, Any], base: OutgoingMessage) -> tuple[bytes, int]:
    if members.get("body_base64"):
        octets = base64.b64decode(_text(members, "body_base64"), validate=True)
        return octets, _whole(members, "body_type", 0xFFFF_FFFF, base.body_type)
    if "body" not in members:
        return b"", base.body_type
    return _text(members, "body").encode("utf-16-le"), BodyType.VT_BSTR


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members[name]
    if not isinstance(value, str):
        raise ValueError(f"`{name}` is no text")
    return value


def _whole(members: Mapping[str, Any], name: str, most: int, default: int = 0) -> int:
    value = members.get(name, default)
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or int(text) > most:
        raise ValueError(f"`{name}` is no number from 0 to {most}")
    return int(text)


def _checked(file: str, number: int, message: OutgoingMessage) -> OutgoingMessage:
    try:
        check_size(message)
    except ValueError as error:
        raise UsageMistake(f"{file}:{number}: the {error}.") from None
    return message


# Cells of tables


def cell(value: object) -> str:
    """The text of a cell, in which no spreadsheet finds a formula."""
    text = "" if value is None else visible(str(value), keep="\n\r\t")
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _plain(text: str) -> str:
    """The text of a cell as it was before it was made safe."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULAS) else text
