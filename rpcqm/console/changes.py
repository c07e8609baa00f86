"""Tells pages that something has changed, by server-sent events; it costs nothing unwatched."""

import asyncio
from collections.abc import Callable

from rpcqm.console.sessions import Session

LOOK_SECONDS = 1.0
"""How often pages are told at most."""
HEARTBEAT_SECONDS = 15.0
"""Something is sent so often even if nothing happens, so that who has gone is noticed."""
MOST_LISTENERS = 200
"""Pages that follow what happens at a time.

Bound `console.listeners` [pages]: a page does not follow what happens.
"""
LISTENERS_OF_SESSION = 16
"""Pages of one logon that follow what happens at a time.

Bound `console.listeners_of_session` [pages]: a page does not follow what happens.
"""

CHANGED = b"event: changed\ndata: \n\n"
ALIVE = b": alive\n\n"


class _Listener:
    """What one page is told; it ends when its session does."""

    def __init__(self, session: Session, forget: "Callable[[_Listener], None]") -> None:
        self.session = session
        self._forget = forget
        self._woken = asyncio.Event()
        self._begun = False
        self.ended = False

    def wake(self, ended: bool = False) -> None:
        """Something has changed, or everything has ended."""
        self.ended = self.ended or ended
        self._woken.set()

    async def next(self) -> bytes | None:
        """What the browser is told next; None when nothing follows."""
        if not self._begun:  # so that the browser knows at once that it is heard
            self._begun = True
            return ALIVE
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            return ALIVE
        self._woken.clear()
        return None if self.ended else CHANGED

    def close(self) -> None:
        """Nobody is there any more, or the server stops."""
        self.wake(ended=True)
        self._forget(self)


class Changes:
    """`pulse` gives a value that differs after a change; it is asked while somebody listens."""

    def __init__(self, pulse: Callable[[], object], is_alive: Callable[[Session], bool]) -> None:
        self._pulse, self._is_alive = pulse, is_alive
        self._listeners: set[_Listener] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._last: object = None

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def listen(self, session: Session) -> _Listener | None:
        """What a page is told from now on; None if there are too many already."""
        own = sum(1 for each in self._listeners if each.session is session)
        if len(self._listeners) >= MOST_LISTENERS or own >= LISTENERS_OF_SESSION:
            return None
        listener = _Listener(session, self._listeners.discard)
        self._listeners.add(listener)
        if self._timer is None:
            self._last = self._pulse()
            self._look_later()
        return listener

    def look(self) -> None:
        """Tell those who listen of a change, and end those who are logged on no more."""
        now = self._pulse()
        changed, self._last = now != self._last, now
        for listener in self._listeners:
            ended = not self._is_alive(listener.session)
            if changed or ended:
                listener.wake(ended)

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(LOOK_SECONDS, self._look_and_go_on)

    def _look_and_go_on(self) -> None:
        self._timer = None
        if self._listeners:
            self.look()
            self._look_later()
