"""`rpcqm directory`: a real directory, as this queue manager sees it."""

import argparse

from rpcqm.cli import directory_reading
from rpcqm.cli.parser import Parser, add_commands

SUMMARY = "Try an Active Directory, and show and export what it has."


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "directory", help=SUMMARY[:1].lower() + SUMMARY[1:-1], description=SUMMARY
    )
    directory_reading.add_orders(add_commands(parser))
