"""A backup of a node's data, whether it is the queue manager or a standby."""

import asyncio
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.config import Configuration
from rpcqm.service.backups import configuration_files, sentence
from rpcqm.store.backup import ACCOUNTS_NAME, write_backup
from rpcqm.store.database import Database
from rpcqm.store.errors import StoreError
from rpcqm.store.records import Family

_log = get_logger("service")


async def copy_of(
    database: Database, configuration: Configuration, clock: Clock, directory: Path
) -> str:
    """Copy a database that is in use; returns a sentence about a failure, or ""."""
    if not directory.is_absolute():
        return f"{directory} is no absolute path."
    made = datetime.fromtimestamp(clock.now() / 1000, UTC)
    note = {
        "queue_manager": configuration.name,
        "made": made.isoformat(timespec="seconds"),
        "rpcqm": version("rpcqm"),
        "secrets": False,
    }
    accounts = configuration.data_dir / ACCOUNTS_NAME
    try:
        files = configuration_files(configuration, secrets=False)
        count = await asyncio.to_thread(_messages, database)
        note |= {"messages": count}
        await asyncio.to_thread(write_backup, database, directory, [accounts], note, files)
    except StoreError as error:
        return str(error)
    except Exception as error:  # RocksDB's own errors are texts only; they are returned and logged
        problem = sentence(directory, error)
        _log.error("no backup made", problem=problem)
        return problem
    _log.info("backup made", directory=str(directory))
    return ""


def _messages(database: Database) -> int:
    return sum(1 for _ in database.items(Family.POSITION))
