"""`rpcqm doctor` of a queue manager that runs, and of one that does not."""

import json
from pathlib import Path

from rpcqm.config.schema import switches
from rpcqm.testing import PrivateQueueManager, private_queue_manager

EVERY_SUBJECT = {"files", "accounts", "disk", "clock", "limits", "name"}


def test_a_running_one_is_asked_as_windows_would(queue_manager: PrivateQueueManager) -> None:
    outcome = queue_manager.run("doctor", "--json")
    findings = json.loads(outcome.stdout)
    assert {finding["subject"] for finding in findings} >= EVERY_SUBJECT | {"rpc door", "Windows"}
    _, port = queue_manager.endpoint("rpc")
    sentence = f"The endpoint mapper leads it to RemoteRead at port {port}, which answers."
    assert {"subject": "Windows", "level": "ok", "text": sentence} in findings
    assert all(finding["text"].endswith(".") for finding in findings)


def test_bounds_in_force_are_told_where_somebody_wants_them(
    queue_manager: PrivateQueueManager,
) -> None:
    short, whole = (queue_manager.run("doctor", *words).stdout for words in ((), ("--all",)))
    hidden = [line for line in whole.splitlines() if "In force of" in line]
    assert len(hidden) > 20
    assert "In force of" not in short
    assert len(whole.splitlines()) == len(short.splitlines()) - 1 + len(hidden)
    last = f"The bounds in force are {len(hidden)} lines more: `rpcqm doctor --all`."
    assert short.splitlines()[-1] == last
    assert "bounds" in queue_manager.run("doctor", "--json").stdout


def test_one_that_does_not_run_is_told(tmp_path: Path) -> None:
    idle = PrivateQueueManager(tmp_path / "data")
    outcome = idle.run("doctor", check=False)
    assert "None runs on the data directory." in outcome.stdout
    assert "is not there yet; the first start makes it." in outcome.stdout


def test_doctor_and_the_log_name_every_switch_that_is_on_and_no_other() -> None:
    on = {setting for setting in switches() if setting.kind is bool}
    environment = {setting.variable: "true" for setting in on}
    with private_queue_manager(environment=environment) as opened:
        findings = json.loads(opened.run("doctor", "--json").stdout)
        log = opened.log
    told = [finding["text"] for finding in findings if finding["subject"] == "switches"]
    assert len(told) == len(on)
    for setting in on:
        assert any(setting.key in text and setting.about.opens in text for text in told)
        assert setting.key in log


def test_a_switch_that_a_reload_turns_on_is_logged(tmp_path: Path) -> None:
    with private_queue_manager(data_dir=tmp_path / "data") as queue_manager:
        assert "a switch is on" not in queue_manager.log
        said = queue_manager.reload("[security]\ndebug_rpc = true\n")
        assert "security.debug_rpc" in said
        assert "a switch is on" in said


def test_queues_that_anonymous_owns_or_may_read_are_named() -> None:
    with private_queue_manager() as running:
        for queue in ("safe", "owned", "read", "peeked", "journal"):
            running.run("queue", "create", queue)
        running.run("queue", "acl", "owner", "owned", "anonymous")
        running.run("queue", "acl", "grant", "read", "anonymous", "full")
        running.run("queue", "acl", "grant", "peeked", "anonymous", "peek")
        running.run("queue", "acl", "grant", "journal", "anonymous", "receive-journal")
        findings = json.loads(running.run("doctor", "--json").stdout)
        told = [each for each in findings if each["subject"] == "queues"]
        assert [each["level"] for each in told] == ["warning"] * 4
        for queue in ("owned", "read", "peeked", "journal"):
            assert sum(f"\\{queue}`" in each["text"] for each in told) == 1
        for queue in ("owned", "read", "peeked", "journal"):
            running.run("queue", "delete", queue)
        findings = json.loads(running.run("doctor", "--json").stdout)
        told = [each for each in findings if each["subject"] == "queues"]
        assert [each["level"] for each in told] == ["ok"]


def test_queues_where_everyone_may_do_everything_are_named() -> None:
    with private_queue_manager() as running:
        for queue in ("safe", "open"):
            running.run("queue", "create", queue)
        running.run("queue", "acl", "grant", "open", "everyone", "full")
        findings = json.loads(running.run("doctor", "--json").stdout)
    (told,) = [each for each in findings if "Everyone who logs on" in each["text"]]
    assert told["level"] == "warning"
    assert "\\open` or change its permissions" in told["text"]
