"""Searching for messages: in one queue, or in all that the caller may peek.

An answer is a page: it ends when it is full, or when enough was looked at, and says behind which
message the next one goes on. Nothing of a search is kept between two pages.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.text import cut
from rpcqm.codec.filters.matching import Matcher, Verdict
from rpcqm.codec.filters.written import Surroundings, read_filter
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import SEQUENTIAL_MASK
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.accounts import AccountKeeper
from rpcqm.operations.decoding import LongDecoding
from rpcqm.operations.messages import PAGE_BYTES, Measure, MessageOperations
from rpcqm.operations.pacing import Pace
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.leases import packet_size, require_logon
from rpcqm.qm.message_scan import Candidate, Piece, look_through

LOOKED_AT_ONCE = 20_000
"""Messages that a page of a search looks at, and queues that it passes by.

Bound `search.looked_at` [messages]: the others are looked at for the next page.
"""
READ_ONCE = 64 << 20
"""Octets of packets that a page of a search reads.

The last packet may be beyond it.

Bound `search.octets` [octets]: the others are looked at for the next page.
"""
MOST_SEARCHES = 32
"""Pages of searches that are made at a time.

Bound `search.at_once` [searches]: the search is refused with MQ_ERROR_INSUFFICIENT_RESOURCES.
"""
SEARCHES_OF_ACCOUNT = 8
"""Those of one account.

Bound `search.of_account` [searches]: the search is refused with MQ_ERROR_INSUFFICIENT_RESOURCES.
"""
NAMED_UNREAD = 10
"""Messages that could not be read whole, of which a page says which they are."""
READ_IN_TURN = 32 * 1024
"""Octets of bodies that are read for decisions before others are served.

A body with more, and whatever a regular expression is looked for in, is read beside the loop.
"""
PASSED_AT_ONCE = 512
"""Queues that are passed by before others are served."""
_PLACE = re.compile(r"(\d{1,18})-(\d{1,20})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Behind:
    """Where a search goes on: behind a message of a queue, or with its first one.

    `queue` is the number of the queue, which no other one gets.
    """

    queue: int
    key: int | None = None

    def __str__(self) -> str:
        return f"{self.queue}-{'' if self.key is None else self.key}"

    @classmethod
    def read(cls, text: str) -> "Behind":
        """Read what `str` has written; raises MQError(MQ_ERROR_INVALID_PARAMETER)."""
        found = _PLACE.fullmatch(text)
        if found is None or (found[2] and int(found[2]) >= 1 << 64):
            sentence = f"`{cut(text)}` is not where a search goes on: give `next` of the last page"
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, sentence)
        return cls(int(found[1]), int(found[2]) if found[2] else None)


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for, and how much of it a page has.

    `measure` gives how many octets of an answer a message takes, once for each that is found in its
    order, and `room` how many an answer has. A page looks at `looked_at` messages at most. `still`
    says whether the caller may still log on.
    """

    matcher: Matcher
    limit: int = 100
    measure: Measure = packet_size
    still: Callable[[], bool] = lambda: True
    room: int = PAGE_BYTES
    looked_at: int = LOOKED_AT_ONCE


@dataclass(slots=True)
class SearchPage:
    """What was found, and how many messages were looked at for it.

    `unread` counts those that may match, but were not read whole; the first ones are there.
    `next` is where the next page goes on; None at the end.
    """

    messages: list[Message] = field(default_factory=list)
    looked_at: int = 0
    octets: int = 0
    unread: int = 0
    unread_first: list[Message] = field(default_factory=list)
    next: Behind | None = None


@dataclass(slots=True)
class Chosen:
    """Lookup identifiers of messages that match, of up to `most`; `more` says if there are more.

    `newest` is the greatest number that they may have: others have come later. `unread` counts
    those that may match, but were not read whole. `after` is the last one that was looked at.
    """

    newest: int
    most: int
    after: int | None = None
    keys: list[int] = field(default_factory=list)
    unread: int = 0
    more: bool = False

    def add(self, piece: Piece, verdicts: list[Verdict]) -> None:
        """Add those of a piece that match."""
        for each, verdict in zip(piece.found, verdicts, strict=True):
            key = each.message.lookup_identifier
            if key & SEQUENTIAL_MASK > self.newest:
                continue
            if verdict is Verdict.YES and len(self.keys) == self.most:
                self.more = True
                return
            self.after = key
            self.unread += verdict is Verdict.UNREAD
            if verdict is Verdict.YES:
                self.keys.append(key)
        self.after = self.after if piece.last is None else piece.last


