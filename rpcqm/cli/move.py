"""`rpcqm move`: move messages between a queue and its subqueues."""

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.cli.errors import CommandError, NothingCame
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.output import ProgressDisplay, counted
from rpcqm.cli.parser import Parser, add_command, whole_number
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.cli.session import Work
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.client.remote_read import MoveTarget, QueueReader

MAXIMUM_IDENTIFIER = (1 << 64) - 1
NOT_MOVABLE = frozenset(
    {
        HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
        HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION,
    }
)
DETAILS = """\
Messages move between a queue and its subqueues, and between subqueues of one queue. A subqueue
comes into being by moving a message to it. Without --lookup-id and --all the first message is
moved. When --all is interrupted or refused midway, the command says how many it has moved.
To another queue messages are sent anew: `rpcqm dead-letter resend --queue FROM --all --to TO`, or
with a lookup identifier in place of --all."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "move",
        "Move messages between a queue and its subqueues.",
        [
            ("rpcqm move orders 'orders;late'", "the first message"),
            ("rpcqm move 'orders;late' orders --all", "all of them back"),
            (
                "rpcqm move orders 'orders;bad' --lookup-id 288230376151711745",
                "one, by what `rpcqm peek` shows",
            ),
        ],
        run,
        DETAILS,
    )
    parser.add_argument("source", metavar="FROM", help=QUEUE_HELP)
    parser.add_argument("destination", metavar="TO", help="the queue or subqueue to move to")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--lookup-id",
        metavar="N",
        type=whole_number(1, MAXIMUM_IDENTIFIER, "a lookup identifier"),
        help="only the message with this lookup identifier",
    )
    which.add_argument("--all", action="store_true", help="all that are there now")
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Move the messages, and say how many."""
    source = queue_name(arguments, arguments.source)
    destination = queue_name(arguments, arguments.destination)

    with ProgressDisplay("Moved") as progress:

        async def work(client: "QueueManagerClient") -> None:
            async with (
                client.open_reader(source) as reader,
                client.open_move_target(destination) as target,
            ):
                await _move(reader, target, arguments, progress)
            print(f"Moved {counted(progress.count, 'message')}.")

        return _run(arguments, work, progress)


def _run(arguments: argparse.Namespace, work: "Work", progress: ProgressDisplay) -> int:
    """Do the work; however it ends early, say how many messages have been moved."""

    purpose = f"move from `{arguments.source}` to `{arguments.destination}`"
    try:
        return with_server(arguments, purpose, work)
    except KeyboardInterrupt:
        if arguments.all:
            print(f"Interrupted; moved {counted(progress.count, 'message')}.", file=sys.stderr)
        raise
    except CommandError as error:
        if progress.count:
            moved = counted(progress.count, "message")
            raise CommandError(f"After moving {moved}: {error}", error.status) from error
        raise _with_the_rule(error, purpose) from error


def _with_the_rule(error: CommandError, purpose: str) -> CommandError:
    """The refusal of unrelated queues, and of an empty one, in words that fit."""
    cause = error.__cause__
    if isinstance(cause, MQError) and cause.status is HResult.MQ_ERROR_IO_TIMEOUT:
        return NothingCame(
            f"Cannot {purpose}: no message is there that can be moved (MQ_ERROR_IO_TIMEOUT)."
        )
    if isinstance(cause, MQError) and cause.status is NtStatus.STATUS_INVALID_PARAMETER:
        return CommandError(
            f"Cannot {purpose}: messages move only between a queue and its subqueues, or between "
            "subqueues of one queue (STATUS_INVALID_PARAMETER)."
        )
    return error


async def _move(
    reader: "QueueReader",
    target: "MoveTarget",
    arguments: argparse.Namespace,
    progress: ProgressDisplay,
) -> None:
    if arguments.all:
        await _move_all(reader, target, progress)
        return
    lookup_identifier = arguments.lookup_id
    if lookup_identifier is None:
        lookup_identifier = (await reader.peek(timeout=0, body=0)).lookup_identifier
    await reader.move(lookup_identifier, target)
    progress.advance()


async def _move_all(reader: "QueueReader", target: "MoveTarget", progress: ProgressDisplay) -> None:
    """Move the messages of the queue; those that others take meanwhile are skipped."""
    async for message in reader.browse(body=0):
        moving = asyncio.ensure_future(reader.move(message.lookup_identifier, target))
        try:
            await _to_its_end(moving)
        finally:
            if moving.done() and not moving.cancelled() and moving.exception() is None:
                progress.advance()


async def _to_its_end(moving: "asyncio.Future[None]") -> None:
    """Await a move, also when the command is interrupted meanwhile, so that it is counted.

    A message that cannot be moved is passed over.
    """
    try:
        await asyncio.shield(moving)
    except asyncio.CancelledError:
        await asyncio.wait([moving])
        raise
    except MQError as error:
        if error.status not in NOT_MOVABLE:
            raise
