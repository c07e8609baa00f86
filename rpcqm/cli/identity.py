"""`rpcqm identity`: say what a data directory is that was copied or moved."""

import argparse
from pathlib import Path

from rpcqm.cli.errors import CommandError, ExitStatus
from rpcqm.cli.options import add_local_options, configuration
from rpcqm.cli.parser import Parser, add_command, add_commands

DETAILS = """\
A data directory knows itself by the identifier of its file system and the inode of its file
`identity`. It starts without a question wherever its volume is, and not at all as a copy: two
queue managers with one identity lose messages, because receivers take those of one for messages
that the other has sent. No queue manager may run on the directory."""

MOVED = """\
It starts as it was left. The directory that it was copied from must not run any more."""

RESTORED = """\
It may be older than what has run since: numbers of messages begin anew, as after `rpcqm restore`.
This is for snapshots, and for backups that other programs have made. The directory that it was
copied from must not run any more."""

NEW = """\
The next start gives it an identifier of its own, and pauses what waits for other queue managers:
the one that it was copied from sends that. Messages in its queues are there twice from then on.
Give it another `name`, too, unless others tell the two apart."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "identity",
        help="say what a data directory is that was copied or moved",
        description=f"Say what a data directory is that was copied or moved.\n\n{DETAILS}",
    )
    orders = add_commands(parser)
    for word, summary, details in (
        ("moved", "It is the only one, as it was left.", MOVED),
        ("restored", "It is the only one, from an earlier time.", RESTORED),
        ("new", "It is a copy: make it another queue manager.", NEW),
    ):
        command = add_command(
            orders,
            word,
            summary,
            [(f"rpcqm identity {word} --data-dir /var/lib/rpcqm", "before the next start")],
            run,
            details,
        )
        command.set_defaults(order=word)
        add_local_options(command)


def run(arguments: argparse.Namespace) -> int:
    """Mark the directory anew, with what the next start has to do."""
    # Only now, because the database takes time to load and other commands need none.
    from rpcqm.store.backup import mark_as_restored
    from rpcqm.store.database import DATABASE_NAME, locked
    from rpcqm.store.directory_mark import new_order, write_mark
    from rpcqm.store.errors import StoreError

    directory: Path = configuration(arguments).data_dir
    if not (directory / DATABASE_NAME).is_dir():
        raise CommandError(f"{directory} has no data of a queue manager.")
    try:
        with locked(directory):
            if arguments.order != "moved":
                mark_as_restored(directory)
            write_mark(directory, new_order() if arguments.order == "new" else "")
    except StoreError as error:
        raise CommandError(str(error)) from error
    print(f"{directory} {_DONE[arguments.order]}")
    return ExitStatus.OK


_DONE = {
    "moved": "starts as it was left; what it was copied from must not run any more.",
    "restored": "starts with new numbers; what it was copied from must not run any more.",
    "new": "becomes another queue manager at its next start, and what waits for others is paused.",
}