class SearchOperations:
    """An account searches queues at which it may peek; administrators need that right, too."""

    def __init__(
        self, engine: QueueManagerEngine, messages: MessageOperations, accounts: AccountKeeper
    ) -> None:
        self._engine, self._messages, self._accounts = engine, messages, accounts
        self._running: list[str] = []
        self._reading = LongDecoding()
        self.pace = Pace(engine.store.metrics)

    def matcher(
        self, identity: Identity, conditions: Mapping[str, str], local: bool = False
    ) -> Matcher:
        """What compares messages with conditions; raises MQError with a sentence for wrong ones.

        Administrators may name senders by any account, others by their own. Times without a zone
        are local ones if `local` says so.
        """
        named = partial(self._sid_named, identity)
        surroundings = Surroundings(self._engine.clock.now(), named, local)
        return Matcher(read_filter(conditions, surroundings))

    def _sid_named(self, identity: Identity, name: str) -> Sid | None:
        known = {identity.name.casefold(): identity.sid}
        if identity.may_look:
            known |= {each.name.casefold(): each.sid for each in self._accounts.list()}
        sid = known.get(name.casefold())
        return None if sid is None else Sid.parse(sid)

    async def search(
        self, identity: Identity, name: FormatName, wanted: Search, after: int | None = None
    ) -> SearchPage:
        """A page of the messages of a queue that match, behind that of `after`.

        Raises MQError as peeking does, QUEUE_DELETED if the queue is deleted meanwhile, and
        INSUFFICIENT_RESOURCES for too many searches at a time.
        """
        page = _Page(wanted)
        with self._one_more(identity), self._peeked(identity, name) as (opened, queue):
            await self._look(identity, queue, page, after)
            if opened.queue_reference is None:
                raise MQError(HResult.MQ_ERROR_QUEUE_DELETED)
        require_logon(wanted.still)
        return page.told

    async def search_all(
        self, identity: Identity, wanted: Search, after: Behind | None = None
    ) -> SearchPage:
        """The same for all queues that the caller may peek, journals and subqueues among them."""
        page = _Page(wanted)
        with self._one_more(identity):
            await self._look_everywhere(identity, page, after)
        require_logon(wanted.still)
        return page.told

    async def choose(
        self, identity: Identity, name: FormatName, matcher: Matcher, chosen: "Chosen"
    ) -> None:
        """Choose the messages of a queue that match; raises MQError as `search` does."""
        with self._one_more(identity), self._peeked(identity, name) as (_, queue):
            while not queue.deleted and self._may_peek(identity, queue):
                piece = await self.pace.work(
                    partial(look_through, self._engine.store, queue, matcher, chosen.after)
                )
                chosen.add(piece, await self._verdicts(matcher, piece))
                if piece.last is None or chosen.more:
                    return

    def _peeked(
        self, identity: Identity, name: FormatName
    ) -> AbstractContextManager[tuple[OpenQueueDescriptor, Queue]]:
        return self._messages.opened_to_read(identity, name, QueueAccessType.PEEK_ACCESS)

    @contextmanager
    def _one_more(self, identity: Identity) -> Iterator[None]:
        own = self._running.count(identity.sid)
        if len(self._running) >= MOST_SEARCHES or own >= SEARCHES_OF_ACCOUNT:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many searches at a time")
        self._running.append(identity.sid)
        try:
            yield
        finally:
            self._running.remove(identity.sid)

    async def _look_everywhere(
        self, identity: Identity, page: "_Page", after: Behind | None
    ) -> None:
        """Look through queue after queue until the page ends; dead letters count as unseen.

        Whoever looks through a queue opens it to peek, which its descriptor may want audited.
        """
        queues, told = self._engine.queue_manager.queue_collection, page.told
        first = 0 if after is None else after.queue
        for number in sorted(each for each in queues if each >= first):
            if page.is_over:
                told.next = told.next or Behind(number)
                return
            page.passed += 1
            if page.passed % PASSED_AT_ONCE == 0:
                await self.pace.work(_nothing)
            queue = queues.get(number)
            if queue is not None and queue.message_count and self._may_peek(identity, queue):
                self._engine.access.check_open(queue, identity, QueueAccessType.PEEK_ACCESS)
                key = after.key if after is not None and number == after.queue else None
                await self._look(identity, queue, page, key)

    def _may_peek(self, identity: Identity, queue: Queue) -> bool:
        return self._engine.access.may_open(queue, identity, QueueAccessType.PEEK_ACCESS)

    async def _look(
        self, identity: Identity, queue: Queue, page: "_Page", after: int | None
    ) -> None:
        """Look through a queue until it ends, or the page does; the right is asked for again."""
        while not queue.deleted and self._may_peek(identity, queue):
            piece = await self.pace.work(
                partial(look_through, self._engine.store, queue, page.matcher, after)
            )
            page.told.octets += piece.octets
            last = page.take(piece, await self._verdicts(page.matcher, piece))
            if last is not None or (piece.last is not None and page.is_over):
                page.told.next = Behind(queue.queue_id, piece.last if last is None else last)
                return
            after = piece.last
            if after is None:
                return

    async def _verdicts(self, matcher: Matcher, piece: Piece) -> list[Verdict]:
        """What each comparison ends with, once the bodies have been read that decide."""
        decided: list[Verdict] = []
        for group in _groups(piece.found):
            read = partial(_read, matcher, group)
            if matcher.wanted.regex is None and _octets_to_read(group) <= READ_IN_TURN:
                decided += await self.pace.work(read)
            else:
                decided += await self._reading.run(read)
        return decided


