"""The data directory of a queue manager that starts, and the store in it."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.clock import Clock
from rpcqm.base.metrics import Metrics
from rpcqm.binary.connection.new_sequences import begin_new_sequences
from rpcqm.config import Configuration
from rpcqm.service.start_error import StartError
from rpcqm.store.ballast import Ballast
from rpcqm.store.directory_mark import marked
from rpcqm.store.errors import StoreError
from rpcqm.store.settings import MIB, StoreSettings
from rpcqm.store.store import Store, exit_unanswered

if TYPE_CHECKING:
    from rpcqm.service.cluster.node import ClusterNode


@contextmanager
def usable(directory: Path) -> Iterator[None]:
    """StartError, with a sentence, for what goes wrong with a data directory in the block."""
    try:
        yield
    except StoreError as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(
            f"{error.filename or directory} cannot be used: {error.strerror or error}; choose "
            "another directory with --data-dir."
        ) from error


def open_store(
    configuration: Configuration, clock: Clock, metrics: Metrics, undo: AsyncExitStack
) -> tuple[Store, str]:
    """The store of a queue manager, which `undo` closes, and the order of its mark (G491).

    Raises StartError, also for a data directory that was copied.
    """
    directory = configuration.data_dir
    prepare_directory(directory)
    Ballast(directory, configuration.storage.ballast * MIB).make_room()
    executor = _executor(undo)
    with usable(directory), marked(directory) as order:
        store = _opened(configuration, clock, metrics, executor)
        undo.callback(store.close)
    return store, order


async def open_store_in_cluster(
    node: "ClusterNode", metrics: Metrics, undo: AsyncExitStack
) -> tuple[Store, str]:
    """The same of a node that has taken over: what is collected at the end, the log has, too."""
    executor = _executor(undo)
    with usable(node.configuration.data_dir):
        store = _opened(node.configuration, node.clock, metrics, executor, node)
        undo.callback(store.close)
        await asyncio.get_running_loop().run_in_executor(executor, store.recover)
        store.drop_staged()
    undo.push_async_callback(node.stop_syncing)
    undo.push_async_callback(node.settle, store)
    return store, node.order


def _executor(undo: AsyncExitStack) -> ThreadPoolExecutor:
    executor = ThreadPoolExecutor(2, thread_name_prefix="store")
    undo.callback(executor.shutdown)
    return executor


def _opened(
    configuration: Configuration,
    clock: Clock,
    metrics: Metrics,
    executor: ThreadPoolExecutor,
    node: "ClusterNode | None" = None,
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
        fatal=exit_unanswered if node is None else node.failed,
        log=None if node is None else node.appender,
        database=None if node is None else node.database,
        later=node is not None,
    )


def prepare_directory(path: Path) -> None:
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
