"""`rpcqm directory join`, `leave` and `publish`: what is here in a real directory."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import folded, visible
from rpcqm.cli.errors import CommandError, ExitStatus, UsageMistake
from rpcqm.cli.options import add_local_options, configuration
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import with_server
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName

if TYPE_CHECKING:
    from rpcqm.adm.directory_writer import DirectoryAnswer
    from rpcqm.adm.queue import Queue
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.config import Configuration
    from rpcqm.service.directory_membership import Membership

JOIN = """\
It makes the queue manager's object below the computer's, or takes over the one that is there, and
gives the data directory its identifier: the directory chooses that. So it belongs before the first
message. No queue manager may run on the data directory. The machine is a member of the domain
already (`adcli`, `realm` or `samba-tool` make it one)."""
LEAVE = """\
It deletes the public queues of this queue manager from the directory one by one, and then its own
object, but nothing while there are objects below it that others have made. What is in the data
directory stays. No queue manager may run on it."""
PUBLISH = """\
It compares the objects of the public queues with what is here, and writes what differs. The queue
manager does that itself when queues change; this is for what others have changed."""

Work = Callable[["Membership"], Awaitable["DirectoryAnswer"]]
_SETTINGS = {"journal": "journaling", "authenticate": "authentication", "privacy": "privacy_level"}
_WRITTEN = ("label", "journal", "quota", "journal_quota", "base_priority", "authenticate")


def add_orders(orders: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands that write to those about the directory."""
    join = _add(orders, "join", "Make this queue manager one of the domain's.", JOIN, run_join)
    join.add_argument("--site", default="", metavar="NAME", help="where it is; the only one, else")
    join.add_argument(
        "--new-identifier",
        action="store_true",
        help="also if there are messages here that others know by another identifier",
    )
    _add(orders, "leave", "Take this queue manager out of the domain.", LEAVE, run_leave)
    publish = _add(
        orders, "publish", "Write the public queues into the directory again.", PUBLISH, run_publish
    )
    publish.add_argument("queues", metavar="QUEUE", nargs="*", help="only these public queues")


def _add(
    orders: "argparse._SubParsersAction[Parser]",
    word: str,
    summary: str,
    details: str,
    run: Callable[[argparse.Namespace], int],
) -> Parser:
    examples = [(f"rpcqm directory {word} --dry-run", "says what it would do, and does nothing")]
    parser = add_command(orders, word, summary, examples, run, details)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_local_options(parser)
    return parser


def run_join(arguments: argparse.Namespace) -> int:
    """Join, and say who the queue manager is from now on."""
    here = _configured(arguments)

    async def join(member: "Membership") -> "DirectoryAnswer":
        site = arguments.site or here.directory.site
        return await member.join(here.data_dir, site, arguments.new_identifier)

    answer = _with_directory(arguments, here, join)
    if answer.identifier is not None and not arguments.dry_run:
        print(f"{here.name} is queue manager {answer.identifier} from its next start on.")
    return ExitStatus.OK


def run_leave(arguments: argparse.Namespace) -> int:
    """Leave; what is here stays."""
    here = _configured(arguments)
    _with_directory(arguments, here, lambda member: member.leave(here.data_dir))
    return ExitStatus.OK


def _configured(arguments: argparse.Namespace) -> "Configuration":
    here = configuration(arguments)
    if not here.directory.domain:
        raise UsageMistake(
            "No domain is configured: set `directory.domain`, and the extra `directory` is needed."
        )
    return here


def _with_directory(
    arguments: argparse.Namespace, here: "Configuration", work: Work
) -> "DirectoryAnswer":
    """Carry out one order, and tell its steps."""
    from rpcqm.directory.process import DirectoryError
    from rpcqm.service.directory_membership import MembershipError
    from rpcqm.store.errors import StoreError

    try:
        answer = asyncio.run(_session(arguments, here, work))
    except (MembershipError, StoreError) as error:
        raise CommandError(visible(str(error))) from error
    except DirectoryError as error:
        step = f"{error.step}: " if error.step else ""
        raise CommandError(f"The directory cannot be used: {step}{visible(str(error))}.") from error
    _tell(answer, arguments.dry_run)
    return answer


