"""The service of triggers as a process, beside a queue manager of a test."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rpcqm.testing import PrivateQueueManager
from tests.support.waiting import until


class RunningService:
    """A process `rpcqm triggers run`, and its log."""

    def __init__(self, queue_manager: PrivateQueueManager, log: Path) -> None:
        self._queue_manager = queue_manager
        self._log = log
        self._file = log.open("wb")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RPCQM_")}
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "rpcqm", "triggers", "run"),
                *("--data-dir", str(queue_manager.data_dir)),
            ],
            stderr=self._file,
            env=environment,
        )

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log about something."""
        text = self._log.read_text("utf-8", "replace")
        found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [line for line in found if line["event"] == event]

    def stop(self) -> int:
        """Stop it as systemd does; returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self._file.close()
        return status

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait(60)
        self._file.close()


class Rules:
    """The rules of a queue manager, as commands and programs see them."""

    def __init__(self, queue_manager: PrivateQueueManager) -> None:
        self._queue_manager = queue_manager

    def _run(self, *words: str) -> str:
        return self._queue_manager.run(*words).stdout

    def add(self, name: str, queue: str, *words: str) -> None:
        self._run("trigger", "add", name, queue, *words)

    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._run("trigger", "list", "--json"))
        return told

    def of(self, name: str) -> dict[str, Any]:
        """What is told of one rule."""
        (found,) = [each for each in self.told()["triggers"] if each["name"] == name]
        return dict(found)

    def until(self, name: str, **members: object) -> dict[str, Any]:
        """Wait until a rule is told to be so."""
        until(lambda: members.items() <= self.of(name).items())
        return self.of(name)


@contextmanager
def running_service(queue_manager: PrivateQueueManager, log: Path) -> Iterator[RunningService]:
    """The service, until the end of the block."""
    service = RunningService(queue_manager, log)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.stop()
