"""Appends one record until it is certain whether the log has it.

Any error on the way leaves that in doubt. Doubt is settled by writing: the same octets go again
under the same condition, so that they are there at most once. It ends with the engine's
acknowledgement, or with a record that is seen at exactly that place: this one, or another writer's.
The engine's statement that the log ends elsewhere, and seeing no record there, prove nothing
(G665).
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from rpcqm.base.clock import Timer, Timers
from rpcqm.base.completion import Completion
from rpcqm.store.replication import (
    Absent,
    Appended,
    Fenced,
    Present,
    Refused,
    ReplicatedLog,
    Trimmed,
    Unknown,
)

AGAIN = 100
"""Milliseconds after which a record in doubt goes again; the engine's own waits come first."""

T = TypeVar("T")


class Settling:
    """A record on its way to the place behind the record `after`.

    `doubt` gives the reason for an uncertain outcome, "" while nothing has gone wrong.
    """

    def __init__(self, engine: ReplicatedLog, timers: Timers, after: int, record: bytes) -> None:
        self._engine = engine
        self._timers = timers
        self._after = after
        self._record = record
        self._timer: Timer | None = None
        self._stopped = False
        self.doubt = ""
        self.outcome: Completion[Appended | Fenced] = Completion()

    def start(self) -> Completion[Appended | Fenced]:
        """Append it; the outcome never arrives before this has returned."""
        self._append()
        return self.outcome

    def stop(self) -> None:
        """Give it up: the outcome stays open, and the record may be there now or later."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _append(self) -> None:
        if not self._stopped:
            answer = self._engine.append(self._after, self._record)
            answer.add_done_callback(partial(self._when_going, self._answered))

    def _when_going(self, go_on: Callable[[T], None], answer: Completion[T]) -> None:
        if not self._stopped and not self.outcome.done:
            go_on(answer.result())

    def _answered(self, answer: Appended | Unknown | Refused) -> None:
        if isinstance(answer, Appended):
            self.outcome.succeed(answer)
            return
        self.doubt = answer.reason
        seen = self._engine.look(self._after + 1)
        seen.add_done_callback(partial(self._when_going, self._looked))

    def _looked(self, seen: Present | Absent | Trimmed) -> None:
        if isinstance(seen, Absent):
            self._timer = self._timers.call_later(AGAIN, self._append)
        elif isinstance(seen, Trimmed):  # by the present writer: none trims its own place
            self.outcome.succeed(Fenced(b""))
        elif seen.octets == self._record:
            self.outcome.succeed(Appended())
        else:
            self.outcome.succeed(Fenced(seen.octets))
