"""Messages that programs send again and again: what is remembered of them is bounded."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.base.identity import authenticated
from rpcqm.codec.packet.base import MAXIMUM_PACKET_SIZE
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.fast.doors.api_sends import (
    LEARNED_AT_ONCE,
    LONGEST_BODY,
    TEMPLATES,
    RepeatedSend,
    RepeatedSends,
)
from rpcqm.qm.access import LET_IN_AT_MOST, PREPARED_OCTETS
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE

SECOND = 1000


@pytest.fixture
def qm(tmp_path: Path) -> Iterator[RunningQueueManager]:
    running = RunningQueueManager(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    qm.speed.turn.is_on = True
    return qm.create()


def again(qm: RunningQueueManager, queue: Queue, kind: int = 0) -> RepeatedSend:
    """What is sent of a kind that has its own template."""
    name = qm.engine.queues.format_name_of(queue)
    made = RepeatedSend.of((name,), MessageAttributes(body_type=kind, delivery_guarantee=1))
    assert made is not None
    return made


def sent(qm: RunningQueueManager) -> int:
    return qm.store.metrics.of("templates").get("sent", 0)


@pytest.mark.bound("program.sent_templates", "program.sent_templates_learned_at_once")
def test_templates_are_bounded_and_so_is_learning(qm: RunningQueueManager, queue: Queue) -> None:
    sends = RepeatedSends(qm.engine, qm.speed.turn)
    for kind in range(LEARNED_AT_ONCE + 10):
        qm.done(sends.send(ALICE, again(qm, queue, kind), b"x"))
    assert len(sends) == sent(qm) == LEARNED_AT_ONCE
    for kind in range(1000, 1000 + TEMPLATES + 10):
        qm.advance(SECOND)
        qm.done(sends.send(ALICE, again(qm, queue, kind), b"x"))
    assert len(sends) == TEMPLATES


def test_long_bodies_go_alone_and_spoil_no_run(qm: RunningQueueManager, queue: Queue) -> None:
    sends, one = RepeatedSends(qm.engine, qm.speed.turn), again(qm, queue)
    outcomes = [
        sends.send(ALICE, one, bytes(size)) for size in (1, LONGEST_BODY, LONGEST_BODY + 1, 2)
    ]
    assert len({qm.done(each) for each in outcomes}) == len(outcomes)
    assert sent(qm) == len(outcomes) - 1
    assert [len(each) for each in qm.bodies(queue)] == [1, LONGEST_BODY, LONGEST_BODY + 1, 2]
    assert MAXIMUM_PACKET_SIZE > 2 * LONGEST_BODY


def test_messages_that_find_no_room_together_are_refused_one_by_one(
    qm: RunningQueueManager, queue: Queue
) -> None:
    sends, one = RepeatedSends(qm.engine, qm.speed.turn), again(qm, queue)
    qm.done(sends.send(ALICE, one, b"x"))
    queue.quota = 1
    outcomes = [sends.send(ALICE, one, bytes(300)) for _ in range(5)]
    qm.settle()
    assert [each.error is None for each in outcomes] == [True, False, False, False, False]
    assert len(qm.bodies(queue)) == 2


@pytest.mark.bound("program.known_openings")
def test_who_was_let_in_is_remembered_for_few(qm: RunningQueueManager, queue: Queue) -> None:
    access = qm.engine.access
    callers = [authenticated(f"a{n}", f"S-1-5-21-1-2-3-{n}") for n in range(LET_IN_AT_MOST + 1)]
    for each in callers:
        access.check_open(queue, each, QueueAccessType.SEND_ACCESS)
    assert len(access._let_in) == 1


@pytest.mark.bound("program.known_descriptors")
def test_descriptors_that_change_again_and_again_are_not_all_kept(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """Whoever owns a queue may give it as many long lists as he likes."""
    access = qm.engine.access
    long = "".join(f"(A;;GA;;;S-1-5-21-{number})" for number in range(2_000))
    rounds = PREPARED_OCTETS // len(parse_sddl(f"D:{long}").encode()) + 2
    for number in range(rounds):
        queue.security = parse_sddl(f"D:(A;;GA;;;S-1-5-20-{number}){long}").encode()
        assert not access.allows(queue, ALICE, MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE)
    assert 0 < len(access._prepared) < rounds - 1
