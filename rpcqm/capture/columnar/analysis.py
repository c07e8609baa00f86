"""The analysis of a capture in batches of records: calls of regular traffic come out in columns.

What is not regular (handshakes, binds, fragments, security, gaps, retransmissions) goes record
by record through the ordinary analysis. Both keep one state, that of the ordinary analysis, so
that a connection may change from one to the other at any record.
"""

import heapq
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rpcqm.capture.analysis import Analysis, Exchange
from rpcqm.capture.columnar.batch import HEADER, CallBatch
from rpcqm.capture.columnar.consecutive import ConsecutiveSegments, find_consecutive
from rpcqm.capture.columnar.record_batch import Array, Piece, RecordBatch, read_pieces
from rpcqm.capture.columnar.segments import MASK, Segments, segments
from rpcqm.capture.conversation.call import Conversation
from rpcqm.capture.conversation.interfaces import Context
from rpcqm.capture.conversation.pdu_stream import PduStream
from rpcqm.capture.conversation.rpc import RpcConversation
from rpcqm.capture.file.flow import Flow, FlowDirection, reversed_key
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.unsealing.accounts import UnsealingAccount

Single = tuple[int, Exchange]
"""An exchange of its own, and the index of the record that completed it."""
Take = Callable[[list[Single], CallBatch | None], None]

_HALF = 1 << 31
"""Sequence numbers wrap: less than half of them ahead is ahead, anything else is behind."""
_MAPPER = "ept"
_MOST_OPEN = 256
"""With more calls open at once it is not worth looking for each of them."""


class ColumnarAnalysis(Analysis):
    """Takes batches and single records, hands on batches of calls and single exchanges.

    `take` gets, for each batch, the exchanges that came one by one and the batch of all others;
    merged by their indices they are in the order in which the ordinary analysis has them.
    """

    def __init__(
        self,
        take: Take,
        problems: Problems,
        accounts: Sequence[UnsealingAccount] = (),
        opened: Callable[[Conversation], None] | None = None,
    ) -> None:
        super().__init__(self._single, problems, accounts, opened)
        self._take = take
        self._index = 0
        self._singles: list[Single] = []
        self._conversations: dict[Flow, RpcConversation] = {}

    def _single(self, exchange: Exchange) -> None:
        self._singles.append((self._index, exchange))

    def follow(self, flow: Flow, rpc: RpcConversation) -> None:
        self._conversations[flow] = rpc

        def finished() -> None:
            del self._conversations[flow]
            rpc.finish()

        flow.finished = finished

    def feed_piece(self, piece: Piece) -> None:
        """Take a batch of records, or one record, as `read_pieces` gives them."""
        if isinstance(piece, RecordBatch):
            batch = _BatchAnalysis(self, piece).play()
        else:
            batch = None
            self.tcp.feed(piece)
        self._hand_on(batch)

    def finish(self) -> None:
        super().finish()
        self._hand_on(None)

    def _hand_on(self, batch: CallBatch | None) -> None:
        if self._singles or batch is not None:
            singles, self._singles = self._singles, []
            self._take(singles, batch)

    def feed_at(self, index: int, records: RecordBatch) -> None:
        """Take one record of a batch by itself."""
        self._index = index
        self.tcp.feed(records.record(index))

    def pass_to(self, index: int, stream: PduStream, data: bytes, records: RecordBatch) -> None:
        """Give one side of a connection the octets of a record that come next."""
        self._index = index
        stream.take(data, int(records.time[index]), int(records.offset[index]))

    def connection(self, client: bytes) -> tuple[FlowDirection, RpcConversation] | None:
        """The connection with this key of its client; None if it is not known."""
        direction = self.tcp.direction(client)
        if direction is None or direction.flow.forward is not direction:
            return None
        rpc = self._conversations.get(direction.flow)
        return (direction, rpc) if rpc is not None else None


