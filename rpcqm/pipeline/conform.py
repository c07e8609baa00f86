"""`conform`: what the recorded servers did, method by method, held against the specifications."""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpcqm.client.remote_read import RECEIVE_ACTIONS
from rpcqm.pipeline import jobs
from rpcqm.pipeline.html import Report

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

DISAGREEMENTS = (
    "time timestamp, server string, client string, interface string, name string, "
    "status_name string, rule string, file string, record long"
)
_DOCUMENTS = {
    "RemoteRead": "MQRR",
    "qmcomm": "MQMP",
    "qmcomm2": "MQMP-op-c2_",
    "qmmgmt": "MQMR",
    "qm2qm": "MQQP",
}
_NO_HANDLE = "00" * 20
_OPENS = frozenset({"R_OpenQueue", "R_OpenQueueForMove"})
_READS = frozenset({"R_StartReceive", "R_StartTransactionalReceive"})
_ENDS = frozenset({"R_EndReceive", "R_EndTransactionalReceive"})
_FAILURE = 0x80000000


def add(parser: argparse.ArgumentParser) -> None:
    """Add the job's options to a parser."""
    parser.add_argument("--input", metavar="DIR", required=True, help="what `ingest` has written")
    parser.add_argument("--output", metavar="DIR", required=True, help="where the report goes")


def work(spark: "SparkSession", arguments: argparse.Namespace, summary: jobs.Summary) -> None:
    """Write the tables `methods` and `disagreements`, and the report."""
    calls = jobs.required_table(spark, arguments.input, "calls").persist()
    summary.rows_in["calls"] = int(calls.count())
    methods, statuses = _methods(calls), _statuses(calls)
    wrong = _disagreements(calls).persist()
    output = Path(arguments.output)
    for name, frame in (("methods", methods), ("disagreements", wrong)):
        frame.write.mode("overwrite").parquet(str(output / name))
    summary.rows_out["methods"] = int(methods.count())
    summary.rows_out["disagreements"] = int(wrong.count())
    summary.rejected["sealed calls"] = int(calls.where("sealed").count())
    report = Report("Conformance of the recorded traffic")
    jobs.tell(report, summary, arguments.input)
    _report(report, output, methods, statuses, wrong)


def _methods(calls: "DataFrame") -> "DataFrame":
    """Calls, failures and percentiles of latency of each method, and the point it exercises."""
    from pyspark.sql import functions as f

    point = f.udf(conformance_point, "string", useArrow=False)
    return (
        calls.where("protocol = 'ncacn_ip_tcp'")
        .groupBy("interface", "opnum", "name")
        .agg(
            f.count("*").alias("calls"),
            f.sum(f.expr("cast(status >= 2147483648 as int)")).alias("failed"),
            f.sum(f.expr("cast(sealed as int)")).alias("sealed"),
            f.expr("round(percentile_approx(duration_ms, 0.5), 3)").alias("p50_ms"),
            f.expr("round(percentile_approx(duration_ms, 0.95), 3)").alias("p95_ms"),
            f.expr("round(percentile_approx(duration_ms, 0.99), 3)").alias("p99_ms"),
        )
        .withColumn("conformance_point", point("interface", "opnum"))
        .orderBy("interface", "opnum")
    )


def _statuses(calls: "DataFrame") -> "DataFrame":
    return calls.groupBy("interface", "name", "status_name").count().orderBy("interface", "name")


@cache
def _known_points() -> frozenset[str]:
    text = files("rpcqm").joinpath("conformance.csv").read_text("utf-8")
    return frozenset(line.partition(",")[0] for line in text.splitlines())


def conformance_point(interface: str, opnum: int | None) -> str | None:
    """The point of the conformance list that a method exercises."""
    prefix = _DOCUMENTS.get(interface)
    if prefix is None or opnum is None:
        return None
    point = f"{prefix}{opnum}" if prefix.endswith("_") else f"{prefix}-op-{opnum}"
    return point if point in _known_points() else None


# What the specifications say of a handle's, a cursor's or a read's state.


def _disagreements(calls: "DataFrame") -> "DataFrame":
    """Calls that were answered otherwise than the state that earlier calls left asks for."""
    kept = calls.where("interface = 'RemoteRead' and not sealed").repartition("server")
    ordered = kept.sortWithinPartitions("server", "time", "file", "record")
    return ordered.mapInArrow(_checked, DISAGREEMENTS)


