"""A disk that gives errors: the process ends unanswered, and nothing acknowledged is lost."""

from pathlib import Path

import pytest

from rpcqm.store.store import EXIT_STATUS
from tests.crash.server_load import ServerLoad, loaded_queue_manager
from tests.support.fast import templates
from tests.support.preloading import compile_library

SEED = 1
SECONDS = 20


def fail_and_die(load: ServerLoad, trigger: Path) -> int:
    """Let the disk fail under load; the exit status."""
    process = load.queue_manager.process
    assert process is not None

    def fail() -> None:
        trigger.touch()
        process.wait(SECONDS)

    load.live_until(fail)
    trigger.unlink()
    return process.returncode


@pytest.mark.parametrize(
    ("operation", "switch"), [("sync", "true"), ("write", "true"), ("write", "false")]
)
def test_an_error_of_the_disk_ends_the_process_unanswered(
    tmp_path: Path, operation: str, switch: str
) -> None:
    trigger = tmp_path / "failing"
    environment = {
        "LD_PRELOAD": str(compile_library("failing_disk", tmp_path)),
        "FAILING_DIRECTORY": str(tmp_path / "data" / "messages"),
        f"FAILING_{operation.upper()}": str(trigger),
        templates.VARIABLE: switch,
    }
    with loaded_queue_manager(SEED, environment, tmp_path / "data") as load:
        assert fail_and_die(load, trigger) == EXIT_STATUS
        critical = [line for line in load.queue_manager.log.splitlines() if "critical" in line]
        assert len(critical) == 1
        assert "a write failed and nobody knows its outcome" in critical[0]
        assert "Input/output error" in critical[0]
        load.restart()
        load.run(1)
