"""Holds back a process's output while another one may have taken its place.

A primary of a cluster may answer only as long as no other node can have taken over. That is checked
where octets leave: every connection, accepted or made, of any protocol, writes through the outlet
of its process, if there is one. So a new door cannot forget the check. A process without an outlet
checks nothing.

Output that is held back leaves once it is certain that nobody had taken over when it was written;
if another node has, it never does. If that stays uncertain for long, the process refuses:
connections with held output, or with a request under way, are cut, because the outcome is unknown;
on the others, doors that can refuse requests do so (`Guarded.passing`), and nothing else leaves.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast, runtime_checkable
from weakref import WeakSet

Make = Callable[[], asyncio.BaseProtocol]

SENTENCE = "the log's servers do not answer, so that nothing can be changed or known for certain"


@runtime_checkable
class Refusing(Protocol):
    """A protocol that can say whether somebody waits for its answer."""

    def begin_refusing(self) -> bool:
        """Refuse requests from now on; returns whether one with an unknown outcome is under way."""


class Outlet:
    """Decides whether the output of this process's connections may leave."""

    def __init__(self, may_leave: Callable[[], bool]) -> None:
        self.may_leave = may_leave
        self.refusing = False
        """Whether requests are to be refused."""
        self.holding: set[Guarded] = set()
        self.guarded: WeakSet[Guarded] = WeakSet()

    def release(self) -> None:
        """Let held output leave and stop refusing, if the lease is certain again."""
        if (self.refusing or self.holding) and self.may_leave():
            self.refusing = False
            for each in list(self.holding):
                each.release()

    def refuse(self) -> None:
        """Refuse from now on, and cut the connections with an unknown outcome."""
        self.refusing = True
        for each in list(self.guarded):
            if each in self.holding or each.begin_refusing():
                each.abort()


_current: Outlet | None = None


def current() -> Outlet | None:
    """The outlet of this process; None outside of clusters."""
    return _current


def install(outlet: Outlet | None) -> None:
    """Let later connections write through an outlet."""
    global _current
    _current = outlet


def guarded(make: Make) -> Make:
    """Let a protocol's connection write through the outlet, if there is one."""
    outlet = _current
    return make if outlet is None else lambda: _Introduction(outlet, make)


class _Introduction(asyncio.Protocol):
    """Gives the protocol its guarded transport, and steps aside."""

    def __init__(self, outlet: Outlet, make: Make) -> None:
        self._outlet, self._make = outlet, make

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        inner = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        protocol = self._make()
        inner.set_protocol(protocol)
        protocol.connection_made(Guarded(inner, protocol, self._outlet))


class Guarded(asyncio.Transport):
    """A transport whose octets leave when its outlet allows it.

    While `passing` is set they leave in any case: they say nothing about the queue manager then.
    """

    def __init__(
        self, inner: asyncio.Transport, protocol: asyncio.BaseProtocol, outlet: Outlet
    ) -> None:
        super().__init__()
        self.passing = False
        self._inner = inner
        self._protocol = protocol
        self._outlet = outlet
        self._held: list[bytes] = []
        self._ends = self._closing = False
        outlet.guarded.add(self)

    def begin_refusing(self) -> bool:
        """Whether somebody waits for an answer; assumed of protocols that cannot say."""
        protocol = self._protocol
        return not isinstance(protocol, Refusing) or protocol.begin_refusing()

    # Output

    def write(self, data: Any) -> None:
        if not self._held and (self.passing or self._outlet.may_leave()):
            self._inner.write(data)
        elif self._outlet.refusing:
            self.abort()
        else:
            self._held.append(bytes(data))
            self._outlet.holding.add(self)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        if self._held:
            self._ends = True
        else:
            self._inner.write_eof()

    def close(self) -> None:
        if self._held:
            self._closing = True
        else:
            self._inner.close()

    def release(self) -> None:
        """Let the held output leave."""
        held, self._held = self._held, []
        self._outlet.holding.discard(self)
        if not self._inner.is_closing():
            self._inner.write(b"".join(held))
            if self._ends:
                self._inner.write_eof()
            if self._closing:
                self._inner.close()

    def abort(self) -> None:
        """Drop the held output and abort."""
        self._held.clear()
        self._outlet.holding.discard(self)
        self._inner.abort()

    # Passed on to the transport

    def is_closing(self) -> bool:
        return self._closing or self._inner.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._inner.get_write_buffer_size() + sum(map(len, self._held))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._inner.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_reading(self) -> bool:
        return self._inner.is_reading()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._inner.set_write_buffer_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._inner.get_write_buffer_limits()

    def can_write_eof(self) -> bool:
        return self._inner.can_write_eof()
