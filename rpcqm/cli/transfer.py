"""`rpcqm queue export` and `rpcqm queue import`: whole messages to a file and back."""

import argparse
import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rpcqm.base.errors import DecodeError
from rpcqm.cli.errors import CommandError, reason
from rpcqm.cli.options import QUEUE_HELP, add_local_options, add_server_options, queue_name
from rpcqm.cli.output import Progress, counted, iso_time
from rpcqm.cli.parser import add_command
from rpcqm.cli.session import with_server
from rpcqm.client.export_file import ExportReader, ExportWriter
from rpcqm.codec.format_name import FormatName

if TYPE_CHECKING:
    from rpcqm.cli.parser import Parser
    from rpcqm.client.message import ReceivedMessage
    from rpcqm.client.queue_manager import QueueManagerClient

IN_FLIGHT = 32
EXPORT_DETAILS = """\
The messages stay in the queue. The file holds whole packets, in a format that
docs/export-format.md describes."""
IMPORT_DETAILS = """\
Messages come back as they were, with their identifiers and times; nobody is sent an
acknowledgement. When the import stops early, the messages before are in the queue."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to those of `rpcqm queue`."""
    exporting = add_command(
        commands,
        "export",
        "Write the messages of a queue to a file.",
        [
            ("rpcqm queue export orders orders.mq", "all of them, whole"),
            ("rpcqm queue export orders - | gzip > orders.mq.gz", "to standard output"),
        ],
        run_export,
        EXPORT_DETAILS,
    )
    exporting.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    exporting.add_argument("file", metavar="FILE", help="file to write, - for standard output")
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

    async def work(client: "QueueManagerClient") -> None:
        async with client.open_reader(name, peek_only=True) as reader:
            with _output(arguments.file) as file, Progress("Exported") as progress:
                writer = ExportWriter(file, _note(arguments, name))
                async for message in reader.browse():
                    writer.write(bytes(message.buffer), _note_of(message))
                    progress.advance()
                writer.finish()
        _say(arguments, f"Exported {counted(writer.count, 'message')}.")

    return with_server(arguments, f"export `{arguments.queue}`", work)


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
    """Standard output, or a file that is there only when it is whole."""
    if name == "-":
        yield sys.stdout.buffer
        return
    path, draft = Path(name), Path(f"{name}.part")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {reason(error)}.") from error
    finally:
        draft.unlink(missing_ok=True)


def run_import(arguments: argparse.Namespace) -> int:
    """Send each message on; several are on their way at a time, so memory is bounded."""
    name = queue_name(arguments, arguments.queue)

    async def work(client: "QueueManagerClient") -> None:
        with _input(arguments.file) as file, Progress("Imported") as progress:
            try:
                count = await _import(client, name, ExportReader(file), progress)
            except DecodeError as error:
                raise CommandError(f"Cannot import {arguments.file}: {error}.") from error
        print(f"Imported {counted(count, 'message')}.")

    return with_server(
        arguments, f"import into `{arguments.queue}`", work, administrators_only=True
    )


async def _import(
    client: "QueueManagerClient", name: FormatName, reader: ExportReader, progress: Progress
) -> int:
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
    """Beside the messages, where they go to standard output."""
    print(sentence, file=sys.stderr if arguments.file == "-" else sys.stdout)
