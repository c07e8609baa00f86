"""Pings over UDP ([MS-MQQB] 2.1.2): answering on port 3527, and asking from a port of our own."""

import asyncio
import ipaddress
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from rpcqm.base.completion import Completion
from rpcqm.base.outlet import current
from rpcqm.binary.ping import PING_PORT, PingRate, PingRequests

Address = tuple[str, int]
"""Host and port; IPv6 has two more fields, which are passed on unread."""

Received = Callable[[bytes, Address], None]
Answer = Callable[[bytes, str], bytes | None]


class DatagramSocket(asyncio.DatagramProtocol):
    """A UDP socket that passes on received datagrams."""

    def __init__(self, received: Received) -> None:
        self._received = received
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self._received(data, addr)


class PingListener:
    """Asks and answers pings.

    `answer` gets a question and the asker's address, and returns the datagram to send.
    """

    def __init__(self, requests: PingRequests, answer: Answer, rate: PingRate) -> None:
        self._requests = requests
        self._rate = rate
        self._answer = answer
        self._sockets: list[DatagramSocket] = []
        self._asking: dict[int, DatagramSocket] = {}
        self._answering: DatagramSocket | None = None
        self.port = 0

    async def listen(self, host: str, port: int = PING_PORT) -> int:
        """Answer on `port`, and return it. Raises OSError if it cannot be opened; asking works."""
        asking = await self._open(self._answered, (host, 0))
        own = ipaddress.ip_address(_address_of(asking)[0])
        self._asking[own.version] = asking
        with suppress(OSError):  # this machine may lack the other address family
            other = await self._open(self._answered, (_counterpart(own), 0))
            self._asking[10 - own.version] = other
        answering = self._answering = await self._open(self._question, (host, port))
        self.port = int(_address_of(answering)[1])
        return self.port

    async def _open(self, received: Received, local: tuple[str, int]) -> DatagramSocket:
        loop = asyncio.get_running_loop()
        opened = DatagramSocket(received)
        await loop.create_datagram_endpoint(lambda: opened, local_addr=local)
        self._sockets.append(opened)
        return opened

    def _answered(self, data: bytes, address: Address) -> None:
        self._requests.receive(data)

    def _question(self, data: bytes, address: Address) -> None:
        """Answer, but never a queue manager's own answering port, nor anybody too often (G96)."""
        if address[1] == PING_PORT or not self._rate.admit(address[0]):
            return
        answer = self._answer(data, address[0])
        if answer is not None:
            self._send(self._answering, answer, address)

    def ping(self, address: str, port: int = PING_PORT) -> Completion[bool]:
        """Ask the queue manager at an address."""

        def transmit(data: bytes) -> None:
            self._send(self._asking.get(6 if ":" in address else 4), data, (address, port))

        return self._requests.send(address, transmit)

    def _send(self, sender: DatagramSocket | None, data: bytes, address: Address) -> None:
        outlet = current()
        if outlet is not None and not outlet.may_leave():
            return
        if sender is not None and sender.transport is not None:
            sender.transport.sendto(data, address)

    def close(self) -> None:
        """Stop asking and answering."""
        self._requests.stop()
        for opened in self._sockets:
            if opened.transport is not None:
                opened.transport.close()


def _address_of(opened: DatagramSocket) -> Address:
    """The address and port of a socket."""
    assert opened.transport is not None
    address: Address = opened.transport.get_extra_info("sockname")
    return address


def _counterpart(own: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Where to ask hosts of the other address family from: loopback if we listen there only."""
    if own.version == 4:
        return "::1" if own.is_loopback else "::"
    return "127.0.0.1" if own.is_loopback else "0.0.0.0"
