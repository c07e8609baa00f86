"""The tables that are made of captures: their columns, and the rows of a file."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rpcqm.capture.analysis import Analysis, Exchange
from rpcqm.capture.conversation.call import Conversation
from rpcqm.capture.conversation.pdu_stream import pdu_type_name
from rpcqm.capture.conversation.rpc import RpcConversation
from rpcqm.capture.conversation.subjects import Subjects
from rpcqm.capture.export import row as call_row
from rpcqm.capture.file.problems import Problem, Problems
from rpcqm.capture.file.reading import CaptureError, read_records
from rpcqm.capture.file.record import Record
from rpcqm.capture.file.tcp import Flow
from rpcqm.capture.unsealing.accounts import read_accounts

CALLS = (
    "file string, time timestamp, client string, server string, protocol string, "
    "interface string, opnum int, name string, status long, status_name string, "
    "duration_ms double, sealed boolean, request string, response string, conversation long, "
    "queue string, message_ids array<string>, request_size long, response_size long, record long"
)
MESSAGES = (
    "file string, time timestamp, message_id string, queue string, client string, "
    "server string, protocol string, interface string, name string, status_name string, "
    "conversation long, record long"
)
FLOWS = (
    "file string, conversation long, started timestamp, client string, server string, "
    "protocol string, level int, account string, association_group long, calls long, sealed long"
)
PDUS = (
    "file string, time timestamp, conversation long, client string, server string, "
    "from_client boolean, type string, flags int, call_id long, size long, auth_length int, "
    "record long"
)
PACKETS = (
    "file string, offset long, time_ns long, link int, flow string, original long, data binary"
)
PROBLEMS = "file string, offset long, kind string, reason string"
CLAIMS = "file string, size long, modified long, first long, behind long"
SCHEMAS = {
    "calls": CALLS,
    "messages": MESSAGES,
    "flows": FLOWS,
    "pdus": PDUS,
    "packets": PACKETS,
    "problems": PROBLEMS,
    "claims": CLAIMS,
}
"""Each table's columns in Spark's notation; `packets` are the raw frames, `claims` where the
octets are that a reader took."""

Rows = Iterator[dict[str, Any]]


class TableMaker:
    """Feeds records to the analysis and keeps the rows of one table until they are taken."""

    def __init__(self, table: str, file: str, accounts: Sequence[str]) -> None:
        self.rows: list[dict[str, Any]] = []
        self.table = table
        self.file = file
        self._subjects = Subjects()
        self._conversations: list[Conversation] = []
        self._calls: Counter[int] = Counter()
        self._sealed: Counter[int] = Counter()
        self.problems = Problems(file, self._problem)
        found = read_accounts(accounts)
        make = _WatchedAnalysis if table == "pdus" else Analysis
        self.analysis = make(self._take, self.problems, found, self._conversations.append)
        if isinstance(self.analysis, _WatchedAnalysis):
            self.analysis.watch = self._pdu

    def _problem(self, problem: Problem) -> None:
        if self.table == "problems":
            self.rows.append(
                {
                    "file": problem.file,
                    "offset": problem.offset,
                    "kind": problem.kind,
                    "reason": problem.reason,
                }
            )

    def _take(self, exchange: Exchange) -> None:
        number = exchange.conversation.number
        self._calls[number] += 1
        self._sealed[number] += exchange.sealed
        if self.table == "calls":
            found = call_row(exchange, self._subjects.queue(exchange))
            self.rows.append(found | {"file": self.file, "record": exchange.offset})
        elif self.table == "messages":
            self.rows.extend(self._messages(exchange))

    def _messages(self, exchange: Exchange) -> Rows:
        found = call_row(exchange, self._subjects.queue(exchange))
        return message_rows(found | {"file": self.file, "record": exchange.offset})

    def _pdu(
        self, flow: Flow, number: int, from_client: bool, kind: int, parts: tuple[int, ...]
    ) -> None:
        size, flags, auth_length, call_id, time, offset = parts
        self.rows.append(
            {
                "file": self.file,
                "time": time // 1000,
                "conversation": number,
                "client": flow.client,
                "server": flow.server,
                "from_client": from_client,
                "type": pdu_type_name(kind),
                "flags": flags,
                "call_id": call_id,
                "size": size,
                "auth_length": auth_length,
                "record": offset,
            }
        )

    def finish(self) -> None:
        """The records are over."""
        self.analysis.finish()
        if self.table == "flows":
            self.rows.extend(self._flow(each) for each in self._conversations)

    def _flow(self, each: Conversation) -> dict[str, Any]:
        return flow_row(self.file, each, self._calls[each.number], self._sealed[each.number])


_OF_CALLS = (
    *("file", "time", "queue", "client", "server", "protocol", "interface", "name"),
    *("status_name", "conversation", "record"),
)


def message_rows(call: dict[str, Any]) -> Rows:
    """A row for each message that a call carries, made of the call's row."""
    kept = {name: call[name] for name in _OF_CALLS}
    for identifier in call["message_ids"]:
        yield kept | {"message_id": identifier}


def flow_row(file: str, each: Conversation, calls: int, sealed: int) -> dict[str, Any]:
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


class _WatchedAnalysis(Analysis):
    """An analysis that tells of each PDU."""

    watch: Callable[[Flow, int, bool, int, tuple[int, ...]], None]

    def follow(self, flow: Flow, rpc: RpcConversation) -> None:
        number = rpc.conversation.number
        rpc.from_client.watch(lambda kind, parts: self.watch(flow, number, True, kind, parts))
        rpc.from_server.watch(lambda kind, parts: self.watch(flow, number, False, kind, parts))


def file_rows(
    table: str, file: str, accounts: Sequence[str], records: Iterator[Record] | None = None
) -> Rows:
    """The rows of a whole capture; what cannot be read at all is a row of `problems`."""
    maker = TableMaker(table, file, accounts)
    try:
        if records is None:
            records = read_records(Path(file), maker.problems)
        for record in records:
            maker.analysis.feed(record)
            if maker.rows:
                yield from _taken(maker)
        maker.finish()
    except (CaptureError, OSError) as error:
        maker.problems.add("unreadable", 0, str(error))
    yield from _taken(maker)


def _taken(maker: TableMaker) -> Rows:
    rows, maker.rows = maker.rows, []
    yield from rows
