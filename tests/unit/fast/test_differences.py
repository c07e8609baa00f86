"""What becomes of a difference between templates and the careful path."""

import os
from pathlib import Path

import pytest

from tests.support.queue_manager import RunningQueueManager
from tests.support.shadow import comparing as shadow
from tests.support.shadow import switch


def test_a_difference_is_told_and_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses: list[int] = []
    monkeypatch.setattr(os, "_exit", statuses.append)
    shadow.end_process(shadow.Difference("answers", b"careful", b"templated"))
    assert statuses == [86]
    assert "templates differ from the careful path" in capsys.readouterr().err


@pytest.mark.parametrize("environment", [switch.ON, switch.OFF], ids=["on", "off"])
def test_a_queue_manager_is_observed_where_its_process_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    monkeypatch.setenv(switch.VARIABLE, environment[switch.VARIABLE])
    qm = RunningQueueManager(tmp_path)
    assert isinstance(qm.speed.turn.shadow, shadow.Shadow) is (environment is switch.ON)
    qm.stop()
