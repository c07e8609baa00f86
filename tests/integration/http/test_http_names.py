"""Names of queues over HTTP, at every command: both ends are running queue managers."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rpcqm.client import mq
from rpcqm.client.mq import DATA_DIR
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.ports import reserved_port
from tests.support.waiting import PATIENCE

HARDENED = """\
[security]
hardened_security = true
"""


class Pair(NamedTuple):
    """Who sends, by HTTP alone, and who receives."""

    sender: PrivateQueueManager
    receiver: PrivateQueueManager

    def url(self, queue: str) -> str:
        return f"DIRECT=HTTP://127.0.0.1:{self.receiver.endpoint('http')[1]}/msmq/private$/{queue}"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    options = ("--http-port", "0")
    with (
        private_queue_manager(configuration=HARDENED, options=options) as sender,
        private_queue_manager(options=options) as receiver,
    ):
        yield Pair(sender, receiver)


def rpcqm(at: PrivateQueueManager, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rpcqm", *words],
        capture_output=True,
        text=True,
        env=os.environ | {DATA_DIR: str(at.data_dir)},
        timeout=60,
        check=False,
    )


def printed(at: PrivateQueueManager, *words: str) -> str:
    done = rpcqm(at, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.conformance("MQSRM-rule-2.1.1", "MQSRM-rule-3.1.7.2.4", "MQSRM-rule-3.1.5.1.1")
def test_a_message_to_an_http_name_is_read_as_it_was_sent(pair: Pair) -> None:
    printed(pair.receiver, "queue", "create", "b\u00fcro q")
    url = pair.url("B%C3%BCro%20q")
    answers = r"DIRECT=OS:x\private$\answers"
    sent = printed(
        pair.sender,
        *("send", url, "--body", "Gr\u00fc\u00dfe", "--label", "a <label>"),
        *("--priority", "5", "--response-queue", answers),
    ).strip()
    got = json.loads(printed(pair.receiver, "receive", "b\u00fcro q", "--timeout", "20s", "--json"))
    assert (got["id"], got["label"], got["body"]) == (sent, "a <label>", "Gr\u00fc\u00dfe")
    assert (got["priority"], got["delivery"], got["response_queue"]) == (5, "recoverable", answers)
    assert got["destination"] == url
    assert "<action>MSMQ:a &lt;label&gt;</action>" in got["soap_envelope"]
    assert got["sender"] is None


def test_what_waits_for_an_http_name_is_shown_peeked_at_and_deleted(pair: Pair) -> None:
    url = pair.url("paused")
    printed(pair.receiver, "queue", "create", "paused")
    copies = r".\private$\copies"
    printed(pair.sender, "queue", "create", "copies")
    printed(pair.sender, "send", url, "--body", "first")
    assert printed(pair.receiver, "receive", "paused", "--timeout", "20s", "--format", "body")
    printed(pair.sender, "network", "pause", url)
    printed(pair.sender, "send", f"{url},DIRECT=OS:{copies}", "--body", "waits")
    assert "waits" in printed(pair.sender, "receive", "copies", "--format", "body")
    (shown,) = (
        each
        for each in json.loads(printed(pair.sender, "queue", "list", "--outgoing", "--json"))
        if each["format_name"] == url
    )
    assert shown["messages"] == 1
    assert shown["connections"][-1]["addresses"] == ["127.0.0.1"]
    assert json.loads(printed(pair.sender, "peek", url, "--json"))["body"] == "waits"
    printed(pair.sender, "network", "resume", url)
    got = printed(pair.receiver, "receive", "paused", "--timeout", "20s", "--format", "body")
    assert got.strip() == "waits"


def test_http_carries_messages_where_nothing_else_may(pair: Pair) -> None:
    other = r"DIRECT=OS:nowhere.invalid\private$\q"
    printed(pair.sender, "send", other, "--body", "locked")
    shown = json.loads(printed(pair.sender, "explain", other, "--json"))
    assert (shown["state"], shown["messages"]) == ("LOCKED", 1)
    assert "binary" not in pair.sender.ready.endpoints


def test_a_queue_manager_without_http_says_how_to_switch_it_on() -> None:
    with private_queue_manager() as alone:
        refused = rpcqm(alone, "send", "DIRECT=HTTP://other/msmq/private$/q", "--body", "x")
        assert refused.returncode == 1
        assert refused.stderr.count("\n") == 1
        assert "messages over HTTP are off, set `http_port` or `https_port`" in refused.stderr


def test_a_program_sends_to_several_queues_at_once(pair: Pair) -> None:
    url = pair.url("several")
    printed(pair.receiver, "queue", "create", "several")
    printed(pair.sender, "queue", "create", "others")
    with mq.open(f"{url},others", mq.local_server(pair.sender.data_dir)) as queues:
        queues.send("to both", label="several")
        with pytest.raises(mq.MQError, match="several queues"):
            queues.receive_one(timeout=0)
    for where, name in ((pair.receiver, "several"), (pair.sender, "others")):
        got = json.loads(printed(where, "receive", name, "--timeout", "20s", "--json"))
        assert (got["body"], got["label"]) == ("to both", "several")


def test_who_writes_a_url_alone_is_told_how_it_names_a_queue(pair: Pair) -> None:
    refused = rpcqm(pair.sender, "send", "http://other/msmq/private$/q", "--body", "x")
    assert "did you mean `DIRECT=http://other/msmq/private$/q`?" in refused.stderr
    with pytest.raises(mq.MQError, match="DIRECT=http://other/"):
        mq.open("http://other/msmq/private$/q", mq.local_server(pair.sender.data_dir))


def test_what_waits_because_http_is_off_says_so(tmp_path: Path) -> None:
    url = f"DIRECT=HTTP://127.0.0.1:{reserved_port()}/msmq/private$/q"
    once = PrivateQueueManager(tmp_path / "once", configuration="http_port = 0\n")
    once.start()
    printed(once, "send", url, "--body", "waits")
    assert "Waits for" not in printed(once, "explain", url)
    once.stop()
    again = PrivateQueueManager(tmp_path / "once")
    again.start()
    assert "set `http_port` or `https_port`" in printed(again, "explain", url)
    again.stop()


def test_a_message_that_is_refused_is_traced_as_refused(pair: Pair) -> None:
    url = pair.url("nowhere")
    sent = printed(pair.sender, "send", url, "--body", "x", "--dead-letter").strip()
    end = time.monotonic() + PATIENCE
    while "refused" not in (told := printed(pair.sender, "trace", sent)):
        assert time.monotonic() < end, told
    assert "IP=127.0.0.1, 400" in told
    assert "sent" not in told
