"""The fixtures for pytest, in a test run of somebody else's."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from rpcqm.fast.observer import VARIABLE as OBSERVER

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def rpcqm_configuration():
    return 'name = "somewhere"\\n[storage]\\nreserve = 1\\n'
"""
TESTS = r"""
from rpcqm.client.names import format_name
from rpcqm.client.outgoing import OutgoingMessage

seen = []

def test_what_is_sent_can_be_received(rpcqm_server, rpcqm_queue):
    seen.append(rpcqm_queue)
    with rpcqm_server.client() as client:
        with client.open_sender(format_name(rpcqm_queue)) as sender:
            sender.send(OutgoingMessage(b"two apples"))
        with client.open_reader(format_name(rpcqm_queue)) as reader:
            with reader.receive(timeout=1000) as message:
                assert message.text == "two apples"
        with client.open_sender(format_name(rpcqm_queue)) as sender:
            sender.send(OutgoingMessage(b"left behind"))

def test_each_test_has_an_empty_queue(rpcqm_server, rpcqm_queue):
    assert rpcqm_queue not in seen
    with rpcqm_server.client() as client:
        information = client.run(client.management.queue_information(format_name(rpcqm_queue)))
        assert information.message_count == 0
        assert len(client.run(client.management.private_queues())) == 1

def test_the_configuration_is_that_of_conftest(rpcqm_server):
    assert rpcqm_server.ready.name == "somewhere"

def test_a_queue_may_be_deleted_by_the_test(rpcqm_server, rpcqm_queue):
    with rpcqm_server.client() as client:
        client.run(client.queues.delete(format_name(rpcqm_queue)))
"""


def test_strangers_tests_get_a_queue_manager_and_empty_queues(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_theirs.py").write_text(TESTS)
    outcome = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "rpcqm.testing.plugin",
            "-p",
            "no:cacheprovider",
        ],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != OBSERVER},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "4 passed" in outcome.stdout, outcome.stdout + outcome.stderr


def test_pytest_finds_the_fixtures_by_itself() -> None:
    (plugin,) = entry_points(group="pytest11", name="rpcqm.testing.plugin")
    assert plugin.value == "rpcqm.testing.plugin"
