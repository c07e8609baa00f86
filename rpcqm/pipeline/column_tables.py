"""The tables of a capture as Arrow batches, made in columns where that is possible."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from rpcqm.capture.analysis import Exchange
from rpcqm.capture.arrow_schema import arrow_schema
from rpcqm.capture.columnar.analysis import ColumnarAnalysis, Single
from rpcqm.capture.columnar.batch import CallBatch
from rpcqm.capture.columnar.call_queues import QueueTracker
from rpcqm.capture.columnar.record_batch import Piece
from rpcqm.capture.columnar.rows import MESSAGE_COLUMNS, Columns, call_columns, message_columns
from rpcqm.capture.columnar.same_shape import SameShapeCalls
from rpcqm.capture.columnar.texts import Text
from rpcqm.capture.conversation.call import Conversation
from rpcqm.capture.export import Row
from rpcqm.capture.export import row as call_row
from rpcqm.capture.file.problems import Problem, Problems
from rpcqm.capture.file.reading import CaptureError
from rpcqm.capture.unsealing.accounts import read_accounts
from rpcqm.pipeline.capture_tables import SCHEMAS
from rpcqm.pipeline.coverage import ClaimRow, claim_rows
from rpcqm.pipeline.splitting import RangeReading, splits

Rows = tuple[str, pa.RecordBatch]
"""The name of a table, and rows of it."""

TABLES = frozenset({"calls", "messages", "flows", "problems", "claims"})
"""The tables that are made in columns."""

_SCHEMAS = {name: arrow_schema(SCHEMAS[name]) for name in TABLES}


class ColumnTables:
    """Feeds a capture to the analysis and makes the rows of those tables that are wanted.

    A capture that is read in `parts` by flow has the conversation numbers of part `part` in
    steps, so that each is there once.
    """

    def __init__(
        self,
        file: str,
        accounts: Sequence[str],
        wanted: Iterable[str],
        part: int = 0,
        parts: int = 1,
    ) -> None:
        self.file = file
        self.problems = Problems(file, self._problem)
        self._wanted = frozenset(wanted)
        self._ready: list[Rows] = []
        self._part, self._parts = part, parts
        self._teller = QueueTracker()
        self._conversations: list[Conversation] = []
        self._calls: dict[int, int] = {}
        self._sealed: dict[int, int] = {}
        self._told: list[Problem] = []
        self._claimed: list[ClaimRow] = []
        found = read_accounts(accounts)
        self.analysis = ColumnarAnalysis(self._found, self.problems, found, self._opened)

    def _opened(self, conversation: Conversation) -> None:
        conversation.number = (conversation.number - 1) * self._parts + self._part + 1
        self._conversations.append(conversation)

    def _problem(self, problem: Problem) -> None:
        self._told.append(problem)

    def claim(self, rows: Iterable[ClaimRow]) -> None:
        """Keep the octets that a reader of the capture took, as rows of `claims`."""
        self._claimed += rows

    def read(self, pieces: Iterable[Piece]) -> Iterator[Rows]:
        """Take the whole capture; a file that cannot be read becomes a row of `problems`."""
        try:
            for piece in pieces:
                self.analysis.feed_piece(piece)
                yield from self._taken()
            self.analysis.finish()
        except (CaptureError, OSError) as error:
            self.problems.add("unreadable", 0, str(error))
        self._rows("flows", (self._flow(each) for each in self._conversations))
        self._rows("claims", self._claimed)
        self._rows("problems", (_problem_row(each) for each in self._told))
        yield from self._taken()

    def _taken(self) -> Iterator[Rows]:
        ready, self._ready = self._ready, []
        return iter(ready)

    def _flow(self, each: Conversation) -> Row:
        calls, sealed = self._calls.get(each.number, 0), self._sealed.get(each.number, 0)
        return _flow_row(self.file, each, calls, sealed)

    def _rows(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        if table in self._wanted:
            made = pa.RecordBatch.from_pylist(list(rows), _SCHEMAS[table])
            if len(made):
                self._ready.append((table, made))

    def _found(self, singles: list[Single], batch: CallBatch | None) -> None:
        if batch is not None:
            self._count(batch)
        for _, exchange in singles:
            number = exchange.conversation.number
            self._calls[number] = self._calls.get(number, 0) + 1
            self._sealed[number] = self._sealed.get(number, 0) + exchange.sealed
        if not self._wanted & {"calls", "messages"}:
            return
        told = self._teller.tell(singles, batch)
        for group, queues in told.groups:
            self._group(group, queues)
        self._alone([(exchange, queue) for _, exchange, queue in told.singles])

    def _count(self, batch: CallBatch) -> None:
        counts = np.bincount(batch.conversation, minlength=len(batch.conversations)).tolist()
        for conversation, count in zip(batch.conversations, counts, strict=True):
            number = conversation.number
            self._calls[number] = self._calls.get(number, 0) + count

    def _group(self, group: SameShapeCalls, queues: Text) -> None:
        columns = call_columns(group, queues)
        columns["file"] = pa.repeat(pa.scalar(self.file), len(group.rows))
        if "calls" in self._wanted:
            self._ready.append(("calls", _batch("calls", columns)))
        if "messages" in self._wanted:
            messages = message_columns(columns)
            if len(messages["message_id"]):
                self._ready.append(("messages", _batch("messages", messages)))

    def _alone(self, exchanges: list[tuple[Exchange, str]]) -> None:
        more = {"file": self.file}
        rows = [call_row(e, queue) | more | {"record": e.offset} for e, queue in exchanges]
        if rows:
            self._rows("calls", rows)
            self._rows("messages", (message for row in rows for message in _message_rows(row)))


def _batch(table: str, columns: Columns) -> pa.RecordBatch:
    schema = _SCHEMAS[table]
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _problem_row(problem: Problem) -> Row:
    return {
        "file": problem.file,
        "offset": problem.offset,
        "kind": problem.kind,
        "reason": problem.reason,
    }


def _message_rows(call: Row) -> Iterator[Row]:
    """A row for each message that a call carries, made of the call's row."""
    kept = {name: call[name] for name in MESSAGE_COLUMNS}
    identifiers = call["message_ids"]
    assert isinstance(identifiers, list)
    for identifier in identifiers:
        yield kept | {"message_id": identifier}


def _flow_row(file: str, each: Conversation, calls: int, sealed: int) -> Row:
    """The row of a conversation."""
    return {
        "file": file,
        "conversation": each.number,
        "started": each.started // 1000,
        "client": each.client,
        "server": each.server,
        "protocol": each.protocol,
        "level": each.level,
        "account": each.account,
        "association_group": each.group,
        "calls": calls,
        "sealed": sealed,
    }


def file_tables(wanted: Iterable[str], file: str, accounts: Sequence[str]) -> Iterator[Rows]:
    """The rows of a whole capture."""
    tables = ColumnTables(file, accounts, wanted)
    (split,) = splits(Path(file), sys.maxsize)
    reading = RangeReading(split, tables.problems)

    def pieces() -> Iterator[Piece]:
        try:
            yield from reading
        finally:
            tables.claim(claim_rows(reading.claim))

    return tables.read(pieces())


def file_batches(table: str, file: str, accounts: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a whole capture in one of `TABLES`; at least one batch."""
    yield pa.RecordBatch.from_pylist([], _SCHEMAS[table])
    for _, batch in file_tables({table}, file, accounts):
        yield batch
