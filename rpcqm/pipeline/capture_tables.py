"""The tables that are made of captures: their columns, and the rows of `pdus`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from rpcqm.capture.analysis import Analysis
from rpcqm.capture.arrow_schema import arrow_schema
from rpcqm.capture.conversation.pdu_stream import CapturedPdu, pdu_type_name
from rpcqm.capture.conversation.rpc import RpcConversation
from rpcqm.capture.export import COLUMNS, Row
from rpcqm.capture.file.flow import Flow
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import CaptureError, read_records
from rpcqm.capture.unsealing.accounts import read_accounts

CALLS = f"file string, {COLUMNS}, record long"
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
BATCH = 5_000
"""Rows of one Arrow batch: enough that a batch costs little, and few enough to be held."""
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


class PduRows(Analysis):
    """An analysis that makes a row of each PDU and keeps the rows until they are taken."""

    def __init__(self, file: str, accounts: Sequence[str]) -> None:
        super().__init__(lambda _: None, Problems(file), read_accounts(accounts))
        self.rows: list[Row] = []

    def follow(self, flow: Flow, rpc: RpcConversation) -> None:
        number = rpc.conversation.number
        rpc.from_client.watch(lambda pdu: self._pdu(flow, number, True, pdu))
        rpc.from_server.watch(lambda pdu: self._pdu(flow, number, False, pdu))

    def _pdu(self, flow: Flow, number: int, from_client: bool, pdu: CapturedPdu) -> None:
        self.rows.append(
            {
                "file": self.problems.file,
                "time": pdu.time // 1000,
                "conversation": number,
                "client": flow.client,
                "server": flow.server,
                "from_client": from_client,
                "type": pdu_type_name(pdu.kind),
                "flags": pdu.flags,
                "call_id": pdu.call_id,
                "size": pdu.end - pdu.begin,
                "auth_length": pdu.auth_length,
                "record": pdu.offset,
            }
        )

    def taken(self) -> list[Row]:
        """The rows that have been made since this was asked for."""
        rows, self.rows = self.rows, []
        return rows


def pdu_rows(file: str, accounts: Sequence[str]) -> Iterator[Row]:
    """A row for each PDU of a whole capture."""
    maker = PduRows(file, accounts)
    # The table of problems tells what cannot be read.
    with suppress(CaptureError, OSError):
        for record in read_records(Path(file), maker.problems):
            maker.feed(record)
            if maker.rows:
                yield from maker.taken()
        maker.finish()
    yield from maker.taken()


def batches(rows: Iterable[Mapping[str, object]], table: str) -> Iterator[pa.RecordBatch]:
    """Rows of one of the tables in batches; at least one batch, so that the columns are known."""
    yield from batches_of(rows, arrow_schema(SCHEMAS[table]))


def batches_of(rows: Iterable[Mapping[str, object]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    waiting: list[Mapping[str, object]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) >= BATCH:
            yield pa.RecordBatch.from_pylist(waiting, schema)
            waiting = []
    yield pa.RecordBatch.from_pylist(waiting, schema)
