"""Orders for messages that somebody has chosen: to move, copy, send again or remove them.

What is chosen is a list of messages, fixed when it is made: what comes later is not touched, and
what has gone since is counted. An order is carried out in groups, each in one commit, and each only
once: a form that is sent twice finds that its part is done (G613 to G618).
"""

import enum
import secrets
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.packet.types import SEQUENTIAL_MASK
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.audit import note, refusals, start_ordered
from rpcqm.operations.dead_letters import EVERYWHERE, Range
from rpcqm.operations.message_groups import GROUP, Group, Outcome, Reason, Sender, told_reasons
from rpcqm.operations.messages import MessageOperations
from rpcqm.operations.searching import Chosen
from rpcqm.operations.sent_again import UNCHANGED, Edits
from rpcqm.qm.engine import QueueManagerEngine

MOST_CHOSEN = 100_000
"""Messages of one order.

Bound `orders.chosen` [messages]: the order is for the first ones, and says that there are more.
"""
MOST_CHOSEN_IN_ALL = 1_000_000
"""Messages of all orders that are kept.

Bound `orders.chosen_in_all` [messages]: the oldest orders are forgotten.
"""
ORDERS_OF_ACCOUNT = 32
"""Orders of one account that are kept.

Bound `orders.of_account` [orders]: the oldest one of the account is forgotten.
"""
LIFE = 12 * 3_600_000
"""Milliseconds after its last step until an order is forgotten."""

_TOO_MANY = f"more than {MOST_CHOSEN:,} messages at once"
_log = get_logger("operations")


class Doing(enum.StrEnum):
    """The kinds of orders for messages."""

    MOVE = "move"
    COPY = "copy"
    RESEND = "resend"
    REMOVE = "remove"

    @property
    def action(self) -> str:
        """The audit log's name of this order."""
        return f"{self} messages"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done; `to` is None for where each message was for.

    What is sent again leaves its queue, unless it shall be kept.
    """

    doing: Doing
    to: FormatName | None = None
    edits: Edits = UNCHANGED
    keep: bool = False

    @property
    def leaves(self) -> bool:
        """Whether the messages leave their queue, which needs the right to receive."""
        return self.doing is not Doing.COPY and not self.keep

    @property
    def access(self) -> QueueAccessType:
        """The access with which their queue is opened."""
        return QueueAccessType.RECEIVE_ACCESS if self.leaves else QueueAccessType.PEEK_ACCESS


@dataclass(slots=True)
class Order:
    """Messages that somebody has chosen, and how far what was ordered for them is.

    `more` messages were there than an order may have; `unread` ones may match, but were not read
    whole, and are not chosen. Those with a greater number than `newest` in their
    lookup identifiers have come later; `after` is the last one that was looked at. `step` grows
    with each group.
    """

    identifier: str
    owner: str
    source: FormatName
    keys: "array[int]"
    more: bool = False
    unread: int = 0
    newest: int = 0
    after: int = 0
    wanted: Wanted | None = None
    step: int = 0
    at: int = 0
    done: int = 0
    gone: int = 0
    staying: Counter[Reason] = field(default_factory=Counter)
    stopped: bool = False
    busy: bool = False
    touched: int = 0
    refusing: dict[FormatName, MQError] = field(default_factory=dict)

    def add(self, keys: Iterable[int]) -> None:
        """Choose messages, except those that came later."""
        self.keys.extend(key for key in keys if key & SEQUENTIAL_MASK <= self.newest)

    @property
    def chosen(self) -> int:
        return len(self.keys)

    @property
    def ended(self) -> bool:
        """Whether the order is finished."""
        return self.stopped or self.at >= len(self.keys)

    @property
    def left(self) -> int:
        """The number of messages that it has not reached."""
        return len(self.keys) - self.at

    def reasons(self) -> list[dict[str, object]]:
        """The reasons why messages stay, for JSON."""
        return told_reasons(self.staying)

    def told(self) -> dict[str, object]:
        """The result, for JSON."""
        return {
            "order": self.identifier,
            "step": self.step,
            "chosen": self.chosen,
            "messages": self.done,
            "gone": self.gone,
            "staying": self.reasons(),
            "left": self.left,
            "ended": self.ended,
            "more": self.more,
            "unread": self.unread,
            "after": str(self.after) if self.more else None,
            "until": str(self.newest) if self.more else None,
        }


class UnknownOrderError(MQError):
    """An order is another account's, was forgotten, or never was: a caller cannot tell which."""

    def __init__(self) -> None:
        text = "the order is not known any more: choose the messages again, nothing more was done"
        super().__init__(HResult.MQ_ERROR_STALE_HANDLE, text)


