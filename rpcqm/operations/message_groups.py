"""A group of messages is moved, removed or sent on in one commit, or in fewer parts than it has."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.messages import MessageOperations
from rpcqm.operations.sent_again import (
    UNCHANGED,
    Edits,
    sent_again,
)
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.program_work import Sending
from rpcqm.qm.quotas import EnqueueRefusedError
from rpcqm.qm.standing_orders import MaintenanceError

GROUP = 1_000
"""Messages of an order that are one commit.

Bound `orders.group` [messages]: the next ones are a group of their own.
"""
GROUP_BYTES = 8 << 20
"""After so many bytes of packets a group has no more messages.

Bound `orders.group_bytes` [bytes]: the next ones are a group of their own.
"""
HELD = "a reader, a lease or a transaction holds it"
Reason = tuple[str, str]
"""The reason why a message stays: the name of a code, and words."""


@dataclass(frozen=True, slots=True)
class Group:
    """Part of the chosen messages, in their order."""

    identity: Identity
    queue: Queue
    keys: Sequence[int]


@dataclass(slots=True)
class Outcome:
    """The result for a group; `hopeless` is the reason why all that follow stay as well."""

    looked_at: int = 0
    done: int = 0
    gone: int = 0
    staying: Counter[Reason] = field(default_factory=Counter)
    hopeless: Reason | None = None

    def stays(self, error: MQError, messages: int = 1) -> None:
        """Count messages that stay."""
        self.staying[reason_of(error)] += messages


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A message that stays or goes, and what is sent for it."""

    key: int
    sending: Sending


def reason_of(error: MQError) -> Reason:
    """Why a message stays, in words."""
    return error.status.name, error.detail or error.status.meaning.rstrip(".")


def told_reasons(staying: Counter[Reason]) -> list[dict[str, object]]:
    """The reasons why messages stay, for JSON: a count for each, the largest first."""
    return [
        {"messages": messages, "code": code, "detail": detail}
        for (code, detail), messages in staying.most_common()
    ]