class _BatchAnalysis:
    """Analyses one batch: single records and consecutive segments, each in its turn."""

    def __init__(self, analysis: ColumnarAnalysis, records: RecordBatch) -> None:
        self._analysis = analysis
        self._records = records
        self._segments: Segments | None = segments(records) if len(records) else None
        self._runs = find_consecutive(self._segments) if self._segments is not None else None
        self._taken: list[tuple[int, RpcConversation]] = []

    def play(self) -> CallBatch | None:
        """Feed the whole record batch; returns the calls of its runs."""
        found, runs, records = self._segments, self._runs, self._records
        if found is None or runs is None:
            alone = ~found.idle if found is not None else np.ones(len(records), bool)
            for index in np.flatnonzero(alone).tolist():
                self._analysis.feed_at(index, records)
            return None
        alone = ~found.idle
        alone[runs.place] = False
        self._analysis.tcp.packets += len(records) - int(alone.sum())
        self._play(np.flatnonzero(alone).tolist(), runs, found)
        return self._batch(runs, found) if self._taken else None

    def _play(self, alone: list[int], runs: ConsecutiveSegments, found: Segments) -> None:
        begins = runs.place[runs.start]
        player = _ConsecutiveAnalysis(self._analysis, self._records, runs, found)
        # A sorted list is a heap.
        waiting = alone
        for number in np.argsort(begins, kind="stable").tolist():
            self._feed(waiting, int(begins[number]))
            rpc = player.play(number)
            if rpc is not None:
                self._taken.append((number, rpc))
                continue
            for index in runs.place[runs.start[number] : runs.stop[number]].tolist():
                heapq.heappush(waiting, index)
        self._feed(waiting, len(self._records))

    def _feed(self, waiting: list[int], before: int) -> None:
        """Feed the records one by one that come before another."""
        while waiting and waiting[0] < before:
            self._analysis.feed_at(heapq.heappop(waiting), self._records)

    def _batch(self, runs: ConsecutiveSegments, found: Segments) -> CallBatch:
        """The calls of the runs that were taken."""
        rank = np.full(len(runs.start), -1, np.int64)
        rank[[number for number, _ in self._taken]] = np.arange(len(self._taken))
        owner = rank[runs.run[runs.asked]]
        mine = owner >= 0
        asked, told = runs.place[runs.asked[mine]], runs.place[runs.told[mine]]
        order = np.argsort(told, kind="stable")
        return self._columns(found, asked[order], told[order], owner[mine][order])

    def _columns(self, found: Segments, asked: Array, told: Array, owner: Array) -> CallBatch:
        records = self._records
        contexts, context = self._contexts(owner, found.context[asked])
        fault = np.full(len(told), -1, np.int64)
        for row in np.flatnonzero(found.kind[told] == 3).tolist():
            at = int(found.payload[told[row]]) + HEADER
            fault[row] = int.from_bytes(records.buffer[at : at + 4], "little")
        return CallBatch(
            records.buffer,
            [rpc.conversation for _, rpc in self._taken],
            contexts,
            told,
            owner,
            context,
            found.call[asked],
            found.opnum[asked],
            records.time[asked],
            records.offset[asked],
            found.payload[asked] + HEADER,
            found.length[asked] - HEADER,
            records.time[told],
            records.offset[told],
            found.payload[told] + HEADER,
            np.where(fault < 0, found.length[told] - HEADER, 0),
            fault,
        )

    def _contexts(self, owner: Array, identifier: Array) -> tuple[list[Context], Array]:
        """The contexts of calls; connections that have agreed on the same share them."""
        both = owner << 16 | identifier
        pairs, where = np.unique(both, return_inverse=True)
        contexts: list[Context] = []
        numbers: dict[tuple[object, ...], int] = {}
        mapped = []
        for pair in pairs.tolist():
            context = self._taken[pair >> 16][1].contexts[pair & 0xFFFF]
            key = (context.uuid, context.version, context.syntax, context.accepted)
            if numbers.setdefault(key, len(contexts)) == len(contexts):
                contexts.append(context)
            mapped.append(numbers[key])
        return contexts, np.array(mapped, np.int64)[where]


