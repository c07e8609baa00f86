"""`rpcqm network`: let messages to other queue managers go, or hold them back."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from rpcqm.base.errors import HResult, MQError
from rpcqm.cli.errors import CommandError, UsageMistake
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

OTHER = r"'DIRECT=OS:other\private$\orders'"
QUEUE_ACTIONS = {
    "pause": ("Send nothing more to a queue elsewhere; over restarts, too.", "what waits stays"),
    "resume": ("Send to a queue elsewhere again.", "after `rpcqm network pause`"),
    "resend": (
        "Send transactional messages again whose order nobody has acknowledged, now.",
        "instead of at the next time that `rpcqm explain` shows",
    ),
}
MACHINE_ACTIONS = {
    "disconnect": ("Close all sessions, and send nothing elsewhere until `connect`.", "offline"),
    "connect": ("Send to other queue managers again.", "online"),
}
_RESEND = "EOD_RESEND"


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    about = "Let messages to other queue managers go, or hold them back."
    parser = commands.add_parser("network", help=about[0].lower() + about[1:-1], description=about)
    actions = add_commands(parser)
    for name, (text, example) in QUEUE_ACTIONS.items():
        examples = [(f"rpcqm network {name} {OTHER}", example)]
        action = add_command(actions, name, text, examples, run_queue_action)
        action.set_defaults(action=_RESEND if name == "resend" else name.upper())
        action.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
        add_server_options(action)
    for name, (text, example) in MACHINE_ACTIONS.items():
        examples = [(f"rpcqm network {name}", example)]
        action = add_command(actions, name, text, examples, run_machine_action)
        action.set_defaults(action=name.upper(), reason="")
        if name == "disconnect":
            help_text = "why, for `rpcqm status --overview`; on the same machine only"
            action.add_argument("--reason", metavar="TEXT", default="", help=help_text)
        add_server_options(action)


def run_queue_action(arguments: argparse.Namespace) -> int:
    """Order an action for one queue; raises CommandError if no message is on its way there."""
    name = queue_name(arguments, arguments.queue)

    async def work(client: "QueueManagerClient") -> None:
        try:
            await client.management.order(arguments.action, name)
        except MQError as error:
            sentence = REFUSALS.get(error.status)
            if sentence is None:
                raise
            raise CommandError(sentence(arguments.queue)) from error

    what = f"change how messages go to `{arguments.queue}`"
    return with_server(arguments, what, work, administrators_only=True)


def run_machine_action(arguments: argparse.Namespace) -> int:
    """Order an action for all queues to other queue managers."""
    if arguments.reason and arguments.server is not None:
        raise UsageMistake("--reason is for a queue manager of this machine: leave out --server.")

    async def work(client: "QueueManagerClient") -> None:
        if arguments.reason:
            await client.maintenance.disconnect(arguments.reason)
        else:
            await client.management.order(arguments.action)

    return with_server(arguments, arguments.action.lower(), work, administrators_only=True)


REFUSALS: dict[int, Callable[[str], str]] = {
    HResult.MQ_ERROR_QUEUE_NOT_FOUND: lambda queue: (
        f"Nothing was sent from here to `{queue}` lately; `rpcqm queue list --outgoing` lists "
        "where messages are on their way to."
    ),
    HResult.MQ_ERROR_INVALID_PARAMETER: lambda queue: (
        f"`{queue}` is a queue of this machine; only the way to others can be held."
    ),
    HResult.MQ_ERROR_UNSUPPORTED_OPERATION: lambda queue: (
        f"The way to `{queue}` is closed by security.hardened_security, or by a negative "
        "binary_port."
    ),
}