class Sender:
    """Acts on the messages of a group that are there and that no reader holds."""

    def __init__(self, engine: QueueManagerEngine, messages: MessageOperations) -> None:
        self._engine, self._messages = engine, messages

    # Between a queue and its subqueues, and out of it

    def check_move(self, identity: Identity, queue: Queue, to: FormatName) -> None:
        """Raise MQError if messages cannot be moved there as they are."""
        with self._into(identity, to) as place:
            self._engine.messages.check_target(queue, place)

    async def move(self, group: Group, to: FormatName) -> Outcome:
        """Move them as they are, in one commit."""
        outcome, keys = self._present(group)
        with self._into(group.identity, to) as place:
            if keys:
                await self._engine.messages.move_together(group.queue, keys, place)
        outcome.done = len(keys)
        return outcome

    @contextmanager
    def _into(self, identity: Identity, to: FormatName) -> Iterator[Queue]:
        """The queue that messages are moved to, open for that."""
        access = QueueAccessType.MOVE_ACCESS
        with self._messages.opened(identity, to, access) as into:
            assert into.queue_reference is not None
            yield into.queue_reference

    async def remove(self, group: Group) -> Outcome:
        """Remove them in one commit; no reader gets them."""
        outcome, keys = self._present(group)
        if keys:
            await self._engine.sending_on.remove(group.queue, keys)
        outcome.done = len(keys)
        return outcome

    def _present(self, group: Group) -> tuple[Outcome, list[int]]:
        """The messages that are there and that no reader holds; the others are counted."""
        outcome = Outcome(looked_at=len(group.keys))
        keys = [key for key in group.keys if self._is_free(group.queue, key, outcome)]
        return outcome, keys

    def _is_free(self, queue: Queue, key: int, outcome: Outcome) -> bool:
        state = queue.message_position_list.state(key)
        if state is PositionState.LOCKED:
            held = HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION
            outcome.stays(MQError(held, HELD))
        elif state is not PositionState.AVAILABLE:
            outcome.gone += 1
        return state is PositionState.AVAILABLE

    # To another queue

    def check_send(self, identity: Identity, to: FormatName) -> None:
        """Raise MQError if the caller cannot send there."""
        opening = self._engine.opening
        opening.close_queue(opening.open_to_send_at_once(to, identity=identity))

    async def send(
        self,
        group: Group,
        to: FormatName | None,
        edits: Edits = UNCHANGED,
        *,
        leaves: bool,
        refusing: dict[FormatName, MQError],
    ) -> Outcome:
        """Send them anew; those that `leave` their queue do so in the same commit.

        `refusing` are queues to which no more is sent, and why. What cannot be sent stays.
        """
        outcome = Outcome()
        if to is not None and to in refusing:
            outcome.hopeless = reason_of(refusing[to])
            return outcome
        rights = self._engine.sender_rights
        again = partial(sent_again, rights, to=to, edits=edits, leaves=leaves)
        prepared = self._prepared(group, again, outcome)
        await self._commit(group, prepared, outcome, leaves, refusing)
        return outcome

    def _prepared(
        self, group: Group, again: Callable[[Message], Sending], outcome: Outcome
    ) -> list[_Prepared]:
        """What is sent for the messages that are there, as far as one commit takes them."""
        prepared: list[_Prepared] = []
        size = 0
        for key in group.keys:
            if size >= GROUP_BYTES:
                break
            outcome.looked_at += 1
            if not self._is_free(group.queue, key, outcome):
                continue
            try:
                message = self._engine.positions.message_at(group.queue, key)
                prepared.append(_Prepared(key, again(message)))
                size += len(message.packet)
            except MQError as error:
                outcome.stays(error)
            except DecodeError as error:
                outcome.stays(MQError(HResult.MQ_ERROR, str(error)))
        return prepared

    async def _commit(
        self,
        group: Group,
        prepared: list[_Prepared],
        outcome: Outcome,
        leaves: bool,
        refusing: dict[FormatName, MQError],
    ) -> None:
        """Send them in one commit; if it is refused, in halves, so that the others go."""
        waiting = [prepared]
        while waiting:
            part = self._to_be_sent(group, waiting.pop(), outcome, refusing)
            if not part:
                continue
            try:
                await self._sent(group, part, leaves)
            except MQError as error:
                if len(part) == 1:
                    outcome.stays(error)
                    self._remember(group.identity, part[0].sending.name, error, refusing)
                    continue
                half = len(part) // 2
                waiting += [part[half:], part[:half]]
            else:
                outcome.done += len(part)

    def _to_be_sent(
        self,
        group: Group,
        part: list[_Prepared],
        outcome: Outcome,
        refusing: dict[FormatName, MQError],
    ) -> list[_Prepared]:
        """Those whose queue takes messages, and that are still there."""
        found = []
        for each in part:
            name = each.sending.name
            assert isinstance(name, FormatName)
            if (error := refusing.get(name)) is not None:
                outcome.stays(error)
            elif self._is_free(group.queue, each.key, outcome):
                found.append(each)
        return found

    def _sent(self, group: Group, part: Sequence[_Prepared], leaves: bool) -> Completion[Any]:
        sendings = [(each.key, _fresh(each.sending)) for each in part]
        return self._engine.sending_on.send_on(group.identity, group.queue, sendings, leaves=leaves)

    def _remember(
        self,
        identity: Identity,
        name: FormatName | tuple[FormatName, ...],
        error: MQError,
        refusing: dict[FormatName, MQError],
    ) -> None:
        """Remember a queue that is full, gone or shut, as it refuses the next messages too."""
        assert isinstance(name, FormatName)
        if isinstance(error, EnqueueRefusedError | MaintenanceError):
            refusing[name] = error
            return
        try:
            self.check_send(identity, name)
        except MQError as refusal:
            refusing[name] = refusal


def _fresh(sending: Sending) -> Sending:
    """The same to be composed, which changes its attributes; a refused one is composed again."""
    return Sending(sending.name, sending.attributes.copy(), sending.transactional)
