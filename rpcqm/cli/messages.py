"""Messages as people and programs see them."""

import csv
import datetime
import io
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from rpcqm.base.files import private_draft
from rpcqm.base.text import hex_lines, visible
from rpcqm.cli.message_bodies import kind_and_text, octets_of, without_repetition
from rpcqm.cli.message_lines import cell
from rpcqm.cli.output import (
    aligned,
    cut,
    json_line,
    size_text,
    time_text,
)
from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.bodies.described import Place, class_name, described, described_body
from rpcqm.codec.packet.enums import MessageClass

EXTENSIONS = {"table": "txt", "json": "json", "body": "body", "hex": "hex"}

COLUMNS = (
    *("id", "lookup_id", "label", "class", "priority", "sent", "arrived", "correlation_id"),
    *("body_type", "body_size", "body", "body_base64"),
)

_LINES = "\n\t"
_IN_CELLS = frozenset("\n\r\t")
"""Characters that are not printable, and that a cell of CSV may have."""


class MessageWriter(Protocol):
    """Where messages go; `write` returns once the message cannot be lost any more."""

    def write(self, message: ReceivedMessage) -> None: ...


class MessageTableWriter:
    """One line for each message on standard output, aligned as they come.

    On a terminal a line is cut where the screen ends, and columns are narrow or missing where the
    body would have little room. With `whole` nothing is cut, because the message will be gone.
    """

    WIDE = (
        *(("LOOKUP ID", 18), ("ARRIVED", 19), ("PRI", 3), ("SIZE", 10), ("LABEL", 20)),
        ("TYPE", 8),
    )
    NARROW = (("LOOKUP ID", 18), ("ARRIVED", 8), ("LABEL", 12), ("TYPE", 8))
    ENOUGH = 120
    """Columns of a terminal from which on the wide table leaves room for a body."""

    def __init__(self, whole: bool) -> None:
        self._headed = False
        fits = not whole and sys.stdout.isatty()
        self._width = shutil.get_terminal_size().columns if fits else None
        self._narrow = self._width is not None and self._width < self.ENOUGH
        self._columns = self.NARROW if self._narrow else self.WIDE

    def write(self, message: ReceivedMessage) -> None:
        if not self._headed:
            self._headed = True
            self._print([name for name, _ in self._columns], "BODY")
        label = visible(message.label)
        kind, body = kind_and_text(message)
        if self._narrow:
            cells = [_day_or_time(message.arrival_time), cut(label, 12), kind]
        else:
            cells = [
                time_text(message.arrival_time),
                str(message.priority),
                size_text(message.body_size),
                label,
                kind,
            ]
        self._print([str(message.lookup_identifier), *cells], _class_and_body(message, body))

    def _print(self, cells: list[str], last: str) -> None:
        line = aligned(cells, self._columns, last)
        print(line if self._width is None else cut(line, self._width), flush=True)


def _day_or_time(seconds: float) -> str:
    """The time of a moment of today, else the day."""
    day, _, time = time_text(seconds).partition(" ")
    today = datetime.date.today()
    return time if day == today.isoformat() else day[2:]


def _class_and_body(message: ReceivedMessage, body: str) -> str:
    """The body, behind the class of a message that is an acknowledgement or a report."""
    if message.message_class == MessageClass.MQMSG_CLASS_NORMAL:
        return body
    name = class_name(message.message_class)
    return f"{name}: {body}" if body else name


