"""`rpcqm queue export` and `rpcqm queue import`: whole messages to a file and back."""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.files import private_draft
from rpcqm.base.text import iso_time, visible
from rpcqm.cli.errors import CommandError, explain, reason
from rpcqm.cli.options import QUEUE_HELP, add_local_options, add_server_options, queue_name
from rpcqm.cli.output import ProgressDisplay, counted
from rpcqm.cli.parser import add_command
from rpcqm.cli.session import with_server
from rpcqm.client.names import HERE, shown_name
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import QueueKind
from rpcqm.codec.packet.export_file import ExportReader, ExportWriter

if TYPE_CHECKING:
    from rpcqm.cli.parser import Parser
    from rpcqm.client.message import ReceivedMessage
    from rpcqm.client.queue_manager import QueueManagerClient

IN_FLIGHT = 32
"""Messages on their way at the same time; their number bounds the memory."""
EXPORT_DETAILS = """\
The messages stay in the queue. The file holds whole packets, in a format that
docs/export-format.md describes; for lines of JSON or a table there is `peek --all --format json`
or `csv`. In a directory the file is named after the queue, with escapes like `%20` for all but
letters and digits of ASCII and `_.-~$`."""
IMPORT_DETAILS = """\
Messages come back as they were, with their identifiers and times; nobody is sent an
acknowledgement. Lines of JSON and tables are new messages: `send --lines` takes them. Who sent a
message, and whether that was proved, is what the file says: what follows when it is received is
written by the right of anonymous. The whole file is read first, so that nothing of a damaged one
is imported; when the queue manager refuses a message, the command says how many are in the
queue."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to those of `rpcqm queue`."""
    exporting = add_command(
        commands,
        "export",
        "Write the messages of a queue to a file.",
        [
            ("rpcqm queue export orders orders.mq", "all of them, whole"),
            ("rpcqm queue export 'new orders' /backups", "to /backups/new%20orders.mq"),
            ("rpcqm queue export orders - | gzip > orders.mq.gz", "to standard output"),
        ],
        run_export,
        EXPORT_DETAILS,
    )
    exporting.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    exporting.add_argument(
        "file", metavar="FILE", help="file or directory to write to, - for standard output"
    )
    add_server_options(exporting)
    importing = add_command(
        commands,
        "import",
        "Put the messages of a file into a queue.",
        [("rpcqm queue import orders orders.mq", "what `rpcqm queue export` has written")],
        run_import,
        IMPORT_DETAILS,
    )
    importing.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    importing.add_argument("file", metavar="FILE", help="file to read, - for standard input")
    add_local_options(importing)


def run_export(arguments: argparse.Namespace) -> int:
    """Write every message that can be peeked at."""
    name = queue_name(arguments, arguments.queue)
    target = _named_after(arguments, name)

    async def work(client: "QueueManagerClient") -> None:
        async with client.open_bulk_reader(name, peek_only=True, outgoing=True) as reader:
            with _output(target) as file, ProgressDisplay("Exported") as progress:
                writer = ExportWriter(file, _note(arguments, name))
                async for message in reader.browse():
                    writer.write(bytes(message.buffer), _note_of(message))
                    progress.advance()
                writer.finish()
        to = "" if target == arguments.file else f" to {target}"
        _say(arguments, f"Exported {counted(writer.count, 'message')}{to}.")

    return with_server(arguments, f"export `{arguments.queue}`", work)


def _named_after(arguments: argparse.Namespace, name: FormatName) -> str:
    """The file to write: in a directory it is named after the queue, percent-encoded (G182)."""
    target: str = arguments.file
    if target == "-" or not Path(target).is_dir():
        return target
    return str(Path(target, quote(_short_name(arguments, name), safe="$") + ".mq"))


def _short_name(arguments: argparse.Namespace, name: FormatName) -> str:
    """A private or a system queue of the queue manager that is asked without where it is."""
    asked = {HERE, arguments.server[0] if arguments.server else HERE}
    with contextlib.suppress(MQError):
        path = name.path_name
        if path.computer in asked and path.kind is not QueueKind.PUBLIC:
            return shown_name(str(path)).rpartition("\\")[2]
    return str(name)


def _note(arguments: argparse.Namespace, name: FormatName) -> dict[str, object]:
    host = arguments.server[0] if arguments.server else os.uname().nodename
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"queue": str(name), "computer": host, "exported": now}


