"""Backups of a queue manager that runs."""

from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rpcqm.base.completion import Completion, start
from rpcqm.base.log import get_logger
from rpcqm.config import Configuration
from rpcqm.config.written import named_files, written
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.store.backup import CONFIGURATION_FILE
from rpcqm.store.errors import StoreError

_log = get_logger("service")


class Backups:
    """Copies the store, the accounts and the configuration."""

    def __init__(
        self,
        engine: QueueManagerEngine,
        user_file: Path,
        configuration: Callable[[], Configuration] = Configuration,
    ) -> None:
        self._store, self._clock = engine.store, engine.clock
        self._queue_manager = engine.queue_manager
        self._user_file = user_file
        self._configuration = configuration

    def make(self, directory: str, secrets: bool = False) -> Completion[str]:
        """Copy to a directory that is new or empty.

        The files with keys and passwords that the configuration names are copied if `secrets`.

        The outcome is a sentence that says why it cannot be done, "" when it is.
        """
        return start(self._make(Path(directory), secrets))

    async def _make(self, directory: Path, secrets: bool) -> str:
        if not directory.is_absolute():
            return f"{directory} is no absolute path."
        try:
            note = self._note() | {"secrets": secrets}
            files = configuration_files(self._configuration(), secrets)
            await self._store.backup(directory, [self._user_file], note, files)
        except StoreError as error:
            return str(error)
        except Exception as error:  # RocksDB's own errors are texts only; it is told and logged
            problem = sentence(directory, error)
            _log.error("no backup made", problem=problem)
            return problem
        _log.info("backup made", directory=str(directory))
        return ""

    def _note(self) -> dict[str, object]:
        queue_manager = self._queue_manager
        made = datetime.fromtimestamp(self._clock.now() / 1000, UTC)
        return {
            "queue_manager": queue_manager.computer_name,
            "identifier": str(queue_manager.identifier),
            "made": made.isoformat(timespec="seconds"),
            "messages": self._store.total.count,
            "rpcqm": version("rpcqm"),
        }


def configuration_files(configuration: Configuration, secrets: bool) -> dict[str, bytes]:
    """Names in a backup, and contents, of the configuration and the files that it names."""
    files = {CONFIGURATION_FILE: written(configuration).encode()}
    for key, path in named_files(configuration, secrets).items():
        files[f"{key}{path.suffix}"] = path.read_bytes()
    return files


def sentence(directory: Path, error: Exception) -> str:
    """Why a directory cannot be written."""
    text = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return f"The queue manager cannot write {directory}: {text}."
