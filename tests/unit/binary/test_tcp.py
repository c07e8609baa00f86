"""Sessions over real connections: bad peers, limits, names."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from rpcqm.binary.connection import tcp
from rpcqm.binary.connection.listener import parse_peers
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection
from rpcqm.binary.connection.tcp import (
    BACK_OFF,
    VIOLATIONS,
    VIOLATIONS_WITHIN,
    TcpNetwork,
    TcpTransport,
)
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    SessionAckPacket,
)
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier
from tests.support.binary.binary_network import Node, Simulation
from tests.support.clock import SimulatedClock
from tests.support.queue_manager import MEMORY

STRANGER = UUID(int=77)
REQUEST = EstablishConnectionPacket.of(EstablishConnectionHeader(STRANGER))
PARAMETERS = ConnectionParametersPacket.of(ConnectionParametersHeader(500, 20_000))
GUID = UUID(int=5)
CLEANUP = 300_000
SMALL = 300_000


class Door:
    """A queue manager that listens."""

    def __init__(self, network: TcpNetwork, port: int, node: Node) -> None:
        self.network = network
        self.port = port
        self.node = node
        self.clock = node.simulation.clock
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def stored(self) -> int:
        """Messages in all queues."""
        return self.node.store.total.count

    async def begin(self, part: bytes) -> asyncio.StreamReader:
        """Open a session and send a part of a packet."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        for packet in (REQUEST, PARAMETERS):
            writer.write(packet)
            await reader.read(1000)
        writer.write(part)
        return reader

    async def say(self, *packets: bytes) -> list[bytes]:
        """Send packets one by one; the answer to each, b"" when the connection is closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        answers = []
        with contextlib.suppress(ConnectionError):
            for packet in packets:
                writer.write(packet)
                answers.append(await asyncio.wait_for(reader.read(1000), 10))
        writer.close()
        return answers


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[Door]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        simulation = Simulation(Path(directory))
        node = simulation.node("bob")
        node.create()
        network = TcpNetwork(simulation.clock)
        port = await network.listen(node.protocol, "127.0.0.1", 0)
        yield Door(network, port, node)
        await network.stop()
        simulation.stop()


@pytest.mark.conformance("MQQB-rule-2.1.1", "MQQB-rule-3.1.5.10")
def test_a_stranger_can_open_a_session() -> None:
    async def talk() -> list[bytes]:
        async with listening() as listener:
            return await listener.say(REQUEST, PARAMETERS)

    establish, parameters = asyncio.run(talk())
    assert len(establish) == EstablishConnectionPacket.size()
    assert len(parameters) == ConnectionParametersPacket.size()


def message(**more: Any) -> bytes:
    attributes = MessageAttributes(
        destination_queue_format_name=FormatName.parse("DIRECT=OS:bob\\private$\\orders"),
        identifier=MessageIdentifier(STRANGER, 1),
        sent_time=1_750_000_000,
        time_to_reach_queue=0xFFFF_FFFF,
        body=b"body",
        delivery_guarantee=1,
    )
    for attribute, value in more.items():
        setattr(attributes, attribute, value)
    return build_user_message(attributes)


def changed(packet: bytes, offset: int, value: bytes) -> bytes:
    return packet[:offset] + value + packet[offset + len(value) :]


NO_PACKETS = {
    "another protocol": (b"GET / HTTP/1.1\r\n\r\n",),
    "the same twice": (REQUEST, REQUEST),
    "out of order": (PARAMETERS,),
    "a message before the session is open": (REQUEST, message()),
    "too long before the session is open": (changed(REQUEST, 8, b"\0\0\2\0"),),
    "wrong version": (REQUEST, PARAMETERS, changed(message(), 0, b"\x11")),
    "wrong signature": (REQUEST, PARAMETERS, changed(message(), 4, b"ROIL")),
    "longer than any": (REQUEST, PARAMETERS, changed(message(), 8, b"\0\0\0\x7f")),
    "shorter than a header": (REQUEST, PARAMETERS, changed(message(), 8, b"\7\0\0\0")),
    "not as long as it says": (REQUEST, PARAMETERS, changed(message(), 8, b"\x80\0\0\0")),
    "acknowledges what was not sent": (
        *(REQUEST, PARAMETERS, SessionAckPacket.of(SessionHeader(ack_sequence_number=5))),
    ),
    "counts what did not arrive": (
        *(REQUEST, PARAMETERS, SessionAckPacket.of(SessionHeader(user_msg_sequence_number=9))),
    ),
    "times out of their range": (REQUEST, changed(PARAMETERS, 20, b"\1\0\0\0")),
}


@pytest.mark.conformance("MQQB-rule-3.1.5.1.2", "MQQB-rule-3.1.5.1.3")
@pytest.mark.parametrize("packets", NO_PACKETS.values(), ids=NO_PACKETS)
def test_who_breaks_the_rules_is_cut_off_and_kept_out_for_a_while(
    packets: tuple[bytes, ...],
) -> None:
    async def talk() -> tuple[bytes, list[bytes], list[bytes], int]:
        async with listening() as listener:
            for _ in range(VIOLATIONS):
                last = (await listener.say(*packets))[-1]
            refused = await listener.say(REQUEST)
            listener.clock.advance(BACK_OFF)
            return last, refused, await listener.say(REQUEST), listener.stored

    with capture_logs() as logged:
        last, refused, later, stored = asyncio.run(talk())
    assert last == b""
    assert refused in ([], [b""])
    assert len(later[0]) == EstablishConnectionPacket.size()
    assert stored == 0
    said = [each for each in logged if each["log_level"] != "debug"]
    assert [each["event"] for each in said[:-1]] == ["session closed"] * VIOLATIONS


@pytest.mark.bound("binary.violations")
def test_an_address_is_kept_out_at_the_bound_of_its_violations_and_not_before() -> None:
    async def talk() -> tuple[list[bytes], list[bytes]]:
        async with listening() as listener:
            for _ in range(VIOLATIONS - 1):
                await listener.say(b"no packet at all")
            good = await listener.say(REQUEST)
            await listener.say(b"no packet at all")
            return good, await listener.say(REQUEST)

    good, refused = asyncio.run(talk())
    assert len(good[0]) == EstablishConnectionPacket.size()
    assert refused in ([], [b""])


class _From(asyncio.Transport):
    """A connection from an address, of which nothing is read."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 4711, 0, 0)})
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    abort = close


