"""`rpcqm help`: what `--help` prints, by the name of the command."""

import argparse
import contextlib

from rpcqm.cli.errors import ExitStatus
from rpcqm.cli.parser import Parser, add_command


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "help",
        "Explain a command, as its --help does.",
        [
            ("rpcqm help", "all commands"),
            ("rpcqm help queue create", "one of them"),
        ],
        run,
        "`man rpcqm` has the same texts, where the manual page is installed.",
    )
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="the command to explain")


def run(arguments: argparse.Namespace) -> int:
    """Print the help; UsageMistake if there is no such command."""
    # Only now, because that module loads this one.
    from rpcqm.cli.main import parser_for

    with contextlib.suppress(SystemExit):  # how argparse ends once it has printed help
        parser_for(arguments.words).parse_args([*arguments.words, "--help"])
    return ExitStatus.OK
