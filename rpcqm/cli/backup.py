"""`rpcqm backup` and `rpcqm restore`: copies of everything that is durable."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.errors import FaultStatus, RpcFault
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
recoverable messages, transactions and accounts, and in its directory `configuration` the settings
in force, the directory file and the certificate that they name. Keys and passwords of other files
are in it with --with-secrets only; hashes of the accounts' passwords always are. It is written by
the queue manager, so its user needs the right to. Where it is on the same file system it takes
little time and space: files that do not change any more are shared."""

RESTORE_DETAILS = """\
No queue manager may run there. The backup is checked first, as `rpcqm fsck` does; where it is
damaged, nothing is restored. Keep a queue manager and the one that was restored from its backup
apart: they have the same identity. The name that the queue manager had and its configuration are
printed; putting the configuration in place is left to you."""


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
    backup.add_argument(
        "--with-secrets",
        action="store_true",
        help="copy the files with keys and passwords, too, that the configuration names",
    )
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
            await client.maintenance.make_backup(directory, secrets=arguments.with_secrets)
        except MaintenanceError as error:
            raise CommandError(str(error)) from error
        except RpcFault as error:
            if error.status is not FaultStatus.nca_s_unk_if:
                raise
            await _copy_standby(client, arguments, directory)
        print(f"{directory} is a backup.")

    return with_server(arguments, "make a backup", work, administrators_only=True)


async def _copy_standby(
    client: "QueueManagerClient", arguments: argparse.Namespace, directory: Path
) -> None:
    """The same at a standby, which serves little else."""
    if arguments.with_secrets:
        raise CommandError("A standby copies no keys and passwords: leave out --with-secrets.")
    if problem := await client.cluster.copy(directory):
        raise CommandError(problem)


def run_restore(arguments: argparse.Namespace) -> int:
    """Make a data directory from a backup."""
    # Only now, because the database takes time to load and other commands need none.
    from rpcqm.store.backup import backed_up_configuration, restore_backup
    from rpcqm.store.errors import StoreError

    here = configuration(arguments)
    data_dir = here.data_dir
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
    _tell_name(str(note.get("queue_manager")), here.name)
    if text := backed_up_configuration(arguments.directory):
        _tell_configuration(arguments.directory, text, bool(note.get("secrets")))
    return ExitStatus.OK


def _tell_name(before: str, now: str) -> None:
    if before.casefold() != now.casefold():
        print(
            f"It was named `{before}`, and the configuration here says `{now}`: set "
            f'name = "{before}" before it starts, or the path names of its queues change.'
        )


def _tell_configuration(backup: Path, text: str, secrets: bool) -> None:
    kept = "are there, too" if secrets else "are not in the backup"
    print(f"Its configuration is in {backup / 'configuration'}; keys and passwords {kept}:")
    for line in text.splitlines():
        print(f"  {visible(line)}".rstrip())