def test_who_breaks_the_rules_from_many_addresses_of_one_owner_is_kept_out_at_all() -> None:
    """The last 64 bits of an IPv6 address are for its owner to choose (G91)."""

    async def talk() -> list[bool]:
        async with listening() as listener:
            network = listener.network
            for number in range(1, VIOLATIONS + 1):
                wire = TcpTransport(listener.node.protocol.accept(), network, True)
                wire.connection_made(_From(f"2001:db8::{number}"))
                wire.data_received(b"no packet at all")
                wire.connection_lost(None)
            refused = [network.refuses("2001:db8::77"), network.refuses("2001:db8:0:1::1")]
            listener.clock.advance(BACK_OFF)
            return [*refused, network.refuses("2001:db8::77")]

    assert asyncio.run(talk()) == [True, False, False]


def test_one_slip_keeps_no_neighbour_out() -> None:
    async def talk() -> list[list[bytes]]:
        async with listening() as listener:
            good = []
            for _ in range(VIOLATIONS + 1):
                await listener.say(b"no packet at all")
                good.append(await listener.say(REQUEST))
                listener.clock.advance(VIOLATIONS_WITHIN // 2 + 1)
            return good

    for answer in asyncio.run(talk()):
        assert len(answer[0]) == EstablishConnectionPacket.size()


def test_a_packet_that_never_ends_ends_its_session() -> None:
    async def talk() -> tuple[str, int]:
        async with listening() as listener:
            reader = await listener.begin(message(body=bytes(1 << 20))[:-1])
            while listener.network.held_bytes < 1 << 20:
                await asyncio.sleep(0.01)
            listener.clock.advance(CLEANUP)
            closed = await asyncio.wait_for(reader.read(), 10)
            return closed.decode(), listener.stored

    assert asyncio.run(talk()) == ("", 0)


def test_unfinished_packets_have_a_limit_over_all_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp, "HELD_BYTES", 1 << 20)

    async def talk() -> tuple[int, int]:
        async with listening() as listener:
            small = await listener.begin(message(body=bytes(1 << 20))[:SMALL])
            large = await listener.begin(message(body=bytes(1 << 20))[:1_000_000])
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(large.read(), 10) == b""
            assert not small.at_eof()
            return listener.network.held_bytes, len(listener.network.wires)

    assert asyncio.run(talk()) == (SMALL, 1)