async def _session(
    arguments: argparse.Namespace, here: "Configuration", work: Work
) -> "DirectoryAnswer":
    member = _member(arguments, here)
    try:
        return await work(member)
    finally:
        await member.stop()


def _member(arguments: argparse.Namespace, here: "Configuration") -> "Membership":
    # Only now, because other commands need none of it.
    from rpcqm.service.directory_membership import Membership, machine_of
    from rpcqm.service.directory_source import directory_settings

    return Membership(directory_settings(here), machine_of(here), arguments.dry_run)


def _tell(answer: "DirectoryAnswer", dry_run: bool) -> None:
    for step in answer.steps:
        print(f"would {visible(step)}" if dry_run else visible(step))
    if not answer.steps:
        print("Nothing to do.")


# Publishing again


def run_publish(arguments: argparse.Namespace) -> int:
    """Write what differs of the queue manager and its public queues."""
    here = _configured(arguments)
    refused: list[str] = []

    async def work(client: "QueueManagerClient") -> None:
        found = await _public_queues(client, arguments.queues)
        member = _member(arguments, here)
        try:
            refused.extend(await _publish(member, here, found, arguments.dry_run))
        finally:
            await member.stop()

    with_server(arguments, "read its queues", work, administrators_only=True)
    if refused:
        raise CommandError(" ".join(refused))
    return ExitStatus.OK


async def _public_queues(client: "QueueManagerClient", wanted: list[str]) -> list["Queue"]:
    here = [each for each in await client.queues.public() if each.here]
    names = {folded(PathName.parse(each.path_name).queue): each for each in here}
    asked = [folded(PathName.parse(_as_path(each)).queue) for each in wanted] or list(names)
    for name in asked:
        if name not in names:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, name)
    return [await _queue(client, names[each].path_name, names[each].format_name) for each in asked]


def _as_path(name: str) -> str:
    return name if "\\" in name else rf".\{name}"


async def _queue(client: "QueueManagerClient", path: str, name: str) -> "Queue":
    from rpcqm.adm.queue import Queue

    told = await client.queues.properties(FormatName.parse(name))
    made = Queue(pathname=path, identifier=_identifier_in(name))
    for setting in (*_WRITTEN, "privacy"):
        setattr(made, _SETTINGS.get(setting, setting), getattr(told, setting))
    return made


def _identifier_in(name: str) -> Any:
    return FormatName.parse(name).value


async def _publish(
    member: "Membership", here: "Configuration", queues: list["Queue"], dry_run: bool
) -> list[str]:
    """The sentences about what could not be written."""
    from rpcqm.adm.enums import DirectoryOperationResult
    from rpcqm.directory.machine_orders import queue_order
    from rpcqm.directory.writing import WRITE_QUEUE
    from rpcqm.service.directory_membership import machine_of

    refused: list[str] = []
    machine = machine_of(here)
    names = [_SETTINGS.get(each, each) for each in (*_WRITTEN, "privacy")]
    for queue in queues:
        order = queue_order(WRITE_QUEUE, machine, queue, names, permissions=False)
        answer = await member.carry_out(replace(order, dry_run=dry_run))
        for step in answer.steps:
            print(f"would {visible(step)}" if dry_run else visible(step))
        if answer.result is DirectoryOperationResult.OBJECT_NOT_FOUND:
            refused.append(
                f"The directory does not have {queue.pathname}: delete it here and make it anew."
            )
        elif answer.result is not DirectoryOperationResult.SUCCESS:
            refused.append(f"{queue.pathname}: {visible(answer.reason)}.")
    return refused