def _note_of(message: "ReceivedMessage") -> dict[str, object]:
    return {
        "lookup_id": str(message.lookup_identifier),
        "arrived": iso_time(message.arrival_time),
        "abort_count": message.abort_count,
        "move_count": message.move_count,
    }


@contextlib.contextmanager
def _output(name: str) -> Iterator[BinaryIO]:
    """Open standard output, or a file of mode 0600 that appears only when it is whole."""
    if name == "-":
        yield sys.stdout.buffer
        return
    try:
        with private_draft(Path(name)) as file:
            yield file
    except OSError as error:
        raise CommandError(f"{name} cannot be written: {reason(error)}.") from error


def run_import(arguments: argparse.Namespace) -> int:
    """Import each message; few are on their way at a time, so that memory is bounded."""
    name = queue_name(arguments, arguments.queue)

    async def work(client: "QueueManagerClient") -> None:
        with _checked(arguments.file) as file, ProgressDisplay("Imported") as progress:
            count = await _import(client, name, ExportReader(file), progress)
        print(f"Imported {counted(count, 'message')}.")

    return with_server(arguments, _importing(arguments.queue), work, administrators_only=True)


def _importing(queue: str) -> str:
    return f"import into `{queue}`"


@contextlib.contextmanager
def _checked(name: str) -> Iterator[BinaryIO]:
    """Open a file of messages at its beginning, after it was read to its end without a mistake.

    What comes by a pipe is kept as it is read, so that what is no file of messages fills no disk.
    """
    with _input(name) as given, tempfile.TemporaryFile() as kept:
        file, start = (given, given.tell()) if given.seekable() else (kept, 0)
        try:
            _check(ExportReader(given if file is given else _Keeping(given, kept)))
            file.seek(start)
            yield file
        except DecodeError as error:
            raise CommandError(f"Cannot import {visible(name)}: {error}.") from error


class _Keeping:
    """Reads a pipe, and keeps what it has read in a file that no other user can open."""

    def __init__(self, given: BinaryIO, kept: BinaryIO) -> None:
        self._given, self._kept = given, kept

    def read(self, size: int) -> bytes:
        octets = self._given.read(size)
        try:
            self._kept.write(octets)
        except OSError as error:
            raise CommandError(
                f"What comes cannot be kept while it is checked, {reason(error)}: name the file."
            ) from error
        return octets


def _check(reader: ExportReader) -> None:
    """Read every packet.

    Raises DecodeError if one is not a message, or not of the same kind as the others.
    """
    # Only here: the other commands for queues need no packets, which take time to load.
    from rpcqm.codec.packet.user_message import UserMessage

    first: bool | None = None
    for number, (packet, _) in enumerate(reader, 1):
        try:
            message = UserMessage(packet)
            message.validate()
        except DecodeError as error:
            raise DecodeError(f"message {number} cannot be read, {error}") from error
        transactional = message.transaction_header is not None
        first = transactional if first is None else first
        if transactional is not first:
            raise DecodeError(
                f"message {number} is of another kind than those before: a queue has either "
                "transactional messages or others"
            )


async def _import(
    client: "QueueManagerClient", name: FormatName, reader: ExportReader, progress: ProgressDisplay
) -> int:
    """Import the messages; returns their number.

    Raises CommandError with the number of those that are in the queue if one is refused after
    others.
    """
    count = 0
    on_the_way: deque[asyncio.Task[int]] = deque()
    try:
        for packet, _ in reader:
            on_the_way.append(asyncio.create_task(client.maintenance.import_message(name, packet)))
            if len(on_the_way) >= IN_FLIGHT:
                await on_the_way.popleft()
                count += 1
            progress.advance()
        while on_the_way:
            await on_the_way.popleft()
            count += 1
    except MQError as error:
        others = await asyncio.gather(*on_the_way, return_exceptions=True)
        count += sum(isinstance(other, int) for other in others)
        if not count:
            raise
        came = f"{counted(count, 'message')} of the file {'is' if count == 1 else 'are'} in it"
        sentence = explain(error, f"Cannot {_importing(str(name))}")
        raise CommandError(f"{sentence.rstrip('.')}; {came}.") from error
    finally:
        await asyncio.gather(*on_the_way, return_exceptions=True)
    return count


@contextlib.contextmanager
def _input(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as file:
            yield file
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {reason(error)}.") from error


def _say(arguments: argparse.Namespace, sentence: str) -> None:
    """Print a sentence; on standard error if the messages go to standard output."""
    print(sentence, file=sys.stderr if arguments.file == "-" else sys.stdout)
