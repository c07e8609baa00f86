"""Stores whose turns end when the test says so."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.clock import SimulatedClock


class Turns:
    """The ends of turns of one store, or of one store after another in the same directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = SimulatedClock()
        self.callbacks: list[Callable[[], None]] = []
        self.fatal: list[BaseException] = []
        """What the store could not write."""

    def end(self) -> None:
        """End this turn, and those that follow from it."""
        while self.callbacks:
            self.callbacks.pop(0)()

    def open(self, **options: Any) -> Store:
        """Open the store; options are those of `Store.open`."""
        settings = options.pop("settings", StoreSettings(reserve=0))
        return Store.open(
            self.directory,
            end_of_turn=self.callbacks.append,
            clock=self.clock,
            fatal=self.fatal.append,
            settings=settings,
            **options,
        )

    def reopen(self, store: Store, **options: Any) -> Store:
        """Stop cleanly and start again."""
        store.close()
        self.callbacks.clear()
        return self.open(**options)


def copy_of_running(source: Path, target: Path) -> None:
    """Copy a store's directory; its background work may remove files meanwhile."""
    for _ in range(100):
        try:
            shutil.copytree(source, target)
        except shutil.Error:
            shutil.rmtree(target)
        else:
            return
    raise AssertionError(f"{source} does not come to rest")