class MessageOrders:
    """Copying messages needs the right to peek at them, moving and removing that to receive them.

    The caller also needs the right to send to where they go. An order is lost by a restart, what it
    has done is not.
    """

    def __init__(self, engine: QueueManagerEngine, messages: MessageOperations) -> None:
        self._engine, self._messages = engine, messages
        self._orders: OrderedDict[str, Order] = OrderedDict()
        self._sender = Sender(engine, messages)

    # Choosing

    def choose(
        self,
        identity: Identity,
        source: FormatName,
        keys: Iterable[int],
        access: QueueAccessType = QueueAccessType.PEEK_ACCESS,
    ) -> Order:
        """Fix which messages are meant; raises MQError as opening the queue for `access` does."""
        with self._messages.opened_to_read(identity, source, access):
            order = self._new(identity, source)
        order.keys.extend(dict.fromkeys(keys))
        if order.chosen > MOST_CHOSEN:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, _TOO_MANY)
        return self._keep(order)

    def choose_all(
        self,
        identity: Identity,
        source: FormatName,
        access: QueueAccessType = QueueAccessType.PEEK_ACCESS,
        where: Range = EVERYWHERE,
    ) -> Order:
        """The same for all messages of a range that nobody holds now."""
        with self._messages.opened_to_read(identity, source, access) as (_, queue):
            order = self._new(identity, source, where)
            found = queue.message_position_list.page(where.after, MOST_CHOSEN + 1)
        order.more = len(found) > MOST_CHOSEN
        order.add(found[:MOST_CHOSEN])
        order.after = found[:MOST_CHOSEN][-1] if found else 0
        return self._keep(order)

    def choose_found(self, identity: Identity, source: FormatName, chosen: Chosen) -> Order:
        """The same for those that a search has chosen."""
        order = self._new(identity, source, Range(None, chosen.newest))
        order.keys.extend(chosen.keys)
        order.unread, order.more, order.after = chosen.unread, chosen.more, chosen.after or 0
        return self._keep(order)

    def rechoose(
        self, identity: Identity, identifier: str, shown: Iterable[int], ticked: Iterable[int]
    ) -> Order:
        """Let a choice have, of the messages that were shown, those that are ticked."""
        order = self.find(identity, identifier)
        if order.wanted is not None:
            raise UnknownOrderError
        looked_at = {*shown, *ticked}
        kept = [key for key in order.keys if key not in looked_at]
        order.keys = array("Q", sorted({*kept, *ticked}))
        if order.chosen > MOST_CHOSEN:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, _TOO_MANY)
        order.touched = self._engine.clock.monotonic()
        return order

    def copied(self, identity: Identity, identifier: str) -> Order:
        """The same choice as it is now, for an order: changes of the choice do not change it."""
        order = self.find(identity, identifier)
        copy = self._new(identity, order.source, Range(None, order.newest))
        copy.keys, copy.more, copy.unread = order.keys[:], order.more, order.unread
        copy.after = order.after
        return self._keep(copy)

    @property
    def newest(self) -> int:
        """The number of the newest message, which is part of its lookup identifier."""
        return self._engine.store.counters.lookup_identifier.next - 1

    def _new(self, identity: Identity, source: FormatName, where: Range = EVERYWHERE) -> Order:
        order = Order(secrets.token_urlsafe(16), identity.sid, source, array("Q"))
        order.newest = self.newest if where.until is None else where.until
        return order

    def find(self, identity: Identity, identifier: str) -> Order:
        """An order of the caller's; raises UnknownOrderError."""
        order = self._orders.get(identifier)
        now = self._engine.clock.monotonic()
        if order is None or order.owner != identity.sid or now - order.touched > LIFE:
            raise UnknownOrderError
        return order

    # Doing

    def begin(self, identity: Identity, identifier: str, wanted: Wanted) -> Completion[Order]:
        """Do what is wanted to the first group; an order that has begun goes on with `go_on` only.

        Raises MQError of opening the queues, MQ_ERROR_INVALID_PARAMETER for messages that are
        where they shall go already, STATUS_INVALID_PARAMETER for a subqueue of another queue.
        """
        order = self.find(identity, identifier)
        if order.wanted is None:
            self._check(identity, order, wanted)
            order.wanted = wanted
            return self.go_on(identity, identifier, 0)
        return start_ordered(_given(order))

    def go_on(self, identity: Identity, identifier: str, step: int) -> Completion[Order]:
        """Do it to the next group, unless that `step` was made already, or is being made."""
        order = self.find(identity, identifier)
        order.touched = self._engine.clock.monotonic()
        if order.ended or order.busy or order.wanted is None or step != order.step:
            return start_ordered(_given(order))
        return start_ordered(self._go_on(identity, order, order.wanted))

    def stop(self, identity: Identity, identifier: str) -> Order:
        """Leave the messages that an order has not reached where they are."""
        order = self.find(identity, identifier)
        if not order.ended:
            order.stopped = True
            if not order.busy:
                self._tell_of_end(identity.name, order)
        return order

    async def _go_on(self, identity: Identity, order: Order, wanted: Wanted) -> Order:
        order.busy = True
        try:
            await self._group(identity, order, wanted)
        finally:
            order.busy = False
            order.step += 1
        if order.ended:
            self._tell_of_end(identity.name, order)
        return order

    async def _group(self, identity: Identity, order: Order, wanted: Wanted) -> None:
        first = order.step == 0
        with self._source(identity, order, wanted) as queue:
            group = Group(identity, queue, order.keys[order.at : order.at + GROUP])
            _add(order, await self._carried_out(group, order, wanted))
            if first and order.done:
                self._note(identity, queue, order, wanted)

    def _note(self, identity: Identity, queue: Queue, order: Order, wanted: Wanted) -> None:
        """The one line of an order; of one in several groups it says how many are meant (G617)."""
        more: dict[str, object] = {}
        if wanted.to is not None:
            more["to"] = self._called(wanted.to)
        more["messages"] = order.done if order.ended else order.chosen
        note(identity, wanted.doing.action, queue.full_name, **more)

    def _called(self, name: FormatName) -> str:
        queue = self._engine.registry.find_by_format_name(name)
        here = queue is not None and not isinstance(queue, OutgoingQueue)
        return queue.full_name if queue is not None and here else str(name)

    async def _carried_out(self, group: Group, order: Order, wanted: Wanted) -> Outcome:
        if wanted.doing is Doing.REMOVE:
            return await self._sender.remove(group)
        to = wanted.to
        if wanted.doing is Doing.MOVE and to is not None and self._stays_with(group.queue, to):
            with refusals(group.identity, wanted.doing.action, str(to)):
                return await self._sender.move(group, to)
        return await self._sender.send(
            group, to, wanted.edits, leaves=wanted.leaves, refusing=order.refusing
        )

    # Checking

    def _check(self, identity: Identity, order: Order, wanted: Wanted) -> None:
        """Refuse what cannot be done to any message, before it is done to the first one."""
        with self._source(identity, order, wanted) as queue:
            if wanted.to is not None:
                self._check_target(identity, queue, wanted, wanted.to)

    def _check_target(
        self, identity: Identity, queue: Queue, wanted: Wanted, to: FormatName
    ) -> None:
        with refusals(identity, wanted.doing.action, str(to)):
            if wanted.doing is Doing.MOVE:
                if self._engine.registry.find_by_format_name(to) is queue:
                    text = "the messages are in that queue already"
                    raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text)
                if self._stays_with(queue, to):
                    self._sender.check_move(identity, queue, to)
                    return
            self._sender.check_send(identity, to)

    def moves_as_it_is(self, source: FormatName, to: FormatName) -> bool:
        """Whether a message would move between a queue that is there and one of its subqueues."""
        return self._stays_with(self._engine.registry.find_by_format_name(source), to)

    def _stays_with(self, queue: Queue | None, to: FormatName) -> bool:
        """Whether messages move there as they are: between a queue and its subqueues."""
        if _subqueue_of(to):
            return True
        if queue is None or queue.is_journal:
            return False
        return self._engine.registry.find_by_format_name(to) is queue.main

    @contextmanager
    def _source(self, identity: Identity, order: Order, wanted: Wanted) -> Iterator[Queue]:
        """The queue that messages are chosen from, open for what is wanted."""
        to_read = self._messages.opened_to_read(identity, order.source, wanted.access)
        with ExitStack() as opened:
            with refusals(identity, wanted.doing.action, str(order.source)):
                _, queue = opened.enter_context(to_read)
            yield queue

    # Keeping

    def _keep(self, order: Order) -> Order:
        now = order.touched = self._engine.clock.monotonic()
        for each in [each for each in self._orders.values() if now - each.touched > LIFE]:
            self._forget(each)
        own = [each for each in self._orders.values() if each.owner == order.owner]
        for each in own[: max(0, len(own) + 1 - ORDERS_OF_ACCOUNT)]:
            self._forget(each)
        room = MOST_CHOSEN_IN_ALL - order.chosen
        while self._orders and sum(each.chosen for each in self._orders.values()) > room:
            self._forget(next(iter(self._orders.values())))
        self._orders[order.identifier] = order
        return order

    def _forget(self, order: Order) -> None:
        del self._orders[order.identifier]
        if order.step and not order.ended:
            order.stopped = True
            self._tell_of_end(order.owner, order)

    def _tell_of_end(self, who: str, order: Order) -> None:
        """Log the result of an order in several groups, whose one line was written before."""
        if order.step > 1 and order.wanted is not None:
            _log.info(
                "an order has ended",
                who=who,
                action=order.wanted.doing.action,
                object=str(order.source),
                messages=order.done,
                gone=order.gone,
                staying=order.staying.total(),
                left=order.left,
                always=True,
            )


async def _given(order: Order) -> Order:
    return order


def _add(order: Order, outcome: Outcome) -> None:
    """Count the result of a group."""
    order.at += outcome.looked_at
    order.done += outcome.done
    order.gone += outcome.gone
    order.staying.update(outcome.staying)
    if outcome.hopeless is not None:
        order.staying[outcome.hopeless] += order.left
        order.at = order.chosen


def _subqueue_of(name: FormatName) -> bool:
    """Whether a name is that of a subqueue, or of a queue of the system."""
    if name.is_http or not isinstance(name.value, str):
        return False
    try:
        path: PathName = name.path_name
    except MQError:
        return False
    return bool(path.suffix)
