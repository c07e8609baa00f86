"""Messages that were not delivered, or not received in time: who looked, and sending again.

Sending again is one commit: a message is in its dead-letter queue or on its way, never in both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import DEAD_LETTER_QUEUES, format_name, shown_name
from rpcqm.codec.packet.enums import AcknowledgementsRequested
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.audit import note, refusals
from rpcqm.qm.access import require_administrator
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.leases import BRIEFLY
from rpcqm.qm.message_counts import why_dead
from rpcqm.qm.program_work import Sending

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
    """A dead letter that stays, and why."""

    lookup_identifier: int
    error: MQError


@dataclass(frozen=True, slots=True)
class Resent:
    """How many were sent again; `more` are there that were meant, too."""

    messages: int
    failed: tuple[NotSent, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Unread:
    """A queue of dead letters, and how many of its messages nobody has looked at.

    Those are the ones with a greater number than `looked_at` in their lookup identifiers.
    """

    name: str
    messages: int
    unread: int
    looked_at: int


class DeadLetterOperations:
    """Who may peek at and receive from a dead-letter queue may look at it and send again."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._engine = engine

    def queues(self, identity: Identity) -> list[Unread]:
        """Those of this queue manager, for administrators; looking at this is no look at them."""
        require_administrator(identity)
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
        return start(self._resend(identity, name, lookup_identifier, to, ttbr))

    async def _resend(
        self,
        identity: Identity,
        name: FormatName,
        key: int,
        to: FormatName | None,
        ttbr: int | None,
    ) -> None:
        engine = self._engine
        with refusals(identity, "resend dead letter", str(name)):
            held = engine.leases.hold(name, identity, key, BRIEFLY, self._access(name))
        (received,) = held.received
        assert received.lease is not None
        try:
            sending = self._again(received.message, to, ttbr)
            with refusals(identity, "resend dead letter", str(sending.name)):
                done = engine.program_work.perform(identity, [sending], [received.lease.identifier])
        except BaseException:
            held.abandon()
            raise
        note(identity, "resend dead letter", str(sending.name), lookup_id=str(key))
        await done
        if self._engine.outgoing.find(name) is not None:  # an empty one goes when it is closed
            self._engine.leases.check(name, identity, self._access(name))

    def resend_all(
        self,
        identity: Identity,
        name: FormatName,
        reason: str | None = None,
        to: FormatName | None = None,
        ttbr: int | None = None,
        keys: Sequence[int] | None = None,
    ) -> Completion[Resent]:
        """Send those of `keys` again, or all that are there now, or those with a reason.

        A reason is a class as `explain` knows it: NACK_Q_PURGED. What cannot be sent stays.
        """
        return start(self._resend_all(identity, name, reason, to, ttbr, keys))

    async def _resend_all(
        self,
        identity: Identity,
        name: FormatName,
        reason: str | None,
        to: FormatName | None,
        ttbr: int | None,
        keys: Sequence[int] | None,
    ) -> Resent:
        with refusals(identity, "resend dead letter", str(name)):
            queue = self._engine.leases.check(name, identity, self._access(name))
        chosen = list(keys) if keys is not None else self._chosen(queue, reason)
        count, failed = 0, []
        for key in chosen[:RESENT_AT_ONCE]:
            try:
                await self._resend(identity, name, key, to, ttbr)
            except MQError as error:
                failed.append(NotSent(key, error))
            else:
                count += 1
        return Resent(count, tuple(failed), len(chosen) > RESENT_AT_ONCE)

    def _again(self, message: Message, to: FormatName | None, ttbr: int | None) -> Sending:
        """What is sent again; whoever does it asks for no acknowledgement in another one's name.

        Where the first sender may not send to, its message was not to be acknowledged (G400).
        """
        sending = _sent_again(message, to, ttbr)
        if not self._engine.sender_rights.may_be_told(message):
            sending.attributes.acknowledgements_requested = AcknowledgementsRequested.NONE
            sending.attributes.administration_queue_format_name = None
        return sending

    def _access(self, name: FormatName) -> QueueAccessType:
        """Queues to elsewhere are for administrators."""
        outgoing = self._engine.outgoing.find(name) is not None
        return QueueAccessType.RECEIVE_ADMIN_ACCESS if outgoing else QueueAccessType.RECEIVE_ACCESS

    def _chosen(self, queue: Queue, reason: str | None) -> list[int]:
        """What is there now with that reason; one more than is sent at once, if there is more."""
        index = self._engine.store.index(queue.queue_id)
        chosen: list[int] = []
        for key in queue.message_position_list.page(None, LOOKED_AT_ONCE):
            if reason is None or why_dead(index.moves(key).message_class) == reason:
                chosen.append(key)
            if len(chosen) > RESENT_AT_ONCE:
                break
        return chosen


def _sent_again(message: Message, to: FormatName | None, ttbr: int | None) -> Sending:
    """A new message with the same properties."""
    old = message.attributes
    target = to or old.destination_queue_format_name
    if target is None:
        text = "the message does not say which queue it was for"
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text)
    new = MessageAttributes(
        body=old.body,
        label=old.label,
        priority=old.priority,
        delivery_guarantee=old.delivery_guarantee,
        body_type=old.body_type,
        time_to_reach_queue=old.time_to_reach_queue,
        time_to_be_received=old.time_to_be_received if ttbr is None else ttbr,
        acknowledgements_requested=old.acknowledgements_requested,
        administration_queue_format_name=old.administration_queue_format_name,
        response_queue_format_name=old.response_queue_format_name,
        correlation_identifier=old.correlation_identifier,
        application_tag=old.application_tag,
        extension=old.extension,
        negative_journaling_requested=old.negative_journaling_requested,
        positive_journaling_requested=old.positive_journaling_requested,
        privacy_level=old.privacy_level,
        encryption_algorithm=old.encryption_algorithm,
        tracing_requested=old.tracing_requested,
    )
    return Sending(target, new, message.envelope.transactional)
