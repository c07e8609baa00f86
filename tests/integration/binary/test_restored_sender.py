"""Queue managers that were restored from a backup, and others that have gone on since.

A sender begins new sequences and leaves identifiers out (G358, G359); a receiver is sent on to.
"""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.support.ports import reserved_port
from tests.support.waiting import PATIENCE

STREAM = "DIRECT=OS:other\\private$\\stream"
ORDERS = "DIRECT=OS:other\\private$\\orders"


def configuration(name: str, port: int, more: str = "") -> str:
    return f'name = "{name}"\n{more}[binary]\npeers = "other=127.0.0.1:{port}"\n'


def bodies(machine: PrivateQueueManager, queue: str) -> list[str]:
    lines = machine.run("peek", queue, "--all", "--json", check=False).stdout.splitlines()
    return [str(json.loads(line)["body"]) for line in lines]


def await_bodies(machine: PrivateQueueManager, queue: str, *wanted: str) -> None:
    end = time.monotonic() + PATIENCE
    while (found := bodies(machine, queue)) != list(wanted):
        assert time.monotonic() < end, (found, machine.log)


def await_sent(sender: PrivateQueueManager) -> None:
    """Until nothing waits for its order to be acknowledged."""
    end = time.monotonic() + PATIENCE
    while any(
        queue["messages"]
        for queue in json.loads(sender.run("queue", "list", "--outgoing", "--json").stdout)
    ):
        assert time.monotonic() < end, sender.log


def test_a_restored_queue_manager_leaves_out_identifiers_that_it_may_have_given(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        lost = PrivateQueueManager(tmp_path / "lost")
        stack.callback(lost.stop)
        lost.start().run("queue", "create", "orders")
        first = lost.run("send", "orders", "--body", "first").stdout
        lost.run("backup", str(tmp_path / "backup"))
        restored = PrivateQueueManager(tmp_path / "restored")
        restored.run("restore", str(tmp_path / "backup"))
        stack.callback(restored.stop)
        again = restored.start().run("send", "orders", "--body", "again").stdout
    assert int(again.rpartition("\\")[2]) - int(first.rpartition("\\")[2]) > 1 << 28


class Story:
    """A sender whose backup is restored, twice, and what its receiver has been sent since."""

    def __init__(self, directory: Path, stack: ExitStack, more: str = "") -> None:
        """`more` is more of the configuration of both."""
        self.directory, self._stack, self._more = directory, stack, more
        self.port = reserved_port()
        self.receiver = self._machine("other", ("--binary-port", str(self.port)))
        self.sender = self._machine("here", ())
        self.receiver.run("queue", "create", "stream", "--transactional")
        self.receiver.run("queue", "create", "orders")

    def _machine(self, name: str, options: tuple[str, ...]) -> PrivateQueueManager:
        settings = configuration(name, self.port, self._more)
        machine = PrivateQueueManager(self.directory / name, options, settings)
        self._stack.callback(machine.stop)
        return machine.start()

    def send(self, *words: str) -> None:
        self.sender.run("send", STREAM, "--transactional", *words)

    def wait_and_back_up(self) -> None:
        """Two messages wait when the backup is made."""
        self.send("--body", "first")
        await_bodies(self.receiver, "stream", "first")
        await_sent(self.sender)
        self.sender.run("network", "disconnect")
        self.send("--body", "waits", "--count", "2")
        self.sender.run("backup", str(self.directory / "backup"))
        self.sender.run("network", "connect")

    def go_on(self) -> None:
        """What waits arrives, and more is sent, with identifiers that only a restart reaches."""
        await_bodies(self.receiver, "stream", "first", "waits", "waits")
        await_sent(self.sender)
        self.sender.restart()
        self.send("--body", "later")
        self.sender.run("send", ORDERS, "--body", "later")
        await_bodies(self.receiver, "stream", "first", "waits", "waits", "later")
        await_bodies(self.receiver, "orders", "later")

    def restore(self, name: str) -> None:
        self.sender.kill()
        settings = configuration("here", self.port, self._more)
        restored = PrivateQueueManager(self.directory / name, (), settings)
        restored.run("restore", str(self.directory / "backup"))
        self._stack.callback(restored.stop)
        self.sender = restored.start()
        self.sender.run("network", "connect")

    def receive_again(self) -> None:
        """Restore the receiver where it was."""
        settings = configuration("other", self.port, self._more)
        options = ("--binary-port", str(self.port))
        restored = PrivateQueueManager(self.directory / "restored", options, settings)
        restored.run("restore", str(self.directory / "backup"))
        self._stack.callback(restored.stop)
        self.receiver = restored.start()

    def send_back(self, body: str) -> None:
        self.send("--body", body)
        self.sender.run("send", ORDERS, "--body", body)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with ExitStack() as stack:
        told = Story(tmp_path_factory.mktemp("story"), stack)
        told.wait_and_back_up()
        told.go_on()
        told.restore("restored")
        told.send_back("back")
        yield told


BEFORE = ("first", "waits", "waits", "later")
AGAIN = ("waits", "waits", "back")


@pytest.mark.conformance("MQQB-rule-3.1.1.5")
def test_a_restored_sender_sends_what_waits_and_what_is_new_in_new_sequences(story: Story) -> None:
    await_bodies(story.receiver, "stream", *BEFORE, *AGAIN)
    await_sent(story.sender)


def test_new_messages_of_a_restored_sender_are_no_duplicates_of_those_sent_meanwhile(
    story: Story,
) -> None:
    await_bodies(story.receiver, "orders", "later", "back")


def test_a_restart_of_a_restored_sender_begins_no_other_sequences(story: Story) -> None:
    await_bodies(story.receiver, "stream", *BEFORE, *AGAIN)
    await_sent(story.sender)
    story.sender.run("network", "disconnect")
    story.send("--body", "again")
    story.sender.restart()
    story.sender.run("network", "connect")
    await_bodies(story.receiver, "stream", *BEFORE, *AGAIN, "again")


def test_the_same_backup_may_be_restored_once_more(story: Story) -> None:
    before = bodies(story.receiver, "stream")
    story.restore("once more")
    story.send_back("once more")
    await_bodies(story.receiver, "stream", *before, "waits", "waits", "once more")
    assert bodies(story.receiver, "orders")[-1:] == ["once more"]
    await_sent(story.sender)


@pytest.mark.soak
def test_without_templates_a_restored_sender_does_the_same(tmp_path: Path) -> None:
    with ExitStack() as stack:
        told = Story(tmp_path, stack, "[limits]\nrequest_templates = false\n")
        told.wait_and_back_up()
        told.go_on()
        told.restore("restored")
        told.send_back("back")
        await_bodies(told.receiver, "stream", *BEFORE, *AGAIN)
        await_bodies(told.receiver, "orders", "later", "back")
        await_sent(told.sender)


@pytest.mark.soak
def test_a_restored_receiver_is_sent_what_waits_for_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        told = Story(tmp_path, stack)
        told.send("--body", "first")
        await_bodies(told.receiver, "stream", "first")
        told.receiver.run("backup", str(tmp_path / "backup"))
        told.send("--body", "lost", "--count", "3")
        await_bodies(told.receiver, "stream", "first", "lost", "lost", "lost")
        await_sent(told.sender)
        told.receiver.kill()
        told.send("--body", "waits", "--count", "3")
        told.receive_again()
        await_bodies(told.receiver, "stream", "first", "waits", "waits", "waits")
        told.send("--body", "back")
        await_bodies(told.receiver, "stream", "first", "waits", "waits", "waits", "back")
        await_sent(told.sender)
