"""`rpcqm serve --capture` records messages over HTTP, and `capture replay` posts them again."""

import json
import socket
import ssl
import time
from pathlib import Path

from rpcqm.base.completion import Completion
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.replay.mapping import Mapping
from rpcqm.capture.replay.srmp_rewriting import SrmpRewriter
from rpcqm.cli.main import main
from rpcqm.service.recording.http import Posts
from rpcqm.service.recording.rpc import Recorder
from rpcqm.srmp.bunch import write_bunch, write_statuses
from rpcqm.srmp.connection.network import Answer
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager
from tests.support.capture.analysed import calls_of
from tests.support.certificates import write_tls_files
from tests.support.srmp.srmp_capture import TARGET

HTTP = "http_port = 0\n"
EVERYBODY = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
CAPTURED = [each for each in calls_of(TARGET)[0] if isinstance(each, SrmpExchange)]
SENT = {"machine2": "192.0.2.7", "[2001:db8::7]:8080": "2001:db8::7", "by-a-proxy": ""}
"""Names of other queue managers, and where each of them answers from."""
QUEUES = {"simpleq": False, "tsimpleq": True}


def make_queues(made: PrivateQueueManager) -> None:
    for name, transactional in QUEUES.items():
        words = ("queue", "create", name, "--sddl", EVERYBODY)
        made.run(*words, *(["--transactional"] if transactional else []))


def post(made: PrivateQueueManager, numbers: list[int]) -> list[int]:
    """Post what the vector has over one connection, each when the one before is answered."""
    host, port = made.endpoint("http")
    rewriter = SrmpRewriter(Mapping(), host, port)
    later = int(time.time()) - CAPTURED[0].time // 10**9
    statuses = []
    with socket.create_connection((host, port), 20) as connection:
        for number in numbers:
            connection.sendall(rewriter.request(CAPTURED[number], later))
            statuses.append(int(connection.recv(1 << 16).split(b" ")[1]))
    return statuses


def posted(path: Path) -> list[SrmpExchange]:
    found, problems = calls_of(path)
    assert problems.total == 0
    return [each for each in found if isinstance(each, SrmpExchange)]


def test_messages_over_http_are_recorded_and_play_again(tmp_path: Path) -> None:
    path, result = tmp_path / "served.pcapng", tmp_path / "result.json"
    with private_queue_manager(["--capture", str(path)], configuration=HTTP) as made:
        make_queues(made)
        statuses = post(made, [1, 4, 5, 12])
    found = posted(path)
    assert [each.name for each in found] == ["UserMessage"] * 3 + ["POST"]
    assert [each.status for each in found] == statuses
    assert "orderTime" in bytes(found[0].asked.body).decode()
    assert main(["capture", "replay", str(path), "--in-process", "--json", str(result)]) == 0
    told = json.loads(result.read_text("utf-8"))
    assert [each["verdict"] for each in told["results"][-4:]] == ["same"] * 4


def test_what_the_queue_manager_posts_itself_is_recorded(tmp_path: Path) -> None:
    recorder = Recorder(path := tmp_path / "sent.pcapng")
    posts = Posts(recorder)
    for number, (name, address) in enumerate(SENT.items()):
        request = CAPTURED[number].http_request
        answered: Completion[Answer] = Completion()
        posts.post(f"http://{name}/msmq/private$/q?x", request.headers, request.body, answered)
        answered.succeed(Answer(200 + number, address))
    failed: Completion[Answer] = Completion()
    posts.post("http://nobody/msmq/private$/q", (), b"", failed)
    failed.fail(ConnectionRefusedError())
    recorder.close()
    found = posted(path)
    assert [(each.name, each.status) for each in found] == [
        ("UserMessage", 200),
        ("UserMessage", 201),
        ("UserMessage", 202),
    ]
    assert [each.asked.first[1] for each in found] == ["/msmq/private$/q?x"] * 3
    assert [each.conversation.server for each in found] == [
        "192.0.2.7:80",
        "[2001:db8::7]:8080",
        "127.200.0.4:80",
    ]
    assert found[0].conversation.client == "127.200.0.3:1024"


def test_several_messages_that_are_posted_in_one_request_are_recorded_apart(
    tmp_path: Path,
) -> None:
    recorder = Recorder(path := tmp_path / "bunch.pcapng")
    answered: Completion[Answer] = Completion()
    alone = [CAPTURED[number].http_request for number in (0, 1)]
    kinds = [tuple(each for each in one.headers if each[0] == "Content-Type") for one in alone]
    headers, body = write_bunch([(kinds[0], alone[0].body), (kinds[1], alone[1].body)])
    Posts(recorder).post("http://shop/msmq/private$/q", headers, body, answered)
    answered.succeed(Answer(200, "192.0.2.7", 64, write_statuses([200, 500])))
    recorder.close()
    found = posted(path)
    assert [(each.name, each.status) for each in found] == [
        ("UserMessage", 200),
        ("UserMessage", 500),
    ]
    assert [each.envelope for each in found] == [CAPTURED[number].envelope for number in (0, 1)]
    assert [each.note for each in found] == ["", ""]


def test_what_comes_by_tls_is_recorded_as_it_is_read(tmp_path: Path) -> None:
    """The recording is made behind TLS, so that no key is needed to show it."""
    path = tmp_path / "served.pcapng"
    certificate, key = write_tls_files(tmp_path)
    tls = f'https_port = 0\n[srmp]\ncertificate = "{certificate}"\nkey = "{key}"\n'
    exchange = CAPTURED[1]
    with private_queue_manager(["--capture", str(path)], configuration=tls) as made:
        make_queues(made)
        host, port = made.endpoint("https")
        later = int(time.time()) - CAPTURED[0].time // 10**9
        context = ssl.create_default_context(cafile=certificate)
        with (
            socket.create_connection((host, port), 20) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(SrmpRewriter(Mapping(), host, port).request(exchange, later))
            assert connection.recv(1 << 16).split(b" ")[1] == b"200"
    (found,) = posted(path)
    assert (found.name, found.status) == ("UserMessage", 200)
