"""`rpcqm config`: look at configuration files."""

import argparse
from pathlib import Path

from rpcqm.cli.errors import CommandError, ExitStatus
from rpcqm.cli.output import counted
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.config import ConfigurationError, check_file


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "config",
        help="check configuration and directory files",
        description="Check configuration and directory files.",
    )
    checking = add_command(
        add_commands(parser),
        "check",
        "Explain every mistake in a configuration file, or in a directory file.",
        [("rpcqm config check /etc/rpcqm/rpcqm.toml", "exit status 0 when it is good, 1 when not")],
        run_check,
    )
    checking.add_argument("file", metavar="F", type=Path, help="the file")


def run_check(arguments: argparse.Namespace) -> int:
    """Tell each mistake on a line of its own."""
    try:
        check_file(arguments.file)
    except ConfigurationError as error:
        if len(error.mistakes) == 1:
            raise CommandError(str(error)) from None
        number = counted(len(error.mistakes), "mistake")
        raise CommandError(f"{arguments.file} has {number}:\n{error}") from None
    print(f"{arguments.file} is good.")
    return ExitStatus.OK
