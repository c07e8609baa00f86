"""`rpcqm machine`: permissions of the queue manager itself."""

import argparse

from rpcqm.cli import acl
from rpcqm.cli.parser import Parser, add_commands


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "machine",
        help="show and change who may do what with the queue manager itself",
        description="Show and change who may do what with the queue manager itself.",
    )
    acl.add_machine(add_commands(parser))
