"""Pings ([MS-MQQB] 2.1.2, 3.1.7.6 to 3.1.7.9)."""

import asyncio
from uuid import UUID

import pytest

from rpcqm.adm.enums import OperatingSystemType
from rpcqm.base.admission import Admission
from rpcqm.base.completion import Completion
from rpcqm.binary.connection.listener import BinaryListener
from rpcqm.binary.connection.udp import DatagramSocket, PingListener
from rpcqm.binary.ping import (
    PINGING_ADDRESSES,
    PINGS_OF_ONE_ADDRESS,
    PingRate,
    PingRequests,
    answer_ping,
)
from rpcqm.binary.settings import BinarySettings
from rpcqm.codec.packet.internal import PingFlags, PingPacket
from rpcqm.config.schema import BinarySection
from tests.support.binary.binary_pair import exchanging
from tests.support.clock import SimulatedClock

ALICE = UUID(int=1)
BOB = UUID(int=2)


class Asker:
    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.requests = PingRequests(ALICE, self.clock.timers, BinarySettings())
        self.sent: list[bytes] = []

    def ask(self, address: str = "192.0.2.1") -> Completion[bool]:
        return self.requests.send(address, self.sent.append)


@pytest.mark.conformance("MQQB-timer-ping_response", "MQQB-event-ping_response_processed")
def test_a_ping_that_nobody_answers_fails_after_a_second() -> None:
    asker = Asker()
    outcome = asker.ask()
    asker.clock.advance(999)
    assert not outcome.done
    asker.clock.advance(1)
    assert outcome.result() is False


@pytest.mark.conformance("MQQB-event-receive_ping_response", "MQQB-event-ping_response_processed")
@pytest.mark.parametrize("refused", [False, True])
def test_the_answer_says_whether_a_session_would_be_taken(refused: bool) -> None:
    asker = Asker()
    outcome = asker.ask()
    answer = answer_ping(asker.sent[0], BOB, refused)
    assert answer is not None
    asker.requests.receive(answer)
    assert outcome.result() is not refused
    assert not len(asker.clock.timers)


@pytest.mark.conformance("MQQB-event-receive_ping_response")
def test_answers_to_other_questions_are_ignored() -> None:
    asker = Asker()
    first = asker.ask()
    second = asker.ask()
    assert first.result() is False
    late = answer_ping(asker.sent[0], BOB, refused=False)
    assert late is not None
    for datagram in (late, late[:-1], b"", bytes(24)):
        asker.requests.receive(datagram)
    assert not second.done


@pytest.mark.conformance("MQQB-event-receive_ping_request")
def test_the_answer_repeats_the_cookie_and_the_type_of_the_initiator() -> None:
    question = PingPacket.of(ALICE, 77, PingFlags.of(RC=1))
    answer = PingPacket.decode(answer_ping(question, BOB, refused=True) or b"")
    assert (answer.cookie, answer.qm_guid) == (77, BOB)
    assert (answer.flags.RC, answer.flags.RF) == (1, 1)
    damaged = question[:2] + bytes(2) + question[4:]
    assert answer_ping(damaged, BOB, refused=False) is None


