"""Messages that objects send within one turn are put into their queue as one run."""

import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rpcqm.base.completion import Completion
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqvalues import INFINITE, VARENUM
from rpcqm.dcom.automation import vocabulary
from rpcqm.dcom.exporter import ObjectExporter
from rpcqm.dcom.object_interfaces import object_interfaces, supports
from rpcqm.fast.doors.com import InTurn
from rpcqm.mqac.arguments import octets_variant
from rpcqm.mqac.destination import MSMQDestination
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.message import MSMQMessage
from rpcqm.rpc.interface_registry import CarefulPath
from rpcqm.service import interfaces
from tests.support.callers import ALICE
from tests.support.fake_com import call_of
from tests.support.queue_manager import RunningQueueManager

CALL = call_of()
NAME = r"DIRECT=OS:.\private$\orders"
MANY = 8
WAYS = pytest.mark.parametrize("templates", [True, False], ids=["templates", "careful"])


class Sender:
    """Sends by objects."""

    def __init__(self, directory: Path) -> None:
        self.qm = RunningQueueManager(directory)
        self.queue = self.qm.create()
        self.machine: Machine = interfaces.machine(self.qm.engine)
        self.target = MSMQDestination(self.machine)
        self.target.put_FormatName(CALL, NAME)
        self.target.Open(CALL)

    def message(self, body: bytes, priority: int = 3, delivery: int = 1) -> MSMQMessage:
        made = MSMQMessage(self.machine)
        made.put_Body(CALL, octets_variant(body))
        made.put_Delivery(CALL, delivery)
        made.put_Priority(CALL, priority)
        return made

    def send(self, body: bytes, **more: int) -> Completion[None]:
        return self.message(body, **more).Send(CALL, self.target, None)

    def outcomes(self, sent: list[Completion[None]]) -> list[str]:
        self.qm.settle()
        assert all(each.done for each in sent)
        return [str(each.error or "") for each in sent]

    @property
    def commits(self) -> int:
        return self.qm.store.metrics.snapshot().get("store_commits", 0)


@pytest.fixture
def sender(tmp_path: Path) -> Iterator[Sender]:
    made = Sender(tmp_path)
    yield made
    made.qm.stop()


@WAYS
def test_what_is_sent_in_one_turn_is_one_commit_and_there_after_a_restart(
    sender: Sender, templates: bool
) -> None:
    sender.qm.engine.turn.is_on = templates
    before = sender.commits
    sent = [sender.send(b"%d" % number) for number in range(MANY)]
    assert not any(each.done for each in sent)
    assert sender.outcomes(sent) == [""] * MANY
    assert sender.commits - before == (1 if templates else MANY)
    sender.qm.restart()
    assert sender.qm.bodies(sender.qm.find()) == [b"%d" % number for number in range(MANY)]


@WAYS
def test_priorities_and_deliveries_are_told_apart_in_a_turn(
    sender: Sender, templates: bool
) -> None:
    sender.qm.engine.turn.is_on = templates
    kinds = [(3, 1), (7, 1), (3, 0), (0, 1), (7, 0), (3, 1)]
    sent = [
        sender.send(b"%d" % place, priority=priority, delivery=delivery)
        for place, (priority, delivery) in enumerate(kinds)
    ]
    assert sender.outcomes(sent) == [""] * len(kinds)
    assert sender.qm.bodies(sender.queue) == [b"1", b"4", b"0", b"2", b"5", b"3"]
    sender.qm.restart()
    assert sender.qm.bodies(sender.qm.find()) == [b"1", b"0", b"5", b"3"]


@WAYS
def test_a_quota_refuses_those_for_which_there_is_no_room(sender: Sender, templates: bool) -> None:
    sender.qm.engine.turn.is_on = templates
    sender.queue.quota = 4
    told = sender.outcomes([sender.send(bytes(900)) for _ in range(MANY)])
    taken = len(sender.qm.bodies(sender.queue))
    assert taken == 3
    assert told[:taken] == [""] * taken
    assert all("INSUFFICIENT_RESOURCES" in each for each in told[taken:])
    sender.queue.quota = INFINITE
    assert sender.outcomes([sender.send(b"")]) == [""]


@WAYS
def test_a_queue_that_is_deleted_behind_a_send_takes_it_first(
    sender: Sender, templates: bool
) -> None:
    sender.qm.engine.turn.is_on = templates
    sent = sender.send(b"x")
    deleted = sender.qm.engine.queues.delete_queue(sender.queue)
    late = sender.send(b"y")
    first, second = sender.outcomes([sent, late])
    assert deleted.done
    assert first == ""
    assert second


# Which calls leave the turn as it is

SEND = "IMSMQMessage4"


class Runner:
    """What runs calls."""

    def __init__(self) -> None:
        self.run: list[object] = []

    def run_carefully(self, call: object) -> None:
        self.run.append(call)


def invoke(dispid: int, flags: int, extensions: int = 0) -> bytes:
    return struct.pack("<HHI20xIi16sII28x", 5, 7, 0, extensions, dispid, bytes(16), 0, flags)


@pytest.fixture
def taken(sender: Sender) -> Any:
    exporter = ObjectExporter(sender.qm.clock, supports)
    iid = object_interfaces()[SEND].iid

    def take(made: Any, operation: str, stub: bytes = b"") -> bool:
        std = exporter.marshal(made, iid, ALICE.sid)
        call: Any = SimpleNamespace(object_octets=std.ipid, stub_data=stub)
        path = Runner()
        took = InTurn(exporter, operation).take(call, cast(CarefulPath, path))
        assert path.run == ([call] if took else [])
        return took

    return take


def test_only_send_leaves_what_waits_as_it_is(sender: Sender, taken: Any) -> None:
    message = sender.message(b"x")
    words = vocabulary(message.interfaces, object_interfaces()[SEND].iid)
    (send,) = words.numbers(["Send"])
    (label,) = words.numbers(["Label"])
    assert taken(message, "Send")
    assert taken(message, "Invoke", invoke(send, 1))
    assert not taken(message, "Invoke", invoke(label, 2))
    assert not taken(message, "Invoke", invoke(send, 1, extensions=1))
    assert not taken(message, "Invoke", invoke(send, 1)[:40])
    assert not taken(message, "Invoke", invoke(1 << 20, 1))


def test_a_message_that_names_nothing_is_refused_at_once(sender: Sender) -> None:
    outcome = sender.message(b"x").Send(CALL, sender.target, Variant(VARENUM.VT_I4, 3))
    sender.qm.settle()
    assert "TRANSACTION_USAGE" in str(outcome.error)
