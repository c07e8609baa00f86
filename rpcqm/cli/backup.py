"""`rpcqm backup` and `rpcqm restore`: copies of everything that is durable."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.text import visible
from rpcqm.cli.errors import CommandError, ExitStatus
from rpcqm.cli.options import add_local_options, configuration
from rpcqm.cli.output import ProgressDisplay, counted
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

BACKUP_DETAILS = """\
The queue manager goes on meanwhile; what was acknowledged before is in the backup: queues,
recoverable messages, transactions and accounts. It is written by the queue manager, so its user
needs the right to. Where it is on the same file system it takes little time and space: files
that do not change any more are shared."""

RESTORE_DETAILS = """\
No queue manager may run there. The backup is checked first, as `rpcqm fsck` does; where it is
damaged, nothing is restored. Keep a queue manager and the one that was restored from its backup
apart: they have the same identity."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add both commands to the parser."""
    backup = add_command(
        commands,
        "backup",
        "Copy everything that is durable to a directory, while the queue manager runs.",
        [("rpcqm backup /backup/monday", "a directory that is new or empty")],
        run_backup,
        BACKUP_DETAILS,
    )
    backup.add_argument("directory", metavar="DIR", type=Path, help="where the backup goes")
    add_local_options(backup)
    restore = add_command(
        commands,
        "restore",
        "Make a data directory from a backup.",
        [("rpcqm restore /backup/monday --data-dir /var/lib/rpcqm", "one that is new or empty")],
        run_restore,
        RESTORE_DETAILS,
    )
    restore.add_argument("directory", metavar="DIR", type=Path, help="a backup")
    add_local_options(restore)


def run_backup(arguments: argparse.Namespace) -> int:
    """Have the running queue manager make a backup."""
    directory = arguments.directory.absolute()

    async def work(client: "QueueManagerClient") -> None:
        from rpcqm.client.maintenance import MaintenanceError

        try:
            await client.maintenance.make_backup(directory)
        except MaintenanceError as error:
            raise CommandError(str(error)) from error
        print(f"{directory} is a backup.")

    return with_server(arguments, "make a backup", work, administrators_only=True)


def run_restore(arguments: argparse.Namespace) -> int:
    """Make a data directory from a backup."""
    # Only now, because the database takes time to load and other commands need none.
    from rpcqm.store.backup import restore_backup
    from rpcqm.store.errors import StoreError

    data_dir = configuration(arguments).data_dir
    try:
        with ProgressDisplay("Checked") as progress:
            note = restore_backup(
                arguments.directory, data_dir, lambda _, records: progress.advance_to(records)
            )
    except StoreError as error:
        raise CommandError(f"Cannot restore: {visible(str(error))}") from error
    count = counted(int(str(note.get("messages", 0))), "message")
    print(
        f"{data_dir} is {note.get('queue_manager')} as of {note.get('made')}, with about {count}."
    )
    return ExitStatus.OK