class _ConsecutiveAnalysis:
    """Plays runs against the state of their connections."""

    def __init__(
        self,
        analysis: ColumnarAnalysis,
        records: RecordBatch,
        runs: ConsecutiveSegments,
        found: Segments,
    ) -> None:
        self._analysis = analysis
        self._records = records
        self._runs = runs
        self._found = found
        self._loose_from = np.searchsorted(runs.loose, runs.start).tolist()
        self._loose_to = np.searchsorted(runs.loose, runs.stop).tolist()
        self._unsure_from = np.searchsorted(runs.unsure, runs.start).tolist()
        self._unsure_to = np.searchsorted(runs.unsure, runs.stop).tolist()
        self._client, self._server = runs.client.tolist(), runs.server.tolist()
        self._bad = (runs.bad | self._hollow()).tolist()

    def _hollow(self) -> Array:
        """Runs in which more segments stand alone than are paired: columns gain nothing there."""
        loose = np.bincount(self._runs.run[self._runs.loose], minlength=len(self._runs.start))
        return loose * 2 > self._runs.stop - self._runs.start

    def play(self, number: int) -> RpcConversation | None:
        """Take a run at once; None if its records must be fed one by one."""
        start, stop = int(self._runs.start[number]), int(self._runs.stop[number])
        found = None if self._bad[number] else self._analysis.connection(self._key(number))
        if found is not None and self._fits(number, start, stop, *found):
            self._pass(number, start, stop, *found)
            return found[1]
        return None

    def _key(self, number: int) -> bytes:
        """The key of the client's direction."""
        client, keys = self._client[number], self._runs.keys
        return keys[client] if client >= 0 else reversed_key(keys[self._server[number]])

    def _fits(
        self, number: int, start: int, stop: int, client: FlowDirection, rpc: RpcConversation
    ) -> bool:
        """Whether nothing but whole calls in order follows from the connection's state."""
        server = client.peer
        waits = client.waiting or server.waiting or client.flow.ending
        if waits or not rpc.between_pdus:
            return False
        place, request = self._runs.place[start:stop], self._runs.request[start:stop]
        seq = self._found.seq[place]
        for side, mine in ((client, request), (server, ~request)):
            if side.next is None or (mine.any() and seq[mine.argmax()] != side.next):
                return False
        return (
            self._not_early(number, client, server)
            and self._known_contexts(place, rpc)
            and self._few_open(request, rpc)
            and self._answered_first(request, self._found.call[place], rpc)
        )

    def _not_early(self, number: int, client: FlowDirection, server: FlowDirection) -> bool:
        """Whether no segment acknowledges octets that the other side has not sent yet."""
        first, last = self._unsure_from[number], self._unsure_to[number]
        unsure = self._runs.unsure[first:last]
        expected = np.where(self._runs.request[unsure], server.next or 0, client.next or 0)
        ahead = (self._found.ack[self._runs.place[unsure]] - expected) & MASK
        return not ((ahead > 0) & (ahead < _HALF)).any()

    def _known_contexts(self, place: Array, rpc: RpcConversation) -> bool:
        identifiers = self._found.context[place]
        low, high = int(identifiers.min()), int(identifiers.max())
        every = [low] if low == high else np.unique(identifiers).tolist()
        known = [rpc.contexts.get(each) for each in every]
        # The endpoint mapper's answers tell the interfaces of other connections: these need them
        # before they are analysed.
        return all(each and each.uuid is not None and each.name != _MAPPER for each in known)

    @staticmethod
    def _few_open(request: Array, rpc: RpcConversation) -> bool:
        """Whether not too many calls are open at once; then none has to be given up either."""
        room = _MOST_OPEN - len(rpc.calls)
        return room >= 0 and int(np.cumsum(np.where(request, 1, -1)).max()) <= room

    @staticmethod
    def _answered_first(request: Array, call: Array, rpc: RpcConversation) -> bool:
        """Whether no request takes the identifier of a call that is still open."""
        return not any(
            len(where := np.flatnonzero(call == each)) and request[where[0]] for each in rpc.calls
        )

    def _pass(
        self, number: int, start: int, stop: int, client: FlowDirection, rpc: RpcConversation
    ) -> None:
        """Bring the connection behind the run, and feed its segments that pair with none in it."""
        runs, found = self._runs, self._found
        for position in runs.loose[self._loose_from[number] : self._loose_to[number]].tolist():
            self._take_alone(position, rpc)
        request, place = runs.request[start:stop], runs.place[start:stop]
        for side, mine in ((client, request), (client.peer, ~request)):
            if mine.any():
                last = place[len(mine) - 1 - int(mine[::-1].argmax())]
                side.next = int(found.seq[last] + found.length[last]) & MASK

    def _take_alone(self, position: int, rpc: RpcConversation) -> None:
        index = int(self._runs.place[position])
        begin = int(self._found.payload[index])
        data = self._records.buffer[begin : begin + int(self._found.length[index])]
        stream = rpc.from_client if self._runs.request[position] else rpc.from_server
        self._analysis.pass_to(index, stream, data, self._records)


def analyse_columns(
    path: Path,
    take: Take,
    problems: Problems,
    accounts: Sequence[UnsealingAccount] = (),
    opened: Callable[[Conversation], None] | None = None,
) -> ColumnarAnalysis:
    """Analyse a capture as `analyse` does, in columns where that is possible."""
    analysis = ColumnarAnalysis(take, problems, accounts, opened)
    for piece in read_pieces(path, problems):
        analysis.feed_piece(piece)
    analysis.finish()
    return analysis
