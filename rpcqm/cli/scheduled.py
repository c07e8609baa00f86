"""`rpcqm scheduled`: messages that wait for their time."""

import argparse
from typing import TYPE_CHECKING

from rpcqm.cli.options import add_local_options
from rpcqm.cli.output import Table, print_json, size_text, told_time
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "scheduled",
        help="list and cancel messages that wait for their time",
        description="List and cancel messages that wait for their time.",
    )
    inner = add_commands(parser)
    shown = add_command(
        inner,
        "list",
        "List the messages that `rpcqm send --not-before` holds back.",
        [("rpcqm scheduled list", "your own; an administrator sees all")],
        run_list,
        "TROUBLE is why a message could not be sent at its time; it is tried again each minute.",
    )
    shown.add_argument("--json", action="store_true", help="print a JSON array")
    add_local_options(shown)
    cancel = add_command(
        inner,
        "cancel",
        "Never send a message that is held back.",
        [("rpcqm scheduled cancel 0f3a5c7e9b1d2f40", "by the ID that `list` shows")],
        run_cancel,
    )
    cancel.add_argument("id", metavar="ID", help="what `send --not-before` has printed")
    add_local_options(cancel)


def run_list(arguments: argparse.Namespace) -> int:
    """List them."""

    async def work(client: "QueueManagerClient") -> None:
        held = await client.scheduled.list()
        if arguments.json:
            names = (
                "id",
                "not_before",
                "made",
                "account",
                "queue",
                "queue_name",
                "label",
                "body_size",
                "trouble",
            )
            print_json([{name: getattr(each, name) for name in names} for each in held])
            return
        table = Table(["ID", "NOT BEFORE", "QUEUE", "LABEL", ">SIZE", "ACCOUNT", "TROUBLE"])
        for each in held:
            size, moment_told = size_text(each.body_size), told_time(each.not_before)
            table.add(
                *(each.id, moment_told, each.queue_name, each.label, size, each.account),
                each.trouble,
            )
        table.print()

    return with_server(arguments, "list the scheduled messages", work)


def run_cancel(arguments: argparse.Namespace) -> int:
    """Cancel one."""

    async def work(client: "QueueManagerClient") -> None:
        await client.scheduled.cancel(arguments.id)
        print(f"{arguments.id} is not sent.")

    return with_server(arguments, f"cancel `{arguments.id}`", work)
