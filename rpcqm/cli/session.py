"""Running a command against a queue manager, and telling how it went wrong."""

import argparse
import asyncio
import contextlib
import shlex
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from rpcqm.base.errors import DecodeError, HResult, MQError, RpcFault
from rpcqm.cli.errors import (
    CommandError,
    ExitStatus,
    NoServer,
    NothingCame,
    UsageMistake,
    explain,
)
from rpcqm.cli.options import queue_name, target
from rpcqm.client.names import hint_of
from rpcqm.client.target import ServerUnreachableError
from rpcqm.codec.names.path_name import QueueKind

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
            try:
                await work(client)
            except MQError as error:
                if sentence := await _told_by_server(client, arguments, error, f"Cannot {purpose}"):
                    raise CommandError(sentence) from error
                raise

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
        sentence = _with_hint(sentence, error, arguments)
        if isinstance(error, MQError) and error.status is HResult.MQ_ERROR_IO_TIMEOUT:
            raise NothingCame(sentence) from error
        if denied and (queue := getattr(arguments, "queue", "")):
            sentence = _denied(sentence, arguments, queue)
        raise CommandError(sentence) from error
    return ExitStatus.OK


async def _told_by_server(
    client: "QueueManagerClient", arguments: argparse.Namespace, error: MQError, subject: str
) -> str:
    """The sentence with the server's reason for a refusal, "" where it gives no reason."""
    if error.status in _NOT_HERE and (host := await _other_host(client, arguments)):
        return _elsewhere(subject, host, error)
    if error.status in _NOT_HERE and (renamed := await _renamed(client, arguments)):
        return f"{subject}: {renamed} ({error.status.name})."
    if error.status is HResult.MQ_ERROR_ACCESS_DENIED:
        from rpcqm.cli.denials import denial_of  # only now, because most commands need none of it

        if (denial := await denial_of(client, arguments)) is not None:
            cause = explain(error, subject).partition(";")[0]
            return f"{cause}; {denial.sentence(arguments.queue)}."
    if error.status is HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE and arguments.server is None:
        return await _in_maintenance(client, error, subject)
    return ""


async def _in_maintenance(client: "QueueManagerClient", error: MQError, subject: str) -> str:
    """Why no new message is taken, as far as administrators may know it; empty if they may not."""
    from rpcqm.cli.overview import standing_text  # only now, because most commands need none of it

    with contextlib.suppress(MQError, RpcFault):
        if order := (await client.maintenance.overview())["maintenance"]:
            told = f"in maintenance {standing_text(order)}"
            return f"{subject}: {told} ({error.status.name}); `rpcqm maintenance off` ends it."
    return ""


_NOT_HERE = frozenset({HResult.MQ_ERROR_QUEUE_NOT_FOUND, HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME})
_QUEUE_ARGUMENTS = ("queue", "name", "source", "destination", "to")


async def _other_host(client: "QueueManagerClient", arguments: argparse.Namespace) -> str:
    """The computer of the queue that a command is about, if that is not the one that was asked.

    Empty if it is, or if nobody tells.
    """
    for argument in _QUEUE_ARGUMENTS:
        text = getattr(arguments, argument, None)
        if not isinstance(text, str):
            continue
        with contextlib.suppress(MQError, RpcFault, UsageMistake):
            name = queue_name(arguments, text)
            if not await client.management.is_here(name):
                return name.direct_name.host
    return ""


async def _renamed(client: "QueueManagerClient", arguments: argparse.Namespace) -> str:
    """What has become of a name that a queue of this machine had before; empty for others."""
    for argument in _QUEUE_ARGUMENTS if arguments.server is None else ():
        text = getattr(arguments, argument, None)
        with contextlib.suppress(MQError, RpcFault, UsageMistake):
            if isinstance(text, str) and (
                now := await client.queues.renamed_to(queue_name(arguments, text))
            ):
                return f"`{text}` was renamed to `{now}`"
    return ""


def _with_hint(sentence: str, error: Exception, arguments: argparse.Namespace) -> str:
    """A sentence about a queue that is not there, with the name that was probably meant."""
    if not isinstance(error, MQError) or error.status is not HResult.MQ_ERROR_QUEUE_NOT_FOUND:
        return sentence
    for argument in _QUEUE_ARGUMENTS:
        text = getattr(arguments, argument, None)
        with contextlib.suppress(MQError, UsageMistake):
            if isinstance(text, str) and (hint := hint_of(queue_name(arguments, text))):
                return sentence.partition(";")[0] + hint
    return sentence


def _elsewhere(subject: str, host: str, error: MQError) -> str:
    verb = "is" if error.status is HResult.MQ_ERROR_QUEUE_NOT_FOUND else "would be"
    return f"{subject}: the queue {verb} on {host} ({error.status.name}); use `--server {host}`."


async def if_told(answer: Awaitable[T]) -> T | None:
    """An answer, or None if the caller may not have it or the server does not know the call."""
    with contextlib.suppress(MQError, RpcFault):
        return await answer
    return None


def _is_system_queue(arguments: argparse.Namespace, queue: str) -> bool:
    with contextlib.suppress(MQError, UsageMistake):
        return queue_name(arguments, queue).direct_name.kind is QueueKind.SYSTEM
    return False


def _denied(sentence: str, arguments: argparse.Namespace, queue: str) -> str:
    """The refusal with what an administrator can do about it."""
    if _is_system_queue(arguments, queue):
        cause = sentence.partition(";")[0]
        return (
            f"{cause}; it is a queue of the system: nobody changes or deletes it, and "
            "`rpcqm machine acl show` tells who may read it."
        )
    show = f"`rpcqm queue acl show {shlex.quote(queue.partition(';')[0])}`"
    return f"{sentence.rstrip('.')}; {taking_over(queue)}; {show} then names a denial if one wins."


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
