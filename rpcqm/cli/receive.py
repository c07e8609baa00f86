"""`rpcqm receive` and `rpcqm peek`: take messages out of a queue, or look at them."""

import argparse
import asyncio
import itertools
import re
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rpcqm.base.errors import HResult, MQError
from rpcqm.cli.errors import CommandError, UsageMistake, reason
from rpcqm.cli.execute import receive_each, running
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.output import ProgressDisplay, counted
from rpcqm.cli.parser import LOOKUP_IDENTIFIER, Parser, add_command, amount_in, one_of, whole_number
from rpcqm.cli.session import with_server
from rpcqm.client.message_fields import message_identifier
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    from rpcqm.cli.messages import MessageWriter
    from rpcqm.client.message import ReceivedMessage
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.client.remote_read import PendingReceive, QueueReader

    Read = Callable[[QueueReader, argparse.Namespace, MessageWriter], Awaitable[None]]

MAXIMUM_COUNT = 1_000_000_000
IN_FLIGHT = 32
"""Acknowledgements on their way at the same time; Ctrl-C waits for these only."""

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}
_OF_CELLS = (b",", b";", b"\t")
FORMATS = {name: name for name in ("table", "json", "csv", "body", "hex")}
DETAILS = """\
Without --count, --all and --lookup-id it is the first message. With --output each message goes
to a file, D/LOOKUP-ID.FORMAT, and its path is printed; the format is then body unless another
one is given. With --format json each message is one line; `value` is the body as its type says
(`value_type`), `body` its text where it is text, and `body_base64` always its octets. --format body
prints text in UTF-8, and other bodies octet by octet. The exit status is 4 when nothing
came in time, also with --all, and 0 when something came."""
RECEIVE_DETAILS = """\

A message leaves the queue once it has been written; if the command is interrupted before, or
what reads its output goes away, it stays. With --exec it leaves the queue when COMMAND has ended
with exit status 0; otherwise it stays, and the command ends with 1. COMMAND is run by the shell; it
finds the body on its standard input, and RPCQM_MESSAGE_ID, RPCQM_CORRELATION_ID,
RPCQM_LOOKUP_ID, RPCQM_LABEL, RPCQM_PRIORITY, RPCQM_ABORT_COUNT, RPCQM_RESPONSE_QUEUE and
RPCQM_QUEUE in its environment. With --transactional `rpcqm send --transactional` in COMMAND joins
the transaction of the message (RPCQM_TRANSACTION): what it sends is sent if COMMAND ends with 0.
Without --transactional a message is given back if COMMAND takes more than five minutes."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add both commands to the parser."""
    receiving = add_command(
        commands,
        "receive",
        "Take messages out of a queue.",
        [
            ("rpcqm receive orders", "the first message, if there is one"),
            ("rpcqm receive orders --timeout infinite --format body", "wait for one"),
            ("rpcqm receive orders --all --output inbox --format json", "every one into a file"),
            (
                "rpcqm receive orders --transactional --exec './book' --all",
                "each message to a program; it leaves the queue if that ends with 0",
            ),
            ("rpcqm receive orders --all --format body --null | xargs -0 -n1 echo", "each to echo"),
            ("rpcqm receive orders --server mail.example.com --user alice", "from elsewhere"),
        ],
        run_receive,
        DETAILS + RECEIVE_DETAILS,
    )
    _add_options(receiving)
    _add_handling(receiving)
    receiving.add_argument(
        "--correlation-id",
        metavar="X",
        type=_identifier,
        help="only the first message that answers the message with this identifier",
    )
    peeking = add_command(
        commands,
        "peek",
        "Look at messages and leave them in their queue.",
        [
            ("rpcqm peek orders --all", "a table of what is there"),
            ("rpcqm peek orders --lookup-id 288230376151711745 --format hex", "one of them"),
        ],
        run_peek,
        DETAILS,
    )
    _add_options(peeking)


