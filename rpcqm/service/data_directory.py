"""The data directory of a queue manager that starts, and the store in it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

from rpcqm.base.clock import Clock
from rpcqm.base.metrics import Metrics
from rpcqm.binary.connection.new_sequences import begin_new_sequences
from rpcqm.config import Configuration
from rpcqm.service.start_error import StartError
from rpcqm.store.ballast import Ballast
from rpcqm.store.directory_mark import marked
from rpcqm.store.errors import StoreError
from rpcqm.store.settings import MIB, StoreSettings
from rpcqm.store.store import Store


def open_store(
    configuration: Configuration, clock: Clock, metrics: Metrics, undo: AsyncExitStack
) -> tuple[Store, str]:
    """The store of a queue manager, which `undo` closes, and the order of its mark (G491).

    Raises StartError, also for a data directory that was copied.
    """
    directory = configuration.data_dir
    _prepare_directory(directory)
    Ballast(directory, configuration.storage.ballast * MIB).make_room()
    executor = ThreadPoolExecutor(2, thread_name_prefix="store")
    undo.callback(executor.shutdown)
    try:
        with marked(directory) as order:
            store = _opened(configuration, clock, metrics, executor)
            undo.callback(store.close)
    except StoreError as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(
            f"{error.filename or directory} cannot be used: {error.strerror or error}; choose "
            "another directory with --data-dir."
        ) from error
    return store, order


def _opened(
    configuration: Configuration, clock: Clock, metrics: Metrics, executor: ThreadPoolExecutor
) -> Store:
    loop, storage = asyncio.get_running_loop(), configuration.storage
    return Store.open(
        configuration.data_dir,
        end_of_turn=loop.call_soon,
        clock=clock,
        settings=StoreSettings(
            reserve=storage.reserve * MIB,
            ballast=storage.ballast * MIB,
            express_memory=storage.express_memory * MIB,
        ),
        executor=executor.submit,
        call_from_thread=loop.call_soon_threadsafe,
        metrics=metrics,
        begin_anew=begin_new_sequences,
    )


def _prepare_directory(path: Path) -> None:
    """Make the data directory; others may pass through it to the socket, and no more."""
    try:
        if not path.exists():
            path.mkdir(parents=True)
            path.chmod(0o711)
    except OSError as error:
        raise StartError(
            f"The data directory {path} cannot be made: {error.strerror}; choose another one "
            "with --data-dir."
        ) from error
