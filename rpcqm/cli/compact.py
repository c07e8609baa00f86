"""`rpcqm compact`: give the disk space of removed messages back."""

import argparse
from typing import TYPE_CHECKING

from rpcqm.cli.options import add_local_options
from rpcqm.cli.output import size_text
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

DETAILS = """\
The queue manager does so by itself as it goes, and keeps up to about as much again as its messages
take. This gives nearly all of it back, and takes longer; meanwhile it needs up to as much space
again as the messages take. No message is removed."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "compact",
        "Give the disk space of removed messages back.",
        [("rpcqm compact", "while the queue manager runs")],
        run,
        DETAILS,
    )
    add_local_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compact, and print the number of bytes that this gave back."""

    async def work(client: "QueueManagerClient") -> None:
        before, after = await client.maintenance.compact()
        if after < before:
            print(
                f"The messages took {size_text(before)} of disk space, and take {size_text(after)}."
            )
        else:
            print(f"There was nothing to give back; the messages take {size_text(after)}.")

    return with_server(arguments, "compact the store", work, administrators_only=True)
