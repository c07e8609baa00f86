"""`rpcqm serve --capture` records messages over HTTP, and `capture replay` posts them again."""

import json
import socket
import time
from pathlib import Path

from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.replay.mapping import Mapping
from rpcqm.capture.replay.srmp_rewriting import SrmpRewriter
from rpcqm.cli.main import main
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager
from tests.support.analysed import calls_of
from tests.support.srmp_capture import TARGET

HTTP = "http_port = 0\n"
EVERYBODY = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
CAPTURED = [each for each in calls_of(TARGET)[0] if isinstance(each, SrmpExchange)]
QUEUES = {"simpleq": False, "tsimpleq": True}


def make_queues(made: PrivateQueueManager) -> None:
    for name, transactional in QUEUES.items():
        words = ("queue", "create", name, "--sddl", EVERYBODY)
        made.run(*words, *(["--transactional"] if transactional else []))


def post(made: PrivateQueueManager, numbers: list[int]) -> None:
    """Post what the vector has, over one connection; each is answered before the next."""
    host, port = made.endpoint("http")
    rewriter = SrmpRewriter(Mapping(), host, port)
    later = int(time.time()) - CAPTURED[0].time // 10**9
    with socket.create_connection((host, port), 20) as connection:
        for number in numbers:
            connection.sendall(rewriter.request(CAPTURED[number], later))
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 ")


def posted(path: Path) -> list[SrmpExchange]:
    found, problems = calls_of(path)
    assert problems.total == 0
    return [each for each in found if isinstance(each, SrmpExchange)]


def test_messages_over_http_are_recorded_and_play_again(tmp_path: Path) -> None:
    path, result = tmp_path / "served.pcapng", tmp_path / "result.json"
    with private_queue_manager(["--capture", str(path)], configuration=HTTP) as made:
        make_queues(made)
        post(made, [1, 4, 5, 12])
        body = made.run("receive", "simpleq", "--json").stdout
        assert "orderTime" in json.loads(body)["body"]
    found = posted(path)
    assert [(each.name, each.status) for each in found] == [
        ("UserMessage", 200),
        ("UserMessage", 200),
        ("UserMessage", 200),
        ("POST", 400),
    ]
    assert main(["capture", "replay", str(path), "--in-process", "--json", str(result)]) == 0
    told = json.loads(result.read_text("utf-8"))
    assert [each["verdict"] for each in told["results"] if each["name"] == "UserMessage"] == [
        "same"
    ] * 3


def test_what_the_queue_manager_posts_itself_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "sent.pcapng"
    with (
        private_queue_manager(configuration=HTTP) as receiver,
        private_queue_manager(["--capture", str(path)], configuration=HTTP) as sender,
    ):
        make_queues(receiver)
        host, port = receiver.endpoint("http")
        sender.run("send", f"DIRECT=HTTP://{host}:{port}/msmq/private$/simpleq", input="hello")
        read = receiver.run("receive", "simpleq", "--wait", "20", "--json").stdout
        assert json.loads(read)["body"] == "hello"
        stopped = sender.stop()
        assert stopped == 0
    (found,) = posted(path)
    assert (found.name, found.status) == ("UserMessage", 200)
    assert found.conversation.client.startswith("127.200.0.3:")
    assert found.conversation.server == f"{host}:{port}"