@pytest.mark.conformance("MQQB-rule-2.1.2")
@pytest.mark.parametrize("listening", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("asked", ["127.0.0.1", "::1"])
def test_pings_travel_by_udp_to_both_address_families(listening: str, asked: str) -> None:
    async def ask() -> tuple[bool, list[str]]:
        clock, askers = SimulatedClock(), list[str]()

        def answer(question: bytes, host: str) -> bytes | None:
            askers.append(host)
            return answer_ping(question, BOB, refused=False)

        doors = [
            PingListener(
                PingRequests(guid, clock.timers, BinarySettings()), answer, PingRate(clock)
            )
            for guid in (ALICE, BOB)
        ]
        await doors[0].listen(listening, 0)
        port = await doors[1].listen(asked, 0)
        outcome = doors[0].ping(asked, port)
        arrived = asyncio.Event()
        outcome.add_done_callback(lambda _: arrived.set())
        await asyncio.wait_for(arrived.wait(), 10)
        for listener in doors:
            listener.close()
        return outcome.result(), askers

    assert asyncio.run(ask()) == (True, [asked])


@pytest.mark.conformance("MQQB-event-send_ping_request", "MQQB-packet-Ping")
@pytest.mark.parametrize(
    ("kind", "client"),
    [(OperatingSystemType.FOREIGN, True), (OperatingSystemType.WIN_SERVER, False)],
)
def test_a_question_says_whether_a_windows_for_servers_asks(
    kind: OperatingSystemType, client: bool
) -> None:
    async def ask(listener: BinaryListener) -> bytes:
        received: asyncio.Queue[bytes] = asyncio.Queue()
        answering = DatagramSocket(lambda data, _: received.put_nowait(data))
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: answering, local_addr=("127.0.0.1", 0))
        assert answering.transport is not None
        assert listener.pings is not None
        await listener.pings.listen("127.0.0.1", 0)
        listener.pings.ping("127.0.0.1", answering.transport.get_extra_info("sockname")[1])
        question = await asyncio.wait_for(received.get(), 10)
        listener.pings.close()
        answering.transport.close()
        return question

    with exchanging() as pair:
        pair.alice.engine.queue_manager.operating_system_type = kind
        listener = BinaryListener(
            pair.alice.engine, pair.simulation.clock, BinarySection(ping=True)
        )
        question = PingPacket.decode(asyncio.run(ask(listener)))
    assert bool(question.flags.RC) is client


@pytest.mark.conformance("MQQB-event-receive_ping_request")
@pytest.mark.parametrize("offline", [False, True])
def test_a_ping_is_refused_by_who_would_refuse_a_session(offline: bool) -> None:
    admission = Admission(100, 1)
    admission.let_in("192.0.2.7")
    with exchanging() as pair:
        engine = pair.alice.engine
        listener = BinaryListener(
            engine, pair.simulation.clock, BinarySection(ping=True), admission
        )
        if offline:
            engine.take_offline()
        assert listener.pings is not None
        question = PingPacket.of(UUID(int=9), 1, PingFlags.of())
        refused = []
        for host in ("192.0.2.7", "192.0.2.8"):
            answer = PingPacket.decode(listener.pings._answer(question, host) or b"")
            refused.append(bool(answer.flags.RF))
    assert refused == [True, offline]


@pytest.mark.bound("binary.pings_of_one_address")
def test_one_address_is_answered_ten_times_a_second() -> None:
    clock = SimulatedClock()
    rate = PingRate(clock)
    assert [rate.admit("192.0.2.1") for _ in range(PINGS_OF_ONE_ADDRESS + 2)].count(True) == 10
    assert rate.admit("192.0.2.2")
    clock.advance(99)
    assert not rate.admit("192.0.2.1")
    clock.advance(1)
    assert rate.admit("192.0.2.1")
    assert not rate.admit("192.0.2.1")
    clock.advance(60_000)
    assert [rate.admit("192.0.2.1") for _ in range(20)].count(True) == 10


def test_addresses_of_one_owner_are_counted_together() -> None:
    """The last 64 bits of an IPv6 address are for its owner to choose (G91)."""
    rate = PingRate(SimulatedClock())
    admitted = [rate.admit(f"2001:db8::{number:x}") for number in range(PINGS_OF_ONE_ADDRESS + 1)]
    assert admitted == [True] * PINGS_OF_ONE_ADDRESS + [False]
    assert rate.admit("2001:db8:0:1::1")


@pytest.mark.bound("binary.pinging_addresses")
def test_only_so_many_addresses_are_counted() -> None:
    rate = PingRate(SimulatedClock())
    for number in range(PINGING_ADDRESSES + 1):
        assert rate.admit(f"host-{number}")
    assert len(rate) == PINGING_ADDRESSES
