"""`rpcqm directory`: a real directory, as this queue manager sees and changes it."""

import argparse

from rpcqm.cli import directory_publishing, directory_reading
from rpcqm.cli.parser import Parser, add_commands

SUMMARY = (
    "Try an Active Directory, show and export what it has, join and leave it, and publish public "
    "queues in it."
)


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "directory", help=SUMMARY[:1].lower() + SUMMARY[1:-1], description=SUMMARY
    )
    orders = add_commands(parser)
    directory_reading.add_orders(orders)
    directory_publishing.add_orders(orders)
