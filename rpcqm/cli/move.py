"""`rpcqm move` and `rpcqm copy`: messages to a subqueue, or to another queue."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.cli.errors import CommandError, NothingCame, UsageMistake
from rpcqm.cli.message_choice import add_choice, conditions
from rpcqm.cli.message_orders import FollowedOrder
from rpcqm.cli.options import QUEUE_HELP, add_local_options, add_server_options, queue_name
from rpcqm.cli.output import ProgressDisplay, counted
from rpcqm.cli.parser import Parser, Run, add_command
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.cli.session import Work
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.client.remote_read import MoveTarget, QueueReader

NOT_MOVABLE = frozenset(
    {
        HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
        HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION,
    }
)
DETAILS = """\
Between a queue and its subqueues, and between subqueues of one queue, messages move as they are:
with their identifiers, and with nothing else changed. A subqueue comes into being by moving a
message to it. To another queue, here or elsewhere, each message is sent anew and leaves its queue
in the same commit; `rpcqm help resend` says what it keeps. Nobody has received it then: it is not
acknowledged, and no journal keeps it.

Without identifiers, --all and conditions the first message is moved. Messages that come later are
not touched, and those that have gone meanwhile are counted. Up to 1,000 messages are one commit.
When a command is interrupted or refused midway, it says how many it has moved. At another machine
(--server) messages move to subqueues only, and each is a commit of its own."""
COPY_DETAILS = """\
Each message is sent anew; the one that is there stays as it is. `rpcqm help resend` says what the
new one keeps; it asks for no acknowledgement, because the message that stays does. Without
identifiers, --all and conditions the first message is copied. Up to 1,000 messages are one commit.
When a command is interrupted or refused midway, it says how many it has copied."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add both commands to the parser."""
    _add(
        commands,
        "move",
        "Move messages to a subqueue, or to another queue here or elsewhere.",
        [
            ("rpcqm move orders 'orders;late'", "the first message"),
            ("rpcqm move 'orders;late' orders --all", "all of them back"),
            ("rpcqm move orders archive --label 'eu-*' --until 7d", "those that a filter says"),
            (
                "rpcqm move orders 'orders;bad' --lookup-id 288230376151711745",
                "one, by what `rpcqm peek` shows",
            ),
        ],
        run_move,
        DETAILS,
        add_server_options,
    )
    _add(
        commands,
        "copy",
        "Copy messages to another queue, here or elsewhere.",
        [
            ("rpcqm copy orders test --all", "all of them, which stay in `orders`"),
            (r"rpcqm copy orders 'there\private$\orders' --body 4711", "to elsewhere"),
        ],
        run_copy,
        COPY_DETAILS,
        add_local_options,
    )


def _add(
    commands: "argparse._SubParsersAction[Parser]",
    name: str,
    summary: str,
    examples: list[tuple[str, str]],
    run: Run,
    details: str,
    add_server: Callable[[Parser], None],
) -> None:
    parser = add_command(commands, name, summary, examples, run, details)
    parser.add_argument("source", metavar="FROM", help=QUEUE_HELP)
    parser.add_argument("destination", metavar="TO", help=f"the queue or subqueue to {name} to")
    add_choice(parser, "default the first message")
    add_server(parser)


def run_copy(arguments: argparse.Namespace) -> int:
    """Copy the messages, and say how many."""
    return FollowedOrder(arguments, "copy", arguments.source, arguments.destination).run()


def run_move(arguments: argparse.Namespace) -> int:
    """Move the messages, and say how many."""
    if arguments.server is None:
        return FollowedOrder(arguments, "move", arguments.source, arguments.destination).run()
    if conditions(arguments) or len(arguments.lookup_id or ()) > 1:
        raise UsageMistake(
            "Over the network one lookup identifier or --all says which messages are moved."
        )
    return _move_there(arguments)


def _move_there(arguments: argparse.Namespace) -> int:
    """The same at another machine, by RemoteRead: each message is a commit of its own."""
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
            f"Cannot {purpose}: over the network messages move only between a queue and its "
            "subqueues, or between subqueues of one queue (STATUS_INVALID_PARAMETER); on its own "
            "machine this command sends them to any queue."
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
    if arguments.lookup_id:
        (lookup_identifier,) = arguments.lookup_id
    else:
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
