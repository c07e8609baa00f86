"""A sender that was restored from a backup, and a receiver that has had more of it since."""

import json
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rpcqm.testing.private import PrivateQueueManager
from tests.support.ports import reserved_port
from tests.support.waiting import PATIENCE

FAST = """
retry_milliseconds = 1000
receipt_coalescing_milliseconds = 50
stream_receipt_wait_milliseconds = 500
receipts_to = ["127.0.0.1"]
"""
NOWHERE = 9
"""The port to discard: nobody listens there."""


def configuration(port: int, receipts_port: int) -> str:
    url = f"http://127.0.0.1:{receipts_port}/msmq/private$/order_queue$"
    return f'http_port = {port}\n[srmp]{FAST}default_stream_receipt_url = "{url}"\n'


def labels(receiver: PrivateQueueManager) -> list[str]:
    lines = receiver.run("peek", "stream", "--all", "--json", check=False).stdout.splitlines()
    return [str(json.loads(line)["label"]) for line in lines]


def await_labels(receiver: PrivateQueueManager, *wanted: str) -> None:
    end = time.monotonic() + PATIENCE
    while labels(receiver) != list(wanted):
        assert time.monotonic() < end, (labels(receiver), receiver.log)


@pytest.mark.conformance("MQSRM-element-Stream")
def test_a_restored_sender_sends_on_without_losing_or_repeating_anything(tmp_path: Path) -> None:
    ports = reserved_port(), reserved_port()
    receiver = PrivateQueueManager(tmp_path / "receiver", configuration=configuration(ports[1], 1))
    lost = PrivateQueueManager(tmp_path / "lost", configuration=configuration(ports[0], NOWHERE))
    name = f"DIRECT=HTTP://127.0.0.1:{ports[1]}/msmq/private$/stream"

    def send(sender: PrivateQueueManager, label: str) -> None:
        sender.run("send", name, "--transactional", "--label", label, "--body", "x")

    with ExitStack() as stack:
        for each in (receiver, lost):
            stack.callback(each.stop)
            each.start()
        receiver.run("queue", "create", "stream", "--transactional")
        send(lost, "one")
        await_labels(receiver, "one")
        lost.run("backup", str(tmp_path / "backup"))
        send(lost, "two")
        await_labels(receiver, "one", "two")
        lost.stop()
        restored = PrivateQueueManager(
            tmp_path / "restored", configuration=configuration(ports[0], ports[0])
        )
        lost.run("restore", str(tmp_path / "backup"), "--data-dir", str(restored.data_dir))
        stack.callback(restored.stop)
        restored.start()
        send(restored, "three")
        await_labels(receiver, "one", "two", "three")
        end = time.monotonic() + PATIENCE
        while any(
            queue["messages"]
            for queue in json.loads(restored.run("queue", "list", "--outgoing", "--json").stdout)
        ):
            assert time.monotonic() < end, restored.log
        assert labels(receiver) == ["one", "two", "three"]