class JsonWriter:
    """One JSON object on a line for each message."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def write(self, message: ReceivedMessage) -> None:
        print(json_line(as_json(message, self._names)), flush=True)


class CsvWriter:
    """A table of messages for spreadsheets and programs, in UTF-8.

    A body that is no text, or has characters that no table shows, is there in Base64.
    """

    def __init__(self, delimiter: str = ",") -> None:
        self._headed = False
        self._delimiter = delimiter

    def write(self, message: ReceivedMessage) -> None:
        """Write one row, behind the names of the columns if it is the first."""
        if not self._headed:
            self._headed = True
            self._row(COLUMNS)
        told = as_json(message)
        text = told.get("body")
        shown = isinstance(text, str) and all(c.isprintable() or c in _IN_CELLS for c in text)
        told["body" if not shown else "body_base64"] = ""
        self._row([cell(told.get(name)) for name in COLUMNS])

    def _row(self, cells: Iterable[str]) -> None:
        made = io.StringIO()
        csv.writer(made, delimiter=self._delimiter).writerow(cells)
        sys.stdout.write(made.getvalue())
        sys.stdout.flush()


class BodyWriter:
    """The body of each message on standard output: text in UTF-8, others byte for byte.

    `separator` follows each body. On a terminal bodies are shown as text.
    """

    def __init__(self, separator: bytes = b"") -> None:
        self._separator = separator

    def write(self, message: ReceivedMessage) -> None:
        octets = octets_of(message)
        if sys.stdout.isatty():
            shown = (octets + self._separator).decode("utf-8", "replace")
            print(visible(shown.removesuffix("\n"), keep=_LINES), flush=True)
            return
        sys.stdout.buffer.write(octets + self._separator)
        sys.stdout.buffer.flush()


class HexWriter:
    """The body of each message in hexadecimal, an empty line between two."""

    def __init__(self) -> None:
        self._first = True

    def write(self, message: ReceivedMessage) -> None:
        if not self._first:
            print()
        self._first = False
        for line in hex_lines(message.available_body):
            print(line)
        sys.stdout.flush()


class DirectoryWriter:
    """A file for each message, named by its lookup identifier; prints the paths.

    The directory is made by the constructor, which may raise OSError; a file is on the disk
    before `write` returns, for its owner alone.
    """

    def __init__(self, directory: Path, file_format: str) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._extension = EXTENSIONS[file_format]
        self._content = _CONTENTS[file_format]

    def write(self, message: ReceivedMessage) -> None:
        path = self._directory / f"{message.lookup_identifier}.{self._extension}"
        with private_draft(path) as file:
            file.write(self._content(message))
        print(path, flush=True)


def writer_for(
    file_format: str | None,
    output: Path | None,
    whole: bool,
    separator: bytes = b"",
    names: Mapping[str, str] | None = None,
) -> MessageWriter:
    """The writer that the options ask for; `separator` follows each body of the format body.

    In a table of the format csv it stands between two cells. `names` are those of senders by SID.
    """
    if output is not None:
        return DirectoryWriter(output, file_format or "body")
    if file_format == "json":
        return JsonWriter(names or {})
    if file_format == "csv":
        return CsvWriter(separator.decode() or ",")
    if file_format == "body":
        return BodyWriter(separator)
    return HexWriter() if file_format == "hex" else MessageTableWriter(whole)


def as_json(message: ReceivedMessage, names: Mapping[str, str] | None = None) -> dict[str, object]:
    """A message for programs (`described`), with the name of its sender of `names` by SID."""
    place = Place(
        message.lookup_identifier,
        message.arrival_time,
        message.move_count,
        message.abort_count,
    )
    body = described_body(message.available_body, message.body_type)
    told = described(message, place, body)
    return told | {"sender_name": (names or {}).get(str(told["sender"]))}


def _described(message: ReceivedMessage) -> bytes:
    """Everything about a message, for people."""
    described = without_repetition(as_json(message))
    body = described.pop("body", None)
    lines = [f"{name}: {visible(str(value))}\n" for name, value in described.items()]
    if body is not None:
        lines.append(f"body: {visible(str(body), keep=_LINES)}\n")
    return "".join(lines).encode()


_CONTENTS: dict[str, Callable[[ReceivedMessage], bytes]] = {
    "table": _described,
    "json": lambda message: (json_line(as_json(message)) + "\n").encode(),
    "body": octets_of,
    "hex": lambda message: "".join(
        f"{line}\n" for line in hex_lines(message.available_body)
    ).encode(),
}