def _checked(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    from rpcqm.capture.arrow_schema import arrow_schema
    from rpcqm.pipeline.capture_tables import batches_of

    return batches_of(_wrong(batches), arrow_schema(DISAGREEMENTS))


def _wrong(batches: "Iterator[pa.RecordBatch]") -> Iterator[dict[str, object]]:
    state, server = HandleStates(), None
    for batch in batches:
        for row in batch.to_pylist():
            if row["server"] != server:
                state, server = HandleStates(), row["server"]
            for rule in state.take(row):
                names = ("time", "server", "client", "interface", "name", "status_name")
                kept = {name: row[name] for name in (*names, "file", "record")}
                yield kept | {"rule": rule}


class HandleStates:
    """What one server's queue handles, cursors and reads are, from what it answered so far.

    `take` gives the rules that an answer breaks. Sources: [MS-MQRR] 3.1.4.3 (R_OpenQueue), 3.1.4.4
    (R_CloseQueue), 3.1.4.6 (R_CloseCursor), 3.1.4.9 (R_CancelReceive), 3.1.4.10 (R_EndReceive).
    """

    def __init__(self) -> None:
        self._closed: set[str] = set()
        self._cursors: set[tuple[str, int]] = set()
        self._closed_cursors: set[tuple[str, int]] = set()
        self._reads: set[tuple[str, int]] = set()
        self._ended: set[tuple[str, int]] = set()

    def take(self, row: dict[str, Any]) -> Iterator[str]:
        """The rules that a call's answer breaks."""
        if row["request"] is None or row["status"] is None:
            return
        request = json.loads(row["request"])
        response = json.loads(row["response"]) if row["response"] else {}
        failed = row["status"] >= _FAILURE or _is_fault(row)
        name = row["name"]
        handle = request.get("phContext") or request.get("pphContext") or ""
        if handle in self._closed and not _is_fault(row):
            yield "a handle that was closed is refused with a fault"
        if name in _OPENS and not failed and response.get("pphContext") == _NO_HANDLE:
            yield "an open that succeeds gives a handle"
        if name == "R_CloseQueue" and not failed:
            self._closed.add(handle)
            if response.get("pphContext") != _NO_HANDLE:
                yield "a close clears the handle"
        yield from self._cursor(name, handle, request, response, failed)
        yield from self._read(name, handle, request, response, failed)

    def _cursor(
        self, name: str, handle: str, request: Any, response: Any, failed: bool
    ) -> Iterator[str]:
        if name == "R_CreateCursor" and not failed:
            self._cursors.add((handle, response["phCursor"]))
            self._closed_cursors.discard((handle, response["phCursor"]))
        elif name == "R_CloseCursor":
            key = handle, request["hCursor"]
            if key in self._closed_cursors and not failed:
                yield "a cursor is closed once"
            if not failed:
                self._closed_cursors.add(key)

    def _read(
        self, name: str, handle: str, request: Any, response: Any, failed: bool
    ) -> Iterator[str]:
        key = handle, request.get("dwRequestId", 0)
        if name in _READS:
            sections = response.get("ppPacketSections")
            if not failed and not sections:
                yield "a read that succeeds gives a packet"
            if failed and sections:
                yield "a read that fails gives no packet"
            if not failed and request["ulAction"] in RECEIVE_ACTIONS:
                self._reads.add(key)
                self._ended.discard(key)
        elif name in _ENDS:
            if key in self._ended and not failed:
                yield "a read is ended once"
            if not failed:
                self._ended.add(key)
                self._reads.discard(key)


def _is_fault(row: dict[str, Any]) -> bool:
    return row["response"] is None


def _report(
    report: Report, output: Path, methods: "DataFrame", statuses: "DataFrame", wrong: "DataFrame"
) -> None:
    rows = jobs.rows_of(methods)
    report.plot("Calls by method", jobs.bars(rows, "name", "calls"))
    report.plot("Median latency in ms", jobs.bars(rows, "name", "p50_ms"))
    report.table("methods", "Methods", rows)
    report.table("statuses", "Statuses", jobs.rows_of(statuses))
    points = sorted({str(row["conformance_point"]) for row in rows if row["conformance_point"]})
    exercised = [{"point": point} for point in points]
    report.table("conformance_points", "Conformance points that the traffic exercises", exercised)
    report.table(
        "disagreements",
        "Disagreements with the specification",
        jobs.first_rows(wrong.orderBy("time")),
    )
    report.write(output)


if __name__ == "__main__":
    sys.exit(jobs.main(add, work, "conform"))
