"""Asking whether a queue manager would take a session ([MS-MQQB] 2.1.2, 3.1.7.6 to 3.1.7.9)."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from uuid import UUID

from rpcqm.base.addresses import owner_of
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError
from rpcqm.binary.settings import BinarySettings
from rpcqm.codec.packet.internal import PING_SIGNATURE, PingFlags, PingPacket

PING_PORT = 3527
PINGS_OF_ONE_ADDRESS = 10
"""Pings of one address in a second that are answered.

Bound `binary.pings_of_one_address` [pings]: the ping is not answered.
"""
PINGING_ADDRESSES = 1024
"""Addresses whose pings are counted.

Bound `binary.pinging_addresses` [addresses]: the one that asked longest ago is forgotten.
"""
_MILLISECONDS_EACH = 1000 // PINGS_OF_ONE_ADDRESS
_COOKIE = 0xFFFF_FFFF


class PingRequests:
    """Pings that wait for their answers; only the latest one of each address counts.

    The PingCookie tells answers apart, the Ping Response Timer ends the wait for one. `is_server`
    says whether this machine's operating system is a Windows for servers.
    """

    def __init__(
        self,
        local: UUID,
        timers: Timers,
        settings: BinarySettings,
        cookie: int = 0,
        is_server: Callable[[], bool] = lambda: True,
    ) -> None:
        self._local = local
        self._timers = timers
        self._settings = settings
        self._cookie = cookie
        self._is_server = is_server
        self._waiting: dict[int, tuple[str, Completion[bool], Timer]] = {}

    def send(self, address: str, transmit: Callable[[bytes], None]) -> Completion[bool]:
        """Ask; True when a session would be taken, False when not, or when nobody answers.

        Source: [MS-MQQB] 3.1.7.6.
        """
        for cookie, (asked, _, _) in list(self._waiting.items()):
            if asked == address:
                self._finish(cookie, False)
        cookie = self._cookie = (self._cookie + 1) & _COOKIE
        outcome: Completion[bool] = Completion()
        expired = partial(self._finish, cookie, False)
        timer = self._timers.call_later(self._settings.ping_response, expired)
        self._waiting[cookie] = (address, outcome, timer)
        transmit(PingPacket.of(self._local, cookie, PingFlags.of(RC=not self._is_server())))
        return outcome

    def receive(self, datagram: bytes) -> None:
        """Take an answer; other datagrams are ignored ([MS-MQQB] 3.1.7.8)."""
        ping = _decoded(datagram)
        if ping is not None:
            self._finish(ping.cookie, not ping.flags.RF)

    def _finish(self, cookie: int, accepted: bool) -> None:
        """[MS-MQQB] 3.1.7.9, 3.1.6.8."""
        waiting = self._waiting.pop(cookie, None)
        if waiting is not None:
            _, outcome, timer = waiting
            timer.cancel()
            outcome.succeed(accepted)

    def stop(self) -> None:
        """Stop waiting for answers."""
        for cookie in list(self._waiting):
            self._finish(cookie, False)


class PingRate:
    """Bounds the answered pings of each address: a burst, then so many a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._spent)

    def admit(self, address: str) -> bool:
        """Whether one more question of an address is answered now (G91)."""
        now, owner = self._clock.monotonic(), owner_of(address)
        spent, since = self._spent.pop(owner, (0, now))
        spent = max(spent - (now - since), 0) + _MILLISECONDS_EACH
        admitted = spent <= PINGS_OF_ONE_ADDRESS * _MILLISECONDS_EACH
        self._spent[owner] = (spent if admitted else spent - _MILLISECONDS_EACH, now)
        if len(self._spent) > PINGING_ADDRESSES:
            self._spent.popitem(last=False)
        return admitted


def answer_ping(datagram: bytes, local: UUID, refused: bool) -> bytes | None:
    """The answer to a question, or None for another datagram ([MS-MQQB] 3.1.7.7).

    Only an answer refuses; a datagram with our own identifier is an answer that came back (G96).
    """
    ping = _decoded(datagram)
    if ping is None or ping.flags.RF or ping.qm_guid == local:
        return None
    flags = PingFlags.of(RC=ping.flags.RC, RF=refused)
    return PingPacket.of(local, ping.cookie, flags)


def _decoded(datagram: bytes) -> PingPacket | None:
    if len(datagram) != PingPacket.size():
        return None
    try:
        ping = PingPacket.decode(datagram)
    except DecodeError:
        return None
    return ping if ping.signature == PING_SIGNATURE else None
