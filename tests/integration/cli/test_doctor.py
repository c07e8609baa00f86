"""`rpcqm doctor` of a queue manager that runs, and of one that does not."""

import json
from pathlib import Path

from rpcqm.testing import PrivateQueueManager

EVERY_SUBJECT = {"files", "accounts", "disk", "clock", "limits", "name"}


def test_a_running_one_is_asked_as_windows_would(queue_manager: PrivateQueueManager) -> None:
    outcome = queue_manager.run("doctor", "--json")
    findings = json.loads(outcome.stdout)
    assert {finding["subject"] for finding in findings} >= EVERY_SUBJECT | {"rpc door", "Windows"}
    _, port = queue_manager.endpoint("rpc")
    sentence = f"The endpoint mapper leads it to RemoteRead at port {port}, which answers."
    assert {"subject": "Windows", "level": "ok", "text": sentence} in findings
    assert all(finding["text"].endswith(".") for finding in findings)


def test_one_that_does_not_run_is_told(tmp_path: Path) -> None:
    idle = PrivateQueueManager(tmp_path / "data")
    outcome = idle.run("doctor", check=False)
    assert "None runs on the data directory." in outcome.stdout
    assert "is not there yet; the first start makes it." in outcome.stdout