def _add_options(parser: Parser) -> None:
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    parser.add_argument(
        "--timeout",
        metavar="MS",
        type=_timeout,
        help="how long to wait for a message: milliseconds, `5s`, or `infinite` (default 0)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--count",
        metavar="N",
        type=whole_number(1, MAXIMUM_COUNT, "a number"),
        help="so many messages",
    )
    which.add_argument(
        "--all", action="store_true", help="all messages, until none comes within the timeout"
    )
    which.add_argument(
        "--lookup-id",
        metavar="N",
        type=LOOKUP_IDENTIFIER,
        help="only the message with this lookup identifier",
    )
    parser.add_argument(
        "--format",
        metavar="table|json|csv|body|hex",
        type=one_of(FORMATS, "format"),
        help="how to print it (default table)",
    )
    parser.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json",
    )
    parser.add_argument("--output", metavar="D", type=Path, help="write files into a directory")
    after = parser.add_mutually_exclusive_group()
    after.add_argument(
        "--separator",
        metavar="T",
        type=_separator,
        help=r"what follows each body of --format body; `\n`, `\t`, `\0` and `\\` are understood. "
        "With --format csv `;` or `\\t`: what stands between two cells",
    )
    after.add_argument(
        "--null",
        dest="separator",
        action="store_const",
        const=b"\0",
        help="the same as --separator '\\0', for `xargs -0`",
    )
    add_server_options(parser)


def _add_handling(parser: Parser) -> None:
    parser.add_argument(
        "--transactional",
        action="store_true",
        help="receive each message in a transaction of its own, from a transactional queue",
    )
    parser.add_argument(
        "--exec", metavar="COMMAND", help="give each message to a command instead of printing it"
    )


