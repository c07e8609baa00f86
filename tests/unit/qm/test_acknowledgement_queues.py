"""How many outgoing queues the acknowledgements to strangers may need (G100)."""

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageAuthenticationLevel
from rpcqm.codec.packet.patch import set_authentication_level
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm import acknowledgement_queues
from tests.support.queue_manager import RunningQueueManager

MINUTE = 60_000


@pytest.fixture
def orders(qm: RunningQueueManager) -> Queue:
    return qm.create()


def elsewhere(number: int, host: str = "198.51.100.7") -> FormatName:
    return FormatName.parse(f"DIRECT=TCP:{host}\\private$\\told-{number}")


def arrive(
    qm: RunningQueueManager, queue: Queue, told: FormatName, source: str, signed: bool = False
) -> None:
    """A message arrives that asks for an acknowledgement of that."""
    message = qm.compose(
        queue,
        administration_queue_format_name=told,
        acknowledgements_requested=0x0F,
        sender_identifier_type=1,
        sender_identifier=b"anybody",
    )
    if signed:
        packet = bytearray(message.packet)
        set_authentication_level(packet, MessageAuthenticationLevel.SIG20)
        message.packet = bytes(packet)
    message.source_address = source
    qm.done(qm.engine.messages.enqueue_message(queue, message))


def made(qm: RunningQueueManager) -> int:
    return len(qm.engine.outgoing.list())


@pytest.mark.bound("strangers.queues_of_one_source")
def test_one_source_has_only_so_many_queues(qm: RunningQueueManager, orders: Queue) -> None:
    for number in range(acknowledgement_queues.QUEUES_OF_ONE_SOURCE + 10):
        arrive(qm, orders, elsewhere(number), "192.0.2.66")
    assert made(qm) == acknowledgement_queues.QUEUES_OF_ONE_SOURCE
    assert qm.engine.acknowledgement_queues.refused == 10
    arrive(qm, orders, elsewhere(0), "192.0.2.66")
    assert qm.engine.outgoing.list()[0].message_count == 2, "a queue that is there still serves"
    arrive(qm, orders, elsewhere(1000), "192.0.2.67")
    assert made(qm) == acknowledgement_queues.QUEUES_OF_ONE_SOURCE + 1


def test_addresses_of_one_owner_are_one_source(qm: RunningQueueManager, orders: Queue) -> None:
    """The last 64 bits of an IPv6 address are for its owner to choose (G91)."""
    most = acknowledgement_queues.QUEUES_OF_ONE_SOURCE
    for number in range(most + 10):
        arrive(qm, orders, elsewhere(number), f"2001:db8::{number:x}")
    assert made(qm) == most
    assert qm.engine.registry.origins == {"2001:db8::/64": most}
    qm.restart()
    arrive(qm, orders, elsewhere(1000), "2001:db8::1000")
    assert made(qm) == most
    arrive(qm, orders, elsewhere(1001), "2001:db8:0:1::1")
    assert made(qm) == most + 1


@pytest.mark.bound("strangers.queues")
def test_all_strangers_together_have_only_so_many(
    qm: RunningQueueManager, orders: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledgement_queues, "QUEUES_AT_MOST", 20)
    for number in range(25):
        arrive(qm, orders, elsewhere(number), f"192.0.2.{number}")
    assert made(qm) == 20
    assert len(orders.message_position_list.page(None, 100)) == 25, "messages arrive all the same"


@pytest.mark.bound("strangers.bytes")
def test_what_waits_for_strangers_is_bounded_in_all(
    qm: RunningQueueManager, orders: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrive(qm, orders, elsewhere(0), "192.0.2.66")
    (told,) = qm.engine.outgoing.list()
    each = qm.store.index(told.queue_id).account.bytes
    monkeypatch.setattr(acknowledgement_queues, "BYTES_AT_MOST", 4 * each)
    for number in range(1, 6):
        arrive(qm, orders, elsewhere(number % 2), "192.0.2.66")
    waiting = sum(queue.message_count for queue in qm.engine.outgoing.list())
    assert (waiting, qm.engine.acknowledgement_queues.refused) == (4, 2)
    assert orders.message_count == 6
    qm.done(qm.engine.queues.purge_queue(told))
    arrive(qm, orders, elsewhere(1), "192.0.2.66")
    assert qm.engine.acknowledgement_queues.refused == 2, "there is room again"
    qm.restart()
    for _ in range(3):
        arrive(qm, qm.find(), elsewhere(1), "192.0.2.66")
    waiting = sum(queue.message_count for queue in qm.engine.outgoing.list())
    assert waiting == 4, "what was there before the restart counts"


def test_who_is_known_or_has_proved_itself_is_no_stranger(
    qm: RunningQueueManager, orders: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledgement_queues, "QUEUES_OF_ONE_SOURCE", 0)
    qm.engine.acknowledgement_queues.is_known = lambda name: name.direct_name.host == "198.51.100.8"
    arrive(qm, orders, elsewhere(0), "192.0.2.66")
    assert made(qm) == 0
    arrive(qm, orders, elsewhere(1, "198.51.100.8"), "192.0.2.66")
    arrive(qm, orders, elsewhere(2), "192.0.2.66", signed=True)
    assert made(qm) == 2
    assert len(qm.engine.acknowledgement_queues) == 0


def test_what_stays_empty_is_dropped_after_a_while(qm: RunningQueueManager, orders: Queue) -> None:
    arrive(qm, orders, elsewhere(0), "192.0.2.66")
    arrive(qm, orders, elsewhere(1), "192.0.2.66")
    emptied, full = qm.engine.outgoing.list()
    qm.done(qm.engine.queues.purge_queue(emptied))
    for _ in range(12):
        qm.advance(MINUTE)
    assert qm.engine.outgoing.list() == [full]
    assert len(qm.engine.acknowledgement_queues) == 1


def test_a_queue_that_is_used_here_too_is_no_stranger_s(
    qm: RunningQueueManager, orders: Queue
) -> None:
    arrive(qm, orders, elsewhere(0), "192.0.2.66")
    qm.open(elsewhere(0), QueueAccessType.SEND_ACCESS)
    assert len(qm.engine.acknowledgement_queues) == 0
    assert made(qm) == 1


def test_a_restart_remembers_who_they_were_made_for(qm: RunningQueueManager, orders: Queue) -> None:
    for number in range(3):
        arrive(qm, orders, elsewhere(number), "192.0.2.66")
    qm.restart()
    assert len(qm.engine.acknowledgement_queues) == 3