@pytest.mark.bound("binary.held_bytes")
def test_the_last_octet_that_is_held_is_one_too_many() -> None:
    given_up: list[int] = []

    class Holding:
        held = 0

        def __init__(self, number: int) -> None:
            self.number = number

        def give_up(self) -> None:
            given_up.append(self.number)

    network = TcpNetwork(SimulatedClock())
    small, large = cast(TcpTransport, Holding(1)), cast(TcpTransport, Holding(2))
    network.wires |= {small, large}
    network.hold(large, tcp.HELD_BYTES - 1)
    network.hold(small, 1)
    assert given_up == []
    network.hold(small, 2)
    assert given_up == [2]


@pytest.mark.bound("binary.unsent_bytes")
def test_who_takes_nothing_of_what_is_sent_is_cut_off() -> None:
    class Unread:
        unsent, aborted = 0, False

        def get_extra_info(self, name: str) -> Any:
            return ("192.0.2.1", 1801) if name == "peername" else None

        def write(self, data: bytes) -> None:
            self.unsent += len(data)

        def get_write_buffer_size(self) -> int:
            return self.unsent

        def is_closing(self) -> bool:
            return self.aborted

        def abort(self) -> None:
            self.aborted = True

    class Attached:
        closed_already = False

        def attach(self, wire: TcpTransport, address: str) -> None: ...

    wire = TcpTransport(cast(PeerConnection, Attached()), TcpNetwork(SimulatedClock()), False)
    transport = Unread()
    wire.connection_made(cast(asyncio.Transport, transport))
    wire.write(bytes(tcp.UNSENT_BYTES))
    assert not transport.aborted
    wire.write(b"x")
    assert transport.aborted


def test_connections_that_end_leave_nothing_behind() -> None:
    async def talk() -> int:
        async with listening() as listener:
            for _ in range(50):
                await listener.say(REQUEST)
            for _ in range(100):
                if not listener.network.wires:
                    break
                await asyncio.sleep(0.01)
            return len(listener.network.wires)

    assert asyncio.run(talk()) == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.2.1")
def test_names_are_resolved_by_the_system_without_waiting_for_it() -> None:
    async def resolve() -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        network = TcpNetwork(SimulatedClock())
        numeric = network.resolve("::1")
        local, missing = network.resolve("localhost"), network.resolve("nobody.invalid")
        pending = not local.done
        done = asyncio.Event()
        missing.add_done_callback(lambda _: done.set())
        await asyncio.wait_for(done.wait(), 30)
        while not local.done:
            await asyncio.sleep(0.01)
        assert isinstance(missing.error, OSError)
        return numeric.result(), local.result(), pending

    numeric, local, pending = asyncio.run(resolve())
    assert numeric == ("::1",)
    assert "127.0.0.1" in local
    assert pending


def test_peers_are_read_from_their_setting() -> None:
    text = f"Other=127.0.0.1:4711, other=[::1]:4712,{{{GUID}}}=host"
    assert parse_peers(text) == {
        "other": [NextHop("127.0.0.1", 4711, "Other"), NextHop("::1", 4712, "other")],
        str(GUID): [NextHop("host", 1801, "", GUID)],
    }
    assert parse_peers("") == {}


@pytest.mark.parametrize("text", ["other", "=host", "other=", "other=host:port"])
def test_a_setting_that_names_no_peers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parse_peers(text)