def _identifier(text: str) -> MessageIdentifier:
    try:
        return message_identifier(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


async def _find_answer(reader: "QueueReader", arguments: argparse.Namespace) -> None:
    """Wait for the message that --correlation-id means, and let --lookup-id name it."""
    # Only now, because few commands need it.
    from rpcqm.client.correlation import answers

    async with aclosing(answers(reader, arguments.correlation_id, arguments.timeout or 0)) as found:
        async for message in found:
            arguments.lookup_id, arguments.timeout = message.lookup_identifier, 0
            return
    raise MQError(HResult.MQ_ERROR_IO_TIMEOUT)


def _separator(text: str) -> bytes:
    r"""Text with `\n`, `\t`, `\0` and `\\` in it, as UTF-8."""

    def octet(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise argparse.ArgumentTypeError(
                rf"`{match[0]}` is none of \n, \r, \t, \0 and \\; a backslash is \\"
            )
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.?)", octet, text).encode("utf-8", "surrogateescape")


def _timeout(text: str) -> int:
    if text.lower() == "infinite":
        return INFINITE
    return amount_in("ms", 0, INFINITE, "a number of milliseconds")(text)


def _check_format(arguments: argparse.Namespace) -> None:
    if arguments.format == "csv" and arguments.output:
        raise UsageMistake("--format csv is one table: it goes without --output.")


def _check_separator(arguments: argparse.Namespace) -> None:
    if not arguments.separator:
        return
    if arguments.format == "csv":
        if arguments.separator not in _OF_CELLS:
            raise UsageMistake(r"--separator of --format csv is a comma, `;` or `\t`.")
    elif arguments.format != "body" or arguments.output is not None:
        raise UsageMistake("--separator and --null are for --format body without --output.")


def run_receive(arguments: argparse.Namespace) -> int:
    """Receive; each message is acknowledged once it has been written, or its command is done."""
    _check_format(arguments)
    if arguments.exec is not None and (arguments.format or arguments.output):
        raise UsageMistake("--exec prints no message: it goes without --format and --output.")
    others = arguments.count or arguments.all or arguments.lookup_id
    if arguments.correlation_id is not None and others:
        raise UsageMistake("--correlation-id goes without --count, --all and --lookup-id.")
    return _run(arguments, "receive from", _receive, peek_only=False)


def run_peek(arguments: argparse.Namespace) -> int:
    """Peek."""
    return _run(arguments, "peek at", _peek, peek_only=True)


def _run(arguments: argparse.Namespace, verb: str, read: "Read", peek_only: bool) -> int:
    name = queue_name(arguments, arguments.queue)
    if arguments.lookup_id is not None and arguments.timeout:
        raise UsageMistake("--timeout and --lookup-id do not go together.")
    _check_separator(arguments)

    async def work(client: "QueueManagerClient") -> None:
        # Only now, because it takes time to load what decodes messages.
        from rpcqm.cli.messages import writer_for

        try:
            writer = writer_for(
                arguments.format,
                arguments.output,
                not peek_only,
                arguments.separator or b"",
                await _names(client, arguments),
            )
        except OSError as error:
            raise CommandError(
                f"{arguments.output} cannot be made a directory: {reason(error)}."
            ) from error
        async with client.open_reader(name, peek_only=peek_only, outgoing=peek_only) as reader:
            if not peek_only and arguments.correlation_id is not None:
                await _find_answer(reader, arguments)
            if not peek_only and (arguments.transactional or arguments.exec is not None):
                await _receive_each(client, reader, arguments, writer)
            else:
                await read(reader, arguments, writer)

    return with_server(arguments, f"{verb} `{arguments.queue}`", work)


async def _names(client: "QueueManagerClient", arguments: argparse.Namespace) -> dict[str, str]:
    """Names of senders by their SIDs; only JSON has them."""
    if arguments.format != "json" or arguments.output is not None:
        return {}
    # Only now, because few commands need it.
    from rpcqm.cli.account_names import names_of_senders

    return await names_of_senders(client)


async def _receive(
    reader: "QueueReader", arguments: argparse.Namespace, writer: "MessageWriter"
) -> None:
    async with _Acknowledgements() as acknowledgements:
        if arguments.lookup_id is not None:
            pending = await reader.receive_by_lookup_identifier(arguments.lookup_id)
            await _take(pending, writer, acknowledgements)
            return
        await _receive_several(reader, arguments, writer, acknowledgements)


async def _receive_each(
    client: "QueueManagerClient",
    reader: "QueueReader",
    arguments: argparse.Namespace,
    writer: "MessageWriter",
) -> None:
    async def write(message: "ReceivedMessage", transaction: str) -> None:
        _write(message, writer, "; the message stays in the queue")

    handle = write if arguments.exec is None else running(arguments)
    await receive_each(client, reader, arguments, handle, _is_end)


async def _receive_several(
    reader: "QueueReader",
    arguments: argparse.Namespace,
    writer: "MessageWriter",
    acknowledgements: "_Acknowledgements",
) -> None:
    wanted = None if arguments.all else arguments.count or 1
    with ProgressDisplay("Received", wanted, scrolls=sys.stdout.isatty()) as progress:
        for taken in itertools.count():
            if taken == wanted:
                return
            try:
                pending = await reader.receive(arguments.timeout or 0)
            except MQError as error:
                if _is_end(error, arguments, taken):
                    return
                raise
            await _take(pending, writer, acknowledgements)
            progress.advance()


def _is_end(error: MQError, arguments: argparse.Namespace, taken: int) -> bool:
    """Whether the command ends well all the same; tells when fewer came than were wanted."""
    if error.status is not HResult.MQ_ERROR_IO_TIMEOUT or not taken:
        return False
    if not arguments.all:
        came = counted(taken, "message")
        print(f"rpcqm: Only {came} of {arguments.count} came in time.", file=sys.stderr)
    return True


async def _take(
    pending: "PendingReceive", writer: "MessageWriter", acknowledgements: "_Acknowledgements"
) -> None:
    """Write a message, then let it leave its queue; it stays when it cannot be written."""
    try:
        _write(pending.message, writer, "; the message stays in the queue")
    except BaseException:
        await pending.give_back()
        raise
    await acknowledgements.add(pending)


class _Acknowledgements:
    """Acknowledgements on their way, while the next messages are read.

    The block ends when all of them have been answered; it raises the first refusal.
    """

    def __init__(self) -> None:
        self._on_the_way: deque[asyncio.Task[None]] = deque()

    async def add(self, pending: "PendingReceive") -> None:
        self._on_the_way.append(asyncio.create_task(pending.acknowledge()))
        if len(self._on_the_way) >= IN_FLIGHT:
            await self._on_the_way.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._on_the_way:
            await self._on_the_way.popleft()


def _write(message: "ReceivedMessage", writer: "MessageWriter", consequence: str = "") -> None:
    try:
        writer.write(message)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename} " if error.filename else "the output "
        raise CommandError(
            f"Cannot write: {where}cannot be written, {reason(error)}{consequence}."
        ) from error


async def _peek(
    reader: "QueueReader", arguments: argparse.Namespace, writer: "MessageWriter"
) -> None:
    # Only now, because it takes time to load what decodes messages.
    from rpcqm.cli.peeking import PREVIEW, peeked
    from rpcqm.client.reads import WHOLE_BODY

    preview = arguments.format in (None, "table") and arguments.output is None
    wanted = None if arguments.all else arguments.count or 1
    seen = False
    async for message in peeked(
        reader,
        arguments.lookup_id,
        wanted,
        timeout=arguments.timeout or 0,
        body=PREVIEW if preview else WHOLE_BODY,
    ):
        _write(message, writer)
        seen = True
    if not seen:
        raise MQError(HResult.MQ_ERROR_IO_TIMEOUT)
