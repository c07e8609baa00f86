"""Receives of qmcomm at a served queue manager are answered by templates, and compared."""

import asyncio
import inspect
from pathlib import Path

import pytest

from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import OutcomeUnknownError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.fast.doors import rpc_receive_answers as _receive_answers
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager
from tests.mutations import hook
from tests.support.fast import templates
from tests.support.shadow import switch

QUEUE = FormatName.parse(r"DIRECT=OS:.\private$\orders")
MANY = 6
"""The second request of a shape is learned from, the third one's message, the fourth is filled."""
RIGHT, WRONG = "            application_tag,\n", "            application_tag ^ 1,\n"


@pytest.fixture
def wrong(tmp_path: Path) -> dict[str, str]:
    """The environment of a queue manager whose templates tell another application tag."""
    path = inspect.getfile(_receive_answers)
    source = Path(path).read_text("utf-8")
    assert source.count(RIGHT) == 1
    change = {
        "module": _receive_answers.__name__,
        "path": path,
        "source": source.replace(RIGHT, WRONG),
    }
    folder = tmp_path / "hook"
    folder.mkdir()
    return hook.environment(folder, change) | {templates.VARIABLE: "true"}


def received(queue_manager: PrivateQueueManager) -> list[tuple[bytes, int]]:
    """Bodies and tags of what a dependent client gets."""

    async def read() -> list[tuple[bytes, int]]:
        async with (
            QueueManagerClient(queue_manager.target) as client,
            client.open_dependent(QUEUE) as queue,
        ):
            taken = [await queue.receive(0) for _ in range(MANY)]
        return [(message.body, message.application_tag) for message in taken]

    return asyncio.run(read())


def fill(queue_manager: PrivateQueueManager) -> None:
    queue_manager.run("queue", "create", "orders")
    with queue_manager.client() as client, client.open_sender(QUEUE) as sender:
        for number in range(MANY + 1):
            sender.send(OutgoingMessage(b"%d" % number, label="order", application_tag=4))


def test_dependent_clients_are_answered_by_templates_and_lose_nothing(
    wrong: dict[str, str],
) -> None:
    """Told by the tag, which templates tell wrong here; what was received is gone for good."""
    with private_queue_manager(environment=wrong | switch.OFF) as queue_manager:
        fill(queue_manager)
        taken = received(queue_manager)
        assert [body for body, _ in taken] == [b"%d" % number for number in range(MANY)]
        assert [tag for _, tag in taken] == [4, 4, 4, 5, 5, 5]
        queue_manager.kill()
        queue_manager.start()
        with queue_manager.client() as client, client.open_reader(QUEUE) as reader:
            assert [message.body for message in reader.browse()] == [b"%d" % MANY]


def test_a_wrong_answer_ends_a_served_process_that_compares(wrong: dict[str, str]) -> None:
    with private_queue_manager(environment=wrong | switch.ON) as queue_manager:
        fill(queue_manager)
        with pytest.raises(OutcomeUnknownError):
            received(queue_manager)
        assert queue_manager.process is not None
        assert queue_manager.process.wait(30) == switch.EXIT_STATUS
        assert "templates differ from the careful path" in queue_manager.log
