"""Schemathesis drives the whole interface by its description: nothing fails, all is as declared."""

from pathlib import Path

from rpcqm.api.routes import BASE, ROUTES
from rpcqm.testing import private_queue_manager
from tests.support.soak.api_soak import CONFIGURATION, drive

SECONDS = 50
"""In all; the tool itself takes some seconds to load."""


def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    with private_queue_manager(("--console-port", "0"), CONFIGURATION) as running:
        driven = drive(running, tmp_path, 1, SECONDS, "fuzzing")
        assert driven.failed == "", driven.failed[-6000:]
        assert driven.operations == {f"{each.method} {BASE}{each.path}" for each in ROUTES}
