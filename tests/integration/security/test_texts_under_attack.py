"""Texts of strangers: what they do to a terminal, to the log, and to those who read bodies."""

from collections.abc import Iterator

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.client import mq
from rpcqm.client.names import path_name
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.rpc import pdu
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.security.conftest import DEFAULTS
from tests.support.rpc.network_caller import NetworkCaller
from tests.support.rpc.remote_reader import Reader

CLEAR_SCREEN = "\x1b[2J\x1b]0;owned\x07"
HIDDEN = [CLEAR_SCREEN, "line\nbreak", "\x9b31m", "right\u202eto left"]


@pytest.mark.parametrize("text", HIDDEN, ids=ascii)
def test_labels_do_not_reach_the_terminal_as_they_are(
    queue_manager: PrivateQueueManager, name: str, text: str
) -> None:
    with queue_manager.client() as client:
        client.run(client.queues.create(path_name(name), QueueSettings(label=text), None))
    with mq.open(name, queue_manager) as queue:
        queue.send(b"x", label=text)
    for words in (("peek", name), ("queue", "show", name), ("queue", "list")):
        shown = queue_manager.run(*words).stdout
        assert text not in shown
        assert shown.replace("\n", "").isprintable()


@pytest.fixture(scope="module")
def text_log() -> Iterator[PrivateQueueManager]:
    """A queue manager whose log is text for people."""
    configuration = DEFAULTS + '[logging]\nformat = "text"\n'
    environment = {"NO_COLOR": "1"}
    with private_queue_manager((), configuration, environment) as running:
        yield running


@pytest.mark.parametrize("text", [CLEAR_SCREEN, "x\n2026-01-01 [info] ready"], ids=ascii)
def test_names_of_strangers_do_not_forge_lines_of_the_text_log(
    text_log: PrivateQueueManager, text: str
) -> None:
    before = text_log.log
    with NetworkCaller(text_log.endpoint("rpc"), "remoteread") as caller:
        stand_in = "a" * len(text)
        fields = Reader._opening(f"DIRECT=OS:.\\private$\\{stand_in}", 1, 0, 1)
        _, octets = caller.made("R_OpenQueue", **fields)
        spelt = text.encode("utf-16-le")
        answer = caller.answer_to(octets.replace(stand_in.encode("utf-16-le"), spelt))
    assert isinstance(answer, pdu.Fault)
    said = text_log.log.removeprefix(before)
    assert "R_OpenQueue" in said
    assert all(line.isprintable() for line in said.splitlines())
    assert not any(line.startswith("2026-01-01 [info]") for line in said.splitlines())


LAUGHS = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
DOCUMENTS = {
    "entities": f'<!DOCTYPE s [<!ENTITY l0 "ha">{LAUGHS}]><string>&l9;</string>',
    "a file": '<!DOCTYPE s [<!ENTITY f SYSTEM "file:///etc/passwd">]><string>&f;</string>',
    "a host": '<!DOCTYPE s SYSTEM "http://192.0.2.1/s.dtd"><string>x</string>',
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_body_with_a_document_type_is_not_read(
    queue_manager: PrivateQueueManager, name: str, document: str
) -> None:
    """It came over a connection, as any sender may send it."""
    with queue_manager.client() as client:
        client.run(client.queues.create(path_name(name), QueueSettings(), None))
    with mq.open(name, queue_manager) as queue:
        queue.send(document.encode())
    with mq.open(name, queue_manager, peek_only=True) as queue:
        message = queue.peek(5)
        assert message is not None
        with pytest.raises(DecodeError):
            _ = message.xml
    shown = queue_manager.run("peek", name, "--format", "json", timeout=30).stdout
    assert "haha" not in shown
    assert "root:" not in shown
