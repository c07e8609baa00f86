"""Running a command against a queue manager, and telling how it went wrong."""

import argparse
import asyncio
import contextlib
import shlex
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from rpcqm.base.errors import DecodeError, HResult, MQError, RpcFault
from rpcqm.cli.errors import CommandError, ExitStatus, NoServer, NothingCame, explain
from rpcqm.cli.options import target
from rpcqm.client.target import ServerUnreachableError

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

    Work = Callable[[QueueManagerClient], Awaitable[None]]

T = TypeVar("T")

ONLY_ADMINISTRATORS = (
    "only administrators may (MQ_ERROR_ACCESS_DENIED); run the command as root or as the queue "
    "manager's own user, or over the network with an account of the group administrators."
)


def with_server(
    arguments: argparse.Namespace, purpose: str, work: "Work", administrators_only: bool = False
) -> int:
    """Connect and do the work; returns exit status 0.

    `purpose` completes the sentence "Cannot …". Raises CommandError for a refusal, NothingCame if
    no message came in time, NoServer if no queue manager answers.
    """

    server = target(arguments)

    async def session() -> None:
        # Only now, because the interfaces take time to load: mistakes and --help need none of it.
        # In the loop Ctrl-C is not lost while they are loaded.
        from rpcqm.client.queue_manager import QueueManagerClient

        async with QueueManagerClient(server) as client:
            await work(client)

    try:
        asyncio.run(session())
    except ServerUnreachableError as error:
        raise NoServer(str(error)) from error
    except (MQError, RpcFault, DecodeError) as error:
        if arguments.kerberos and (why := _kerberos_failure(error)):
            raise CommandError(f"Cannot {purpose}: {why}") from error
        denied = isinstance(error, MQError) and error.status is HResult.MQ_ERROR_ACCESS_DENIED
        if denied and administrators_only:
            raise CommandError(f"Cannot {purpose}: {ONLY_ADMINISTRATORS}") from error
        sentence = explain(error, f"Cannot {purpose}")
        if isinstance(error, MQError) and error.status is HResult.MQ_ERROR_IO_TIMEOUT:
            raise NothingCame(sentence) from error
        if denied and (queue := getattr(arguments, "queue", "")):
            sentence = f"{sentence.rstrip('.')}; {taking_over(queue)}."
        raise CommandError(sentence) from error
    return ExitStatus.OK


async def if_told(answer: Awaitable[T]) -> T | None:
    """An answer, or None if the caller may not have it or the server does not know the call."""
    with contextlib.suppress(MQError, RpcFault):
        return await answer
    return None


def taking_over(queue: str) -> str:
    """The commands by which an administrator takes over another owner's queue (G83)."""
    name = shlex.quote(queue.partition(";")[0])
    return (
        f"administrators take the queue over first, with `rpcqm queue acl owner {name} "
        f"administrators` and `rpcqm queue acl grant {name} administrators full`"
    )


def _kerberos_failure(error: Exception) -> str:
    """The words of Kerberos if logging on failed; "" for other errors."""
    from rpcqm.rpc.security.context import AuthenticationError  # only now, as above

    if not isinstance(error.__cause__, AuthenticationError):
        return ""
    said = str(error.__cause__).rstrip(".")
    return f"{said}; `kinit` gets a ticket, `klist` shows it."
