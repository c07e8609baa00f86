"""What templates do is compared with the careful path wherever RPCQM_SHADOW=1 says so."""

import inspect
from pathlib import Path

import pytest

from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.target import OutcomeUnknownError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.fast.doors import rpc_sent_values as _sent_values
from rpcqm.testing.private import KEPT, PrivateQueueManager, private_queue_manager
from tests.mutations import hook
from tests.support.fast import templates
from tests.support.shadow import switch

QUEUE = FormatName.parse(r"DIRECT=OS:.\private$\orders")
MANY = 6
"""The second of a shape is learned from, the third is recognised."""
RIGHT, WRONG = "priority, tag or 0, correlation", "priority, (tag or 0) ^ 1, correlation"


@pytest.fixture
def wrong(tmp_path: Path) -> dict[str, str]:
    """The environment of a queue manager whose templates tell another application tag."""
    path = inspect.getfile(_sent_values)
    source = Path(path).read_text("utf-8")
    assert RIGHT in source
    change = {
        "module": _sent_values.__name__,
        "path": path,
        "source": source.replace(RIGHT, WRONG),
    }
    folder = tmp_path / "hook"
    folder.mkdir()
    return hook.environment(folder, change) | {templates.VARIABLE: "true"}


def send_some(queue_manager: PrivateQueueManager) -> None:
    with queue_manager.client() as client, client.open_sender(QUEUE) as sender:
        for _ in range(MANY):
            sender.send(OutgoingMessage(b"body", application_tag=4))


def tags(queue_manager: PrivateQueueManager) -> list[int]:
    with queue_manager.client() as client, client.open_reader(QUEUE) as reader:
        return [message.application_tag for message in reader.browse()]


def test_a_template_that_differs_ends_a_served_process_with_status_86(
    wrong: dict[str, str],
) -> None:
    with private_queue_manager(environment=wrong | switch.ON) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        with pytest.raises(OutcomeUnknownError):
            send_some(queue_manager)
        assert queue_manager.process is not None
        assert queue_manager.process.wait(30) == switch.EXIT_STATUS
        assert "templates differ from the careful path" in queue_manager.log


def test_without_a_shadow_templates_do_what_they_say(wrong: dict[str, str]) -> None:
    """So that the test above is about what a template does, in each process that is served."""
    with private_queue_manager(environment=wrong | switch.OFF) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        send_some(queue_manager)
        told = tags(queue_manager)
    assert told == [4] * (MANY - told.count(5)) + [5] * told.count(5)
    assert told.count(5) >= MANY - 3


SWITCHES = {"off": "[limits]\nrequest_templates = false\n", "on": ""}


def test_templates_are_off_by_the_setting_and_by_a_reload(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]
) -> None:
    monkeypatch.delenv(templates.VARIABLE, raising=False)  # it would win over the file
    environment = {name: value for name, value in wrong.items() if name != templates.VARIABLE}
    environment |= switch.OFF
    with private_queue_manager((), SWITCHES["off"], environment) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        send_some(queue_manager)
        assert tags(queue_manager) == [4] * MANY
        queue_manager.reload(SWITCHES["on"])
        send_some(queue_manager)
        assert 5 in tags(queue_manager)
        before = tags(queue_manager).count(5)
        queue_manager.reload(SWITCHES["off"])
        send_some(queue_manager)
        assert tags(queue_manager).count(5) == before


def test_the_environment_switches_templates_off(wrong: dict[str, str]) -> None:
    """As `scripts/soak templates-off` does for all that tests start."""
    with private_queue_manager(environment=wrong | {templates.VARIABLE: "false"}) as machine:
        machine.run("queue", "create", "orders")
        send_some(machine)
        assert tags(machine) == [4] * MANY


def test_queue_managers_of_tests_get_both_variables(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]
) -> None:
    """Told apart by what templates that are wrong do, as a process may come of another one."""
    assert set(KEPT) == {switch.VARIABLE, templates.VARIABLE}
    hooked = {name: value for name, value in wrong.items() if name != templates.VARIABLE}
    monkeypatch.setenv(switch.VARIABLE, switch.ON[switch.VARIABLE])
    monkeypatch.setenv(templates.VARIABLE, "false")
    with private_queue_manager(environment=hooked) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        send_some(queue_manager)
        assert tags(queue_manager) == [4] * MANY
    monkeypatch.setenv(templates.VARIABLE, "true")
    with private_queue_manager(environment=hooked) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        with pytest.raises(OutcomeUnknownError):
            send_some(queue_manager)
        assert queue_manager.process is not None
        assert queue_manager.process.wait(30) == switch.EXIT_STATUS
