"""The process of a queue manager: its loop, its signals, its logs."""

import asyncio
import contextlib
import gc
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rpcqm.base import log
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.config import Configuration, ConfigurationError
from rpcqm.service.notify import ALIVE, READY, STATUS, STOPPING, notify, reloading, watchdog_seconds
from rpcqm.service.queue_manager_service import QueueManagerService
from rpcqm.service.start_error import StartError

PRIVATE = 0o077
COLLECTION_THRESHOLDS = (2_000, 1, 5_000)
"""What is kept for long is in arrays, and counts of its own end it: collections are short, 1 to
4 ms, and one of all objects comes after tens of millions of new ones."""

_log = log.get_logger("service")


def serve(
    configuration: Configuration,
    load: Callable[[], Configuration],
    capture: Path | None = None,
) -> None:
    """Run a queue manager until SIGTERM or SIGINT; StartError when it cannot be started.

    On SIGHUP it takes over what `load` then returns, as far as a running one can. What is served
    is recorded in `capture`, in clear.
    """
    _configure_log(configuration)
    os.umask(PRIVATE)
    _allow_many_connections()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(configuration, load, capture))


def _configure_log(configuration: Configuration) -> None:
    log.configure(configuration.logging.level, log.is_json(configuration.logging.format))


def _allow_many_connections() -> None:
    """Every connection is an open file; the usual limit of 1024 is there for select(2)."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(
    configuration: Configuration,
    load: Callable[[], Configuration],
    capture: Path | None,
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    reloads = _Reloads(load)
    loop.add_signal_handler(signal.SIGHUP, reloads.ask)
    if configuration.replica.log:
        from rpcqm.service.cluster.serving import serve_in_cluster  # only where there is a log

        signs = loop.create_task(_give_signs_of_life())
        try:
            serve = partial(_serve_until, reloads, configuration.data_dir)
            await serve_in_cluster(configuration, stopping, capture, serve)
        finally:
            signs.cancel()
    else:
        service = QueueManagerService(configuration, capture=capture)
        await _serve_until(reloads, configuration.data_dir, stopping, service)


async def _serve_until(
    reloads: "_Reloads", data_dir: Path, stopping: asyncio.Event, service: QueueManagerService
) -> None:
    """Run a queue manager until `stopping` is set."""
    reloads.service = service
    await _started(service, data_dir)
    signs = asyncio.get_running_loop().create_task(_give_signs_of_life())
    try:
        _settle_memory()
        notify(READY)
        _log.info(
            "ready",
            name=service.ready.name,
            data=str(data_dir),
            pages=service.pages,
            **{door: f"{host}:{port}" for door, (host, port) in service.ready.endpoints.items()},
        )
        reloads.begin()
        await stopping.wait()
    finally:
        signs.cancel()
        notify(STOPPING)
        await service.stop()
        _log.info("stopped", templated=service.templated)


async def _started(service: QueueManagerService, data_dir: Path) -> None:
    """Start a queue manager; StartError also for data that none has written so (G521)."""
    try:
        await service.start()
    except (DecodeError, MQError, UnicodeDecodeError) as error:
        raise StartError(
            f"The data in {data_dir} cannot be used, {error}: restore a backup that is whole."
        ) from error


class _Reloads:
    """Takes over configurations; one that is asked for during the start waits for its end.

    Without this a signal that comes as soon as the ready file is there would end the process.
    """

    service: QueueManagerService

    def __init__(self, load: Callable[[], Configuration]) -> None:
        self._load = load
        self._begun = self._asked = False

    def ask(self) -> None:
        """Do it, now or at the end of the start."""
        if self._begun:
            _reload(self.service, self._load)
        else:
            self._asked = True

    def begin(self) -> None:
        """The start is over."""
        self._begun = True
        if self._asked:
            _reload(self.service, self._load)


async def _give_signs_of_life() -> None:
    """Tell the service manager's watchdog that the loop runs, where there is one."""
    seconds = watchdog_seconds()
    while seconds is not None:
        notify(ALIVE)
        await asyncio.sleep(seconds)


def _reload(service: QueueManagerService, load: Callable[[], Configuration]) -> None:
    """Take over the configuration as it is now; a wrong one is told and changes nothing."""
    notify(reloading())
    try:
        configuration = load()
        taken, waiting = service.reload(configuration)
    except ConfigurationError as error:
        _log.error("not reloaded", mistakes=[str(mistake) for mistake in error.mistakes])
        said = f"Not reloaded: {error.mistakes[0]}"
    else:
        _configure_log(configuration)
        _log.info(
            "reloaded",
            changed=taken,
            waiting_for_restart=waiting,
            templated=service.templated,
        )
        said = f"Reloaded; {', '.join(waiting)} from the next start on" if waiting else "Reloaded"
    notify(f"{READY}\n{STATUS}{said}")


def _settle_memory() -> None:
    """Leave what has been loaded out of every later collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None
