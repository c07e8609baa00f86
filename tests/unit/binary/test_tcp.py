"""Sessions over real connections: bad peers, limits, names."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.base.clock import SimulatedClock
from rpcqm.binary.connection.door import parse_peers
from rpcqm.binary.connection.line import Hop
from rpcqm.binary.connection.tcp import BACK_OFF, TcpNetwork
from rpcqm.codec.packet_internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
)
from tests.support.binary_network import Simulation
from tests.support.queue_manager import MEMORY

STRANGER = UUID(int=77)
REQUEST = EstablishConnectionPacket.of(EstablishConnectionHeader(STRANGER))
PARAMETERS = ConnectionParametersPacket.of(ConnectionParametersHeader(500, 20_000))
GUID = UUID(int=5)


class Door:
    """A queue manager that listens."""

    def __init__(self, network: TcpNetwork, port: int, clock: SimulatedClock) -> None:
        self.network = network
        self.port = port
        self.clock = clock

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
        port = await network.listen(node.exchange, "127.0.0.1", 0)
        yield Door(network, port, simulation.clock)
        await network.stop()
        simulation.stop()


@pytest.mark.conformance("MQQB-rule-2.1.1", "MQQB-rule-3.1.5.10")
def test_a_stranger_can_open_a_session() -> None:
    async def talk() -> list[bytes]:
        async with listening() as door:
            return await door.say(REQUEST, PARAMETERS)

    establish, parameters = asyncio.run(talk())
    assert len(establish) == EstablishConnectionPacket.size()
    assert len(parameters) == ConnectionParametersPacket.size()


@pytest.mark.conformance("MQQB-rule-3.1.5.1.2", "MQQB-rule-3.1.5.1.3")
@pytest.mark.parametrize(
    "packets",
    [(b"GET / HTTP/1.1\r\n\r\n",), (REQUEST, REQUEST), (PARAMETERS,)],
    ids=["another protocol", "twice", "out of order"],
)
def test_who_breaks_the_rules_is_cut_off_and_kept_out_for_a_while(
    packets: tuple[bytes, ...],
) -> None:
    async def talk() -> tuple[bytes, list[bytes], list[bytes]]:
        async with listening() as door:
            last = (await door.say(*packets))[-1]
            refused = await door.say(REQUEST)
            door.clock.advance(BACK_OFF)
            return last, refused, await door.say(REQUEST)

    last, refused, later = asyncio.run(talk())
    assert last == b""
    assert refused in ([], [b""])
    assert len(later[0]) == EstablishConnectionPacket.size()


def test_connections_that_end_leave_nothing_behind() -> None:
    async def talk() -> int:
        async with listening() as door:
            for _ in range(50):
                await door.say(REQUEST)
            for _ in range(100):
                if not door.network.wires:
                    break
                await asyncio.sleep(0.01)
            return len(door.network.wires)

    assert asyncio.run(talk()) == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.2.1")
def test_names_are_resolved_by_the_system_without_waiting_for_it() -> None:
    async def resolve() -> tuple[list[str], list[str], bool]:
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
    assert numeric == ["::1"]
    assert "127.0.0.1" in local
    assert pending


def test_peers_are_read_from_their_setting() -> None:
    text = f"Other=127.0.0.1:4711, other=[::1]:4712,{{{GUID}}}=host"
    assert parse_peers(text) == {
        "other": [Hop("127.0.0.1", 4711, "Other"), Hop("::1", 4712, "other")],
        str(GUID): [Hop("host", 1801, "", GUID)],
    }
    assert parse_peers("") == {}


@pytest.mark.parametrize("text", ["other", "=host", "other=", "other=host:port"])
def test_a_setting_that_names_no_peers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parse_peers(text)
