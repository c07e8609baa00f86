"""Plays what was posted over a captured connection of [MC-MQSRM], and compares the answers.

A request is posted when its client had the answers that it had then; what it holds is made anew by
`srmp_rewriting`. Requests over one captured connection go over one live connection.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import cast

from rpcqm.capture.analysis import Exchange
from rpcqm.capture.conversation.call import Conversation
from rpcqm.capture.conversation.http import HttpConversation, HttpMessage
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.replay.mapping import Mapping
from rpcqm.capture.replay.outcome import DIFFERENT, SAME, Outcome, Server
from rpcqm.capture.replay.policy import Comparison, Difference
from rpcqm.capture.replay.srmp_rewriting import SrmpRewriter

PATIENCE_SECONDS = 10.0
"""How much longer than in the capture a server may take: its disk may be slower."""
_SECOND = 1_000_000_000
_NOT_CAPTURED = "the answer was not captured"


class _Wire(asyncio.Protocol):
    """A live connection: its octets go to the player while it is the player's."""

    def __init__(self, player: "SrmpPlayer") -> None:
        self.lost = False
        self.http = HttpConversation(lambda _: True, player.told, lambda offset, reason: None)
        self._player = player

    def data_received(self, data: bytes) -> None:
        self.http.from_server.take(data, time.time_ns(), 0)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self.http.finish()
        self._player.changed.set()


class SrmpPlayer:
    """One captured connection played against a server; `reason` says why it is not played."""

    def __init__(
        self,
        conversation: Conversation,
        exchanges: Iterable[SrmpExchange],
        server: Server,
        mapping: Mapping,
    ) -> None:
        self.conversation = conversation
        self.outcomes = [Outcome(each) for each in exchanges]
        self.reason = ""
        self.changed = asyncio.Event()
        self.statuses: dict[int, str] = {}
        self._server = server
        self._rewriter = SrmpRewriter(mapping, server.address, server.http_port)
        self._asked: deque[tuple[Outcome, float]] = deque()
        self._wire: _Wire | None = None
        self._transport: asyncio.Transport | None = None

    async def play(self, outcome: Outcome) -> None:
        """Post what the client posted; OSError if nobody listens."""
        exchange = cast(SrmpExchange, outcome.call)
        outcome.reason = self.reason or _unplayable(exchange)
        if outcome.reason:
            return
        await self.caught_up(exchange.time)
        later = (time.time_ns() - exchange.time) // _SECOND
        octets = self._rewriter.request(exchange, later)
        wire, transport = await self._connected()
        self._asked.append((outcome, time.perf_counter()))
        wire.http.from_client.take(octets, time.time_ns(), 0)
        transport.write(octets)

    async def _connected(self) -> tuple[_Wire, asyncio.Transport]:
        """The live connection; another one if a server has closed it."""
        wire, transport = self._wire, self._transport
        if wire is None or transport is None or wire.lost or transport.is_closing():
            loop = asyncio.get_running_loop()
            host, port = self._server.host, self._server.http_port
            transport, wire = await loop.create_connection(lambda: _Wire(self), host, port)
            self._wire, self._transport = wire, transport
        return wire, transport

    def told(self, request: HttpMessage, answer: HttpMessage | None) -> None:
        """The next request is answered, or the connection ended before it was."""
        outcome, began = self._asked.popleft()
        if answer is not None:
            outcome.duration_ms = (time.perf_counter() - began) * 1000
            self.statuses[id(outcome)] = f"{answer.status} {answer.first[2]}".rstrip()
        self.changed.set()

    async def caught_up(self, moment: int | None) -> None:
        """Wait for the answers that the client had by a moment; for all if it is None."""
        patience = PATIENCE_SECONDS + self._longest()
        # What has not come by then is found by the comparison.
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while any(_answered_by(each, moment) for each, _ in self._asked):
                    self.changed.clear()
                    await self.changed.wait()

    def _longest(self) -> float:
        return max((each.call.duration_ms or 0.0) / 1000 for each in self.outcomes)

    @property
    def in_flight(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._asked)

    def closed(self, reason: str) -> None:
        """It could not be played; the comparison tells what is missing."""

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def compare(self, comparison: Comparison) -> list[Outcome]:
        """Judge the answers by their status."""
        for outcome in self.outcomes:
            if outcome.reason:
                continue
            exchange = cast(SrmpExchange, outcome.call)
            if exchange.status is None:
                comparison.ignore(_NOT_CAPTURED)
            else:
                outcome.differences = list(self._differences(outcome, exchange))
            outcome.verdict = DIFFERENT if outcome.differences else SAME
        return self.outcomes

    def _differences(self, outcome: Outcome, exchange: SrmpExchange) -> Iterator[Difference]:
        live = self.statuses.get(id(outcome), "no answer")
        if live.partition(" ")[0] != str(exchange.status):
            yield Difference(f"{exchange.name}.status", exchange.status_name, live, "exact")


def _answered_by(outcome: Outcome, moment: int | None) -> bool:
    exchange = cast(SrmpExchange, outcome.call)
    return bool(exchange.ended) and (moment is None or exchange.ended <= moment)


def _unplayable(exchange: SrmpExchange) -> str:
    """Why a request cannot be posted again; empty if it can."""
    asked = exchange.asked
    if not asked.whole:
        return asked.note
    if asked.values("transfer-encoding") and asked.values("content-length"):
        return asked.note or "its length is told twice"
    return ""


def posts_of(exchanges: Iterable[Exchange], server: Server, mapping: Mapping) -> list[SrmpPlayer]:
    """A player for each connection; those to another server are not played.

    A capture of one queue manager's traffic also has what it posted itself. The server is who
    answered most requests, at an address that serves RPC if there is any.
    """
    found: dict[int, list[SrmpExchange]] = {}
    hosts = set()
    for each in exchanges:
        if isinstance(each, SrmpExchange):
            found.setdefault(each.conversation.number, []).append(each)
        else:
            hosts.add(_host(each.conversation))
    players = [
        SrmpPlayer(posts[0].conversation, posts, server, mapping) for posts in found.values()
    ]
    votes: Counter[str] = Counter()
    for player in players:
        votes[_host(player.conversation)] += len(player.outcomes)
    known = Counter({host: votes[host] for host in hosts & votes.keys()}) or votes
    for player in players:
        if _host(player.conversation) != known.most_common(1)[0][0]:
            player.reason = "it was posted to another server"
    return players


def _host(conversation: Conversation) -> str:
    return conversation.server.rpartition(":")[0]
