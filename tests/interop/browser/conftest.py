"""A queue manager with pages, and a browser of each file's own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.console.browser import open_browser
from tests.support.console.chromium import PROGRAMS, Person, person

AXE = Path(__file__).parent / "node" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    """A queue manager with the account boss, who administrates it."""
    with private_queue_manager(("--console-port", "0")) as queue_manager:
        words = ("boss", "--group", "administrators", "--password-stdin")
        queue_manager.run("user", "add", *words, input="secret\n")
        yield queue_manager


@pytest.fixture(scope="module")
def someone(
    request: pytest.FixtureRequest, require: Callable[..., None], running: PrivateQueueManager
) -> Iterator[Person]:
    """A person at the pages, logged on; the module's SCRIPTS tells whether scripts run."""
    require(*PROGRAMS)
    scripts = getattr(request.module, "SCRIPTS", True)
    with person(open_browser(running).home, scripts=scripts) as made:
        made.log_on("boss")
        yield made


@pytest.fixture(scope="module")
def axe(require: Callable[..., None]) -> str:
    """The source of axe-core."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (scripts/install-peers)")
    return AXE.read_text("utf-8")
