"""Memory and effort of templates are bounded, whoever sends (docs/request-templates.md)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.qmcomm import CACTransferBufferV1_Send
from rpcqm.fast.doors.rpc_send import (
    LEARNED_AT_ONCE,
    LEARNED_PER_SECOND,
    TEMPLATES,
    SendRecogniser,
    SendTemplates,
)
from rpcqm.fast.doors.rpc_send_lane import OF_HANDLE, SendLane
from rpcqm.fast.turn import MOST_BYTES, MOST_MESSAGES
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE
from tests.support.rpc.dependent_client import Client, served_clients


class Sender:
    """A client; `kind` makes its requests be of another template."""

    def __init__(self, qm: RunningQueueManager) -> None:
        qm.speed.turn.is_on = True
        self.qm, self.queue = qm, qm.create()
        self.server = served_clients(qm)
        recogniser = self.server.interfaces["qmcomm2"].shortcut(1)
        assert isinstance(recogniser, SendRecogniser)
        self.templates: SendTemplates = recogniser._templates
        self.connect()

    def connect(self) -> None:
        self.client = Client(self.server.connect(ALICE, transport=NCALRPC))
        self.handle = self.client.open(self.queue, QueueAccessType.SEND_ACCESS)[0]

    def send(self, kind: int) -> None:
        name = queue_format_of(FormatName.parse(rf"DIRECT=OS:host{kind:05}\private$\answers"))
        arm = CACTransferBufferV1_Send(pResponseQueueFormat=name)
        self.client.start_send(self.handle, b"body", send=arm)

    def settle(self) -> None:
        self.qm.settle()
        self.client.caller.protocol()

    def second(self) -> None:
        self.qm.advance(1000)
        self.client.caller.protocol()


@pytest.fixture
def sender(tmp_path: Path) -> Iterator[Sender]:
    qm = RunningQueueManager(tmp_path)
    made = Sender(qm)
    for _ in range(2):
        made.send(0)
    made.settle()
    assert len(made.templates) == 0
    yield made
    qm.stop()


@pytest.mark.bound("rpc.request_templates_learned_at_once", "rpc.request_templates_learned")
def test_learning_is_limited_in_a_moment_and_in_a_second(sender: Sender) -> None:
    for kind in range(LEARNED_AT_ONCE):
        sender.send(kind)
    assert len(sender.templates) == LEARNED_AT_ONCE
    sender.send(LEARNED_AT_ONCE)
    assert len(sender.templates) == LEARNED_AT_ONCE
    sender.second()
    for kind in range(1000, 1000 + LEARNED_PER_SECOND + 1):
        sender.send(kind)
    assert len(sender.templates) == LEARNED_AT_ONCE + LEARNED_PER_SECOND


@pytest.mark.bound("rpc.request_templates")
def test_templates_are_bounded_and_one_in_use_stays(sender: Sender) -> None:
    sender.send(0)
    (used,) = sender.templates._learned._by_key
    for kind in range(1, TEMPLATES):
        if kind % LEARNED_PER_SECOND == 0:
            sender.second()
            sender.connect()
            sender.send(0)
        sender.send(kind)
    assert len(sender.templates) == TEMPLATES
    sender.second()
    sender.send(TEMPLATES)
    sender.send(TEMPLATES + 1)
    assert len(sender.templates) == TEMPLATES
    assert used in sender.templates._learned


@pytest.mark.bound("rpc.request_templates_of_a_handle")
def test_an_open_queue_remembers_few_templates_of_its_own(sender: Sender) -> None:
    for kind in range(OF_HANDLE):
        sender.send(kind)
    (lane,) = sender.client.caller.association.shortcuts.values()
    assert isinstance(lane, SendLane)
    opened = lane.opened(sender.handle)
    assert opened is not None
    assert len(opened.templates) == OF_HANDLE
    sender.send(OF_HANDLE)
    assert len(opened.templates) == 1


@pytest.mark.bound("rpc.templated_messages_of_a_turn")
def test_a_turn_with_many_messages_is_carried_out_before_it_ends(sender: Sender) -> None:
    turn = sender.qm.speed.turn
    for _ in range(MOST_MESSAGES - 1):
        sender.send(0)
        assert turn.waiting
    sender.send(0)
    assert not turn.waiting


@pytest.mark.bound("rpc.templated_octets_of_a_turn")
def test_a_turn_with_many_octets_is_carried_out_before_it_ends(sender: Sender) -> None:
    turn, handle = sender.qm.speed.turn, sender.handle
    for _ in range(3):
        sender.client.start_send(handle, b"body")
    sender.settle()
    for size in (MOST_BYTES // 2, MOST_BYTES // 2 - 1):
        sender.client.start_send(handle, bytes(size))
        assert turn.waiting
    sender.client.start_send(handle, b"1")
    assert not turn.waiting
