"""`rpcqm receive --exec` and `--transactional`: one message at a time, each until it is done."""

import argparse
import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from rpcqm.base.errors import MQError
from rpcqm.base.programs import ending_of
from rpcqm.base.text import whole
from rpcqm.cli.errors import CommandError, reason

if TYPE_CHECKING:
    from rpcqm.client.message import ReceivedMessage
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.client.remote_read import QueueReader

    Handle = Callable[[ReceivedMessage, str], Awaitable[None]]

TRANSACTION_VARIABLE = "RPCQM_TRANSACTION"
"""Names the transaction that `rpcqm send --transactional` joins in a command."""


async def receive_each(
    client: "QueueManagerClient",
    reader: "QueueReader",
    arguments: argparse.Namespace,
    handle: "Handle",
    is_end: Callable[[MQError, argparse.Namespace, int], bool],
) -> None:
    """Receive as many messages as the options say; what `handle` refuses stays in the queue."""
    wanted = None if arguments.all else arguments.count or 1
    for taken in itertools.count():
        if taken == wanted:
            return
        try:
            await (_in_transaction if arguments.transactional else _locked)(
                client, reader, arguments, handle
            )
        except MQError as error:
            if is_end(error, arguments, taken):
                return
            raise


async def _in_transaction(
    client: "QueueManagerClient",
    reader: "QueueReader",
    arguments: argparse.Namespace,
    handle: "Handle",
) -> None:
    async with client.begin_transaction() as unit:
        timeout, identifier = arguments.timeout or 0, arguments.lookup_id or 0
        message = await reader.receive_in(unit, timeout, identifier)
        await handle(message, str(unit.identifier))


async def _locked(
    client: "QueueManagerClient",
    reader: "QueueReader",
    arguments: argparse.Namespace,
    handle: "Handle",
) -> None:
    if arguments.lookup_id is None:
        pending = await reader.receive(arguments.timeout or 0)
    else:
        pending = await reader.receive_by_lookup_identifier(arguments.lookup_id)
    async with pending as message:
        await handle(message, "")


def running(arguments: argparse.Namespace) -> "Handle":
    """Give each message to a command: its body on standard input, text in UTF-8; the rest as
    variables."""
    # Only now, because it takes time to load what decodes bodies.
    from rpcqm.cli.message_bodies import octets_of

    command, queue = arguments.exec, arguments.queue

    async def run(message: "ReceivedMessage", transaction: str) -> None:
        environment = os.environ | _variables(message, queue, transaction)
        if arguments.data_dir is not None:
            environment["RPCQM_DATA_DIR"] = str(arguments.data_dir)
        status = await _run(command, environment, octets_of(message))
        if status:
            raise CommandError(
                f"`{command}` {ending_of(status)}; nothing was received from `{queue}`."
            )

    return run


async def _run(command: str, environment: dict[str, str], body: bytes) -> int:
    """The exit status of a command; negative if a signal has ended it."""
    try:
        process = await asyncio.create_subprocess_shell(
            command, stdin=asyncio.subprocess.PIPE, env=environment
        )
    except OSError as error:
        raise CommandError(f"`{command}` cannot be started: {reason(error)}.") from error
    try:
        await process.communicate(body)
    except BaseException:  # Ctrl-C: the message goes back once nobody works on it any more
        if process.returncode is None:
            process.terminate()
            await process.wait()
        raise
    return process.returncode or 0


def _variables(message: "ReceivedMessage", queue: str, transaction: str) -> dict[str, str]:
    values: dict[str, object] = {
        TRANSACTION_VARIABLE: transaction,
        "RPCQM_QUEUE": queue,
        "RPCQM_MESSAGE_ID": message.identifier,
        "RPCQM_CORRELATION_ID": message.correlation_identifier,
        "RPCQM_LOOKUP_ID": message.lookup_identifier,
        "RPCQM_LABEL": message.label,
        "RPCQM_PRIORITY": message.priority,
        "RPCQM_ABORT_COUNT": message.abort_count,
        "RPCQM_RESPONSE_QUEUE": message.response_queue or "",
    }
    return {name: whole(str(value)).replace("\0", "") for name, value in values.items()}
