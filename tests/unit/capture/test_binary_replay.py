"""Sessions of the binary protocol are made ready to be played, and their progress is told."""

from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.capture.analysis import Exchange
from rpcqm.capture.conversation.binary import BinaryPacket
from rpcqm.capture.conversation.binary_progress import SessionProgress, at, milestones
from rpcqm.capture.conversation.call import MSMQ_BINARY, Conversation
from rpcqm.capture.replay.binary import players_of
from rpcqm.capture.replay.binary_rewriting import SEQUENCE, Rewriter
from rpcqm.capture.replay.fixture import infer
from rpcqm.capture.replay.mapping import QUEUE_MANAGER, Mapping
from rpcqm.capture.replay.outcome import Server
from rpcqm.codec.packet.base import BaseHeader, SessionHeader
from rpcqm.codec.packet.internal import (
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    SessionAckPacket,
)
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.user_message import UserMessage
from tests.support.capture.analysed import calls_of

CAPTURE = Path(__file__).parents[2] / "vectors" / "captures" / "binary.pcapng"
EXCHANGES, _ = calls_of(CAPTURE)
PACKETS = [each for each in EXCHANGES if isinstance(each, BinaryPacket)]
SECOND = 1_000_000_000
LIVE = UUID(int=77)


def conversation(number: int, server: str = "192.0.2.2:1801") -> Conversation:
    return Conversation(number, f"192.0.2.1:{number}", server, MSMQ_BINARY, 0)


def packet(octets: bytes, from_client: bool = False, number: int = 1, when: int = 1) -> Exchange:
    return BinaryPacket(conversation(number), octets, from_client, when, 0)


def sent(name: str) -> list[BinaryPacket]:
    """The client's messages for a queue, in their order."""
    return [
        each
        for each in PACKETS
        if each.from_client and each.name == "UserMessage" and name in queue_of(each)
    ]


def queue_of(each: BinaryPacket) -> str:
    return str(PacketMessage(each.octets).destination_queue_format_name)


def test_packets_have_the_names_of_the_protocol() -> None:
    names = [each.name for each in PACKETS]
    assert {"OrderAck", "FinalAck", "SessionAck", "UserMessage"} < set(names)
    assert names.count("OrderAck") == 3
    assert names.count("FinalAck") == 1


# Messages that are sent again.


def test_a_message_is_that_of_a_new_client_at_another_place() -> None:
    mapping = Mapping("longer-name")
    captured = sent("orders")[0]
    source = UserMessage(captured.octets).user_header.source_queue_manager
    rewriter = Rewriter(mapping)
    client = mapping.client(source)
    assert client != source
    assert mapping.client(source) == client
    made = UserMessage(rewriter.message(captured, 0))
    made.validate()
    assert made.user_header.source_queue_manager == client
    assert made.user_header.destination_queue == r"OS:longer-name\private$\orders"
    assert made.packet_size == len(made.buffer) == len(captured.octets) + 12
    assert made.body == UserMessage(captured.octets).body


def test_times_are_later() -> None:
    captured = next(each for each in sent("orders") if each.octets[12:16] != b"\xff" * 4)
    before = UserMessage(captured.octets)
    after = UserMessage(Rewriter(Mapping()).message(captured, 1000))
    due = [BaseHeader.decode(each.buffer).time_to_reach_queue for each in (before, after)]
    assert due[1] - due[0] == 1000
    assert after.user_header.sent_time - before.user_header.sent_time == 1000
    unlimited = Rewriter(Mapping()).message(sent("orders")[0], 1000)
    assert unlimited[12:16] == b"\xff" * 4


def test_the_first_message_of_a_sequence_that_was_captured_is_its_first() -> None:
    """A capture may have begun in the middle of a sequence."""
    captured, rewriter = sent("stream")[1], Rewriter(Mapping())
    headers = [UserMessage(rewriter.message(captured, 0)).transaction_header for _ in range(2)]
    found = [each for each in headers if each is not None]
    assert [each.tx_sequence_number for each in found] == [2, 2]
    assert [each.previous_tx_sequence_number for each in found] == [0, 1]


def test_an_acknowledgement_names_the_live_sequence() -> None:
    captured = next(each for each in PACKETS if each.name == "FinalAck")
    mapping, body = Mapping(), PacketMessage(captured.octets).body
    mapping.learn(SEQUENCE, int.from_bytes(body[:8], "little"), 5)
    mapping.learn(QUEUE_MANAGER, UUID(bytes_le=body[16:32]), LIVE)
    made = PacketMessage(Rewriter(mapping).message(captured, 0)).body
    assert made == (5).to_bytes(8, "little") + body[8:16] + LIVE.bytes_le + body[32:]


# Progress.


@pytest.mark.parametrize(
    ("headers", "acknowledged", "recoverable"),
    [
        ([(3, 1, 0b111)], 3, 3),
        ([(3, 1, 0b111), (5, 0, 0)], 5, 3),
        ([(0x6000, 0, 0), (0xC000, 0, 0), (2, 0, 0)], 0x10002, 0),
        ([(0, 0x7000, 1), (0, 0xDFFE, 0b11), (0, 0, 0b1)], 0, 0x10000),
    ],
)
def test_numbers_count_on(
    headers: list[tuple[int, int, int]], acknowledged: int, recoverable: int
) -> None:
    progress = SessionProgress()
    for count, first, flags in headers:
        header = SessionHeader(count, first, flags, 0, 0, 64)
        each = packet(SessionAckPacket.of(header))
        assert isinstance(each, BinaryPacket)
        progress.take_acknowledgements(each)
    assert (progress.acknowledged, progress.recoverable) == (acknowledged, recoverable)


def test_progress_is_known_for_every_moment() -> None:
    answers = [each for each in PACKETS if not each.from_client]
    found = milestones(answers, SessionProgress.take_message)
    assert at(found, answers[0].time - 1) == SessionProgress()
    last = at(found, None)
    assert (last.messages, sum(last.orders.values())) == (1, 5)
    assert last.reaches(at(found, answers[5].time))
    assert not at(found, answers[5].time).reaches(last)


# Whose sessions are played.


def session(number: int, client: int, server: int, at_host: str = "192.0.2.2") -> list[Exchange]:
    made = conversation(number, f"{at_host}:1801")
    header = EstablishConnectionHeader(UUID(int=client), UUID(int=server))
    octets = EstablishConnectionPacket.of(header)
    return [BinaryPacket(made, octets, True, 1, 0), BinaryPacket(made, octets, False, 2, 0)]


def test_sessions_with_another_server_are_not_played() -> None:
    exchanges = session(1, 7, 8) + session(2, 7, 8) + session(3, 8, 7, "192.0.2.1")
    players = players_of(exchanges, Server("127.0.0.1"), Mapping())
    assert [bool(each.reason) for each in players] == [False, False, True]
    assert players[0].peer is players[1].peer
    assert players[0].peer is not players[2].peer


def test_what_is_sent_in_a_capture_is_not_there_before() -> None:
    """Its queues are, but for the one that a FinalAck says is not there."""
    fixture = infer(EXCHANGES)
    assert fixture.queues == {"orders": False, "nowhere": False, "stream": True}
    assert fixture.messages == []