def _nothing() -> None:
    """What there is to do at a queue that is passed by."""


def _octets_to_read(group: list[Candidate]) -> int:
    return sum(each.message.attributes.body_size for each in group if each.verdict is Verdict.READ)


def _groups(found: list[Candidate]) -> Iterator[list[Candidate]]:
    """Candidates in groups with no more to read than READ_IN_TURN, or with one only."""
    group: list[Candidate] = []
    for each in found:
        if group and _octets_to_read([*group, each]) > READ_IN_TURN:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _read(matcher: Matcher, group: list[Candidate]) -> list[Verdict]:
    return [
        _read_one(matcher, each.message) if each.verdict is Verdict.READ else each.verdict
        for each in group
    ]


def _read_one(matcher: Matcher, message: Message) -> Verdict:
    try:
        return matcher.read_body(message.attributes)
    except DecodeError:  # it is damaged, so that it says nothing
        return Verdict.NO


class _Page:
    """A page that is being made."""

    def __init__(self, wanted: Search) -> None:
        self.matcher, self._limit, self._measure = wanted.matcher, wanted.limit, wanted.measure
        self._room, self._looked_at = wanted.room, min(wanted.looked_at, LOOKED_AT_ONCE)
        self.told = SearchPage()
        self.passed = 0

    @property
    def is_over(self) -> bool:
        """Whether it is full, or enough was looked at for it."""
        looked_at = max(self.told.looked_at, self.passed)
        return self._is_full or looked_at >= self._looked_at or self.told.octets >= READ_ONCE

    @property
    def _is_full(self) -> bool:
        return len(self.told.messages) >= self._limit or self._room <= 0

    def take(self, piece: Piece, verdicts: list[Verdict]) -> int | None:
        """Put on it what matches; the lookup identifier of the last one if it is full then."""
        before = self.told.looked_at
        for each, verdict in zip(piece.found, verdicts, strict=True):
            self._add(each.message, verdict)
            if self._is_full:
                self.told.looked_at = before + each.number
                return each.message.lookup_identifier
        self.told.looked_at = before + piece.looked_at
        return None

    def _add(self, message: Message, verdict: Verdict) -> None:
        if verdict is Verdict.YES:
            self._room -= self._measure(message)
            self.told.messages.append(message)
        elif verdict is Verdict.UNREAD:
            self.told.unread += 1
            if len(self.told.unread_first) < NAMED_UNREAD:
                self.told.unread_first.append(message)
