"""`rpcqm fsck`: check a data directory that is not in use."""

import argparse
from pathlib import Path

from rpcqm.base.text import visible
from rpcqm.cli.errors import CommandError, ExitStatus
from rpcqm.cli.output import ProgressDisplay, counted
from rpcqm.cli.parser import Parser, add_command


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "fsck",
        "Check the data directory of a queue manager that does not run.",
        [("rpcqm fsck /var/lib/rpcqm", "exit status 0 when all is well, 1 when not")],
        run,
    )
    parser.add_argument("directory", metavar="D", type=Path, help="the data directory")


def run(arguments: argparse.Namespace) -> int:
    """Print the number of records and each problem that was found."""
    # Only now, because the database takes time to load and other commands need none.
    from rpcqm.store.errors import StoreError
    from rpcqm.store.fsck import check

    directory: Path = arguments.directory
    if not directory.is_dir():
        raise CommandError(f"{directory} is no directory.")
    try:
        with ProgressDisplay("Checked") as progress:
            findings = check(directory, lambda _, records: progress.advance_to(records))
    except StoreError as error:
        raise CommandError(f"{directory} cannot be checked. {error}") from error
    for finding in findings:
        print(visible(str(finding)))
    if findings:
        raise CommandError(f"{directory} has {counted(len(findings), 'problem')}.")
    print(f"{directory} is well.")
    return ExitStatus.OK
