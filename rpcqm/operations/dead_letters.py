"""Messages that were not delivered, or not received in time: who looked, and sending again.

Sending again is one commit: a message is in its dead-letter queue or on its way, never in both.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import DEAD_LETTER_QUEUES, format_name, shown_name
from rpcqm.codec.packet.types import SEQUENTIAL_MASK
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.audit import RefusedOnce, note, refusals, start_ordered
from rpcqm.operations.drafts import seconds
from rpcqm.operations.message_groups import reason_of, told_reasons
from rpcqm.operations.sent_again import UNCHANGED, Edits, sent_again
from rpcqm.qm.access import require_administrator, require_observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.leases import BRIEFLY
from rpcqm.qm.message_counts import why_dead
from rpcqm.qm.sent_keys import Identifiers

LOOKED_AT_ONCE = 100_000
"""Dead letters that are looked at for those of a reason.

Bound `dead_letters.looked_at_once` [messages]: those of the reason behind them are not found by
that request.
"""
RESENT_AT_ONCE = 1_000
"""Dead letters that one request sends again.

Bound `dead_letters.resent_at_once` [messages]: the answer says that there are more.
"""


@dataclass(frozen=True, slots=True)
class NotSent:
    """A dead letter that stays, and the reason."""

    lookup_identifier: int
    error: MQError

    @property
    def because(self) -> str:
        return reason_of(self.error)[1]


@dataclass(frozen=True, slots=True)
class Range:
    """Where in a queue to look: behind one lookup identifier, at letters up to a number.

    `until` is the sequential part of a lookup identifier. It keeps a request that is repeated from
    the letters that have died again meanwhile.
    """

    after: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Resent:
    """The result: letters sent again, letters that stay, and the place to continue from."""

    messages: int
    failed: tuple[NotSent, ...]
    rest: Range | None

    def reasons(self) -> list[dict[str, object]]:
        """The reasons why letters stay, for JSON."""
        return told_reasons(Counter(reason_of(each.error) for each in self.failed))


@dataclass(frozen=True, slots=True)
class Unread:
    """A queue of dead letters, and how many of its messages nobody has looked at.

    Those are the ones with a greater number than `looked_at` in their lookup identifiers.
    """

    name: str
    messages: int
    unread: int
    looked_at: int


EVERYWHERE = Range()


class DeadLetterOperations:
    """Who may peek at and receive from a dead-letter queue may look at it and send again."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._engine = engine

    def queues(self, identity: Identity) -> list[Unread]:
        """Those of this queue manager, for administrators; looking at this is no look at them."""
        require_observer(identity)
        letters = self._engine.dead_letters
        return [
            Unread(
                shown_name(queue.pathname),
                queue.message_count,
                letters.unread_in(queue),
                letters.looked_at(queue),
            )
            for queue in letters.queues()
        ]

    def acknowledge(self, identity: Identity) -> int:
        """Somebody has looked at all that are there now (G361); tells how many were new."""
        with refusals(identity, "look at dead letters", "dead letters"):
            require_administrator(identity)
        new = self._engine.dead_letters.unread()
        note(identity, "look at dead letters", "dead letters", messages=new)
        opening = self._engine.opening
        for path in DEAD_LETTER_QUEUES:
            access = QueueAccessType.PEEK_ACCESS
            opening.close_queue(opening.open_queue(format_name(path), access, identity=identity))
        return new

    # Sending again

    def resend(
        self,
        identity: Identity,
        name: FormatName,
        lookup_identifier: int,
        to: FormatName | None = None,
        ttbr: int | None = None,
    ) -> Completion[None]:
        """Send a dead letter again, to where it was for or elsewhere, in one commit.

        `ttbr` is the time to be received in seconds; None leaves it as it was. Raises MQError:
        MESSAGE_NOT_FOUND, also for one that somebody holds, and those of opening both queues.
        """
        return start_ordered(self._resend(identity, name, lookup_identifier, to, ttbr))

    async def _resend(
        self,
        identity: Identity,
        name: FormatName,
        key: int,
        to: FormatName | None,
        ttbr: int | None,
    ) -> None:
        target, done = self._begin(identity, name, key, to, ttbr, refusals)
        note(identity, _RESEND, target, lookup_id=str(key))
        await done
        self._forget_if_empty(identity, name)

    def _begin(
        self,
        identity: Identity,
        name: FormatName,
        key: int,
        to: FormatName | None,
        ttbr: int | None,
        refused: "Refusals",
    ) -> tuple[str, Completion[Identifiers]]:
        """Where a letter goes to, and when it is on its way."""
        engine = self._engine
        with refused(identity, _RESEND, str(name)):
            held = engine.leases.hold(name, identity, key, BRIEFLY, self._access(name))
        (received,) = held.received
        assert received.lease is not None
        try:
            edits = _with_time(ttbr)
            sending = sent_again(engine.sender_rights, received.message, to, edits)
            with refused(identity, _RESEND, str(sending.name)):
                done = engine.program_work.perform(identity, [sending], [received.lease.identifier])
        except BaseException:
            held.abandon()
            raise
        return str(sending.name), done

    def _forget_if_empty(self, identity: Identity, name: FormatName) -> None:
        """An outgoing queue that is empty goes when somebody closes it."""
        if self._engine.outgoing.find(name) is not None:
            self._engine.leases.check(name, identity, self._access(name))

    def resend_all(
        self,
        identity: Identity,
        name: FormatName,
        reason: str | None = None,
        to: FormatName | None = None,
        ttbr: int | None = None,
        keys: Sequence[int] | None = None,
        where: Range = EVERYWHERE,
    ) -> Completion[Resent]:
        """Send those of `keys` again, or all that are there now, or those with a reason.

        A reason is a class as `explain` knows it: NACK_Q_PURGED. What cannot be sent stays. One
        request looks at a bounded number; `rest` of the outcome is the `where` of the next one.
        """
        return start_ordered(self._resend_all(identity, name, reason, to, ttbr, keys, where))

    async def _resend_all(
        self,
        identity: Identity,
        name: FormatName,
        reason: str | None,
        to: FormatName | None,
        ttbr: int | None,
        keys: Sequence[int] | None,
        where: Range,
    ) -> Resent:
        seconds("ttbr", ttbr)  # before anything is sent
        with refusals(identity, _RESEND, str(name)):
            queue = self._engine.leases.check(name, identity, self._access(name))
        if keys is not None:
            chosen, rest = list(keys), None
        else:
            chosen, rest = self._chosen(queue, reason, where)
        count, failed, refused = 0, [], RefusedOnce()
        for key in chosen:
            try:
                await self._begin(identity, name, key, to, ttbr, refused)[1]
            except MQError as error:
                failed.append(NotSent(key, error))
            else:
                count += 1
        if chosen:
            note(identity, _RESEND, queue.full_name, messages=count, failed=len(failed))
        self._forget_if_empty(identity, name)
        return Resent(count, tuple(failed), rest)

    def _access(self, name: FormatName) -> QueueAccessType:
        """Queues to elsewhere are for administrators."""
        outgoing = self._engine.outgoing.find(name) is not None
        return QueueAccessType.RECEIVE_ADMIN_ACCESS if outgoing else QueueAccessType.RECEIVE_ACCESS

    def _chosen(
        self, queue: Queue, reason: str | None, where: Range
    ) -> tuple[list[int], Range | None]:
        """The letters of a request, and where the next one looks for those behind them."""
        index, positions = self._engine.store.index(queue.queue_id), queue.message_position_list
        newest = self._engine.store.counters.lookup_identifier.next - 1
        until = newest if where.until is None else where.until
        chosen: list[int] = []
        looked_at = positions.page(where.after, LOOKED_AT_ONCE)
        for key in looked_at:
            wanted = reason is None or why_dead(index.moves(key).message_class) == reason
            if wanted and key & SEQUENTIAL_MASK <= until:
                chosen.append(key)
            if len(chosen) == RESENT_AT_ONCE:
                break
        more = bool(looked_at) and positions.next(key) is not None
        return chosen, Range(key, until) if more else None


Refusals = Callable[[Identity, str, str], AbstractContextManager[None]]
"""How refusals are told of: `refusals`, or once for an order."""

_RESEND = "resend dead letter"


def _with_time(ttbr: int | None) -> Edits:
    return UNCHANGED if ttbr is None else Edits({"time_to_be_received": ttbr})
