"""Only the destination acknowledges transactional messages ([MS-MQQB] 3.1.5.6, 3.1.5.7; G101)."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple
from uuid import UUID, uuid4

import pytest

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import final_ack, order_ack
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import FinalAckBody, OrderAckBody
from rpcqm.codec.packet.message import PacketMessage, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from rpcqm.testing import private_queue_manager
from tests.support.binary.stranger import HERE, SENT_TIME, Destination, Stranger, Victim
from tests.support.waiting import PATIENCE

STREAM = "DIRECT=OS:bob\\private$\\stream"
ELSEWHERE = "127.0.0.2"
REJECTED = MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED
RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE


class Sending(NamedTuple):
    """Alice, who sends; Bob, who has what she sent; and the message as it travelled."""

    alice: Victim
    bob: Destination
    message: PacketMessage

    @property
    def unsent(self) -> int:
        said = self.alice.queue_manager.run("queue", "list", "--outgoing", "--json").stdout
        return sum(queue["messages"] for queue in json.loads(said))

    def await_nothing_unsent(self) -> None:
        give_up = time.monotonic() + PATIENCE
        while self.unsent:
            assert time.monotonic() < give_up

    @property
    def dead(self) -> list[bytes]:
        return self.alice.bodies(f"{HERE}SYSTEM$;DEADXACT")


@pytest.fixture
def sending() -> Iterator[Sending]:
    with closing(Destination()) as bob:
        peers = f'name = "alice"\n[binary]\npeers = "bob=127.0.0.1:{bob.port}"\n'
        with private_queue_manager(configuration=peers) as queue_manager:
            words = ("send", STREAM, "--body", "order", "--transactional", "--dead-letter")
            queue_manager.run(*words)
            bob.accept()
            yield Sending(Victim(queue_manager), bob, bob.next_message())


def order_acknowledgement(message: PacketMessage, by: UUID, ordinal: int) -> bytes:
    sequence, number = sequence_in(message)
    body = OrderAckBody(sequence, number, number - 1)
    return build_user_message(
        order_ack(ORDER_QUEUE, MessageIdentifier(by, ordinal), SENT_TIME, body)
    )


def final_acknowledgement(
    message: PacketMessage, by: UUID, ordinal: int, reason: int = REJECTED
) -> bytes:
    sequence, number = sequence_in(message)
    sent = message.identifier
    body = FinalAckBody(sequence, number, number - 1, sent.queue_manager_guid, sent.ordinal)
    built = final_ack(ORDER_QUEUE, MessageIdentifier(by, ordinal), SENT_TIME, body, reason)
    return build_user_message(built)


ORDER_QUEUE = FormatName.parse(f"{HERE}PRIVATE$\\order_queue$")


def sequence_in(message: PacketMessage) -> tuple[TxSequenceID, int]:
    sequence = message.transactional_message_sequence_identifier
    assert sequence is not None
    return sequence, message.transaction_sequence_number


def forge(sending: Sending) -> None:
    """Acknowledge everything as strangers can: as oneself, and as Bob from somewhere else."""
    bob = sending.bob.guid
    ordinal = 100
    for claimed, source in ((None, "127.0.0.1"), (bob, ELSEWHERE)):
        with Stranger(sending.alice.address, claimed, source) as stranger:
            for author in (uuid4(), stranger.guid, bob):
                ordinal += 2
                stranger.send_packet(order_acknowledgement(sending.message, author, ordinal))
                stranger.send_packet(final_acknowledgement(sending.message, author, ordinal + 1))
            sending.alice.await_all(stranger)


@pytest.mark.conformance("MQQB-rule-3.1.5.6", "MQQB-rule-3.1.5.7")
def test_a_stranger_acknowledges_nothing(sending: Sending) -> None:
    forge(sending)
    assert (sending.unsent, sending.dead) == (1, [])
    assert sending.alice.queue_manager.log.count("acknowledgement of somebody else") == 1
    sending.bob.send_packet(order_acknowledgement(sending.message, sending.bob.guid, 1))
    sending.bob.send_packet(final_acknowledgement(sending.message, sending.bob.guid, 2))
    sending.await_nothing_unsent()
    assert sending.dead == ["order".encode("utf-16-le")]


@pytest.mark.conformance("MQQB-rule-3.1.5.7")
def test_a_stranger_decides_nothing_about_what_has_arrived(sending: Sending) -> None:
    sending.bob.send_packet(order_acknowledgement(sending.message, sending.bob.guid, 1))
    forge(sending)
    sending.alice.queue_manager.kill()
    sending.alice.queue_manager.start()
    forge(sending)
    assert (sending.unsent, sending.dead) == (1, [])
    with Stranger(sending.alice.address, sending.bob.guid) as bob:
        bob.send_packet(final_acknowledgement(sending.message, bob.guid, 2, RECEIVED))
        sending.await_nothing_unsent()
    assert sending.dead == []


@pytest.mark.conformance("MQQB-rule-3.1.5.7")
@pytest.mark.parametrize("number", [0x4001, 0x800D], ids=hex)
def test_whatever_is_no_receipt_is_a_rejection(sending: Sending, number: int) -> None:
    """Also a class that this version does not know (G551)."""
    sending.bob.send_packet(final_acknowledgement(sending.message, sending.bob.guid, 1, number))
    sending.await_nothing_unsent()
    sending.alice.queue_manager.kill()
    sending.alice.queue_manager.start()
    assert sending.dead == ["order".encode("utf-16-le")]
    assert sending.unsent == 0
