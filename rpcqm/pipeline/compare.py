"""`compare`: two sets of captures: the same requests, differing answers."""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.pipeline import jobs
from rpcqm.pipeline.html import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHOSEN = frozenset(
    {
        *("phContext", "pphContext", "phContextFrom", "hQueue", "phQueue", "hCursor", "phCursor"),
        *("LookupId", "LookupIdentifier", "dwRequestId", "ullContextTo", "pMoveContext"),
        *("pClientId", "entry_handle", "dwContext", "hProxy", "pLicGuid", "lpClientName"),
        # Of messages over HTTP.
        *("id", "via", "sent_at", "expires_at", "received_at", "decided_at", "ttrq"),
        *("stream_id", "send_receipts_to", "source_qm_guid", "correlation"),
    }
)
"""Parameters that differ from run to run although the request is the same."""
_MACHINE = re.compile(r"(?i)\b(TCP|OS|HTTPS?):(?://)?[^\\/\"]+|^[^\\/:]*(?=\\\\?private\$)")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the job's options to a parser."""
    for side in ("left", "right"):
        parser.add_argument(
            f"--{side}", metavar="DIR", required=True, help=f"ingested captures, the {side} side"
        )
    parser.add_argument("--output", metavar="DIR", required=True, help="where the report goes")


def same_request(request: str | None) -> str | None:
    """A request without what a client or a server chooses anew in every run."""
    if request is None:
        return None
    return json.dumps(_normal(json.loads(request)), sort_keys=True)


def _normal(value: object) -> object:
    if isinstance(value, dict):
        return {
            name: bool(inner) if name in _CHOSEN else _normal(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_normal(each) for each in value]
    if isinstance(value, str):
        return _MACHINE.sub(lambda match: f"{match[1] or ''}:*", value)
    return value


def work(spark: "SparkSession", arguments: argparse.Namespace, summary: jobs.Summary) -> None:
    """Write the tables `differences` and `only`, and the report."""
    from pyspark.sql import functions as f

    sides = {}
    for side in ("left", "right"):
        calls = jobs.required_table(spark, getattr(arguments, side), "calls")
        summary.rows_in[f"calls on the {side}"] = int(calls.count())
        summary.rejected[f"sealed on the {side}"] = int(calls.where("sealed").count())
        sides[side] = _answers(calls.where("not sealed"), side)
    joined = sides["left"].join(sides["right"], ["interface", "name", "same"], "full")
    joined = joined.persist()
    both = joined.where("left is not null and right is not null")
    different = both.where("left <> right").orderBy("interface", "name")
    only = joined.where("left is null or right is null").orderBy("interface", "name")
    only = only.withColumn("side", f.expr("if(right is null, 'left', 'right')"))
    output = Path(arguments.output)
    different.write.mode("overwrite").parquet(str(output / "differences"))
    only.write.mode("overwrite").parquet(str(output / "only"))
    summary.rows_out["requests on both sides"] = int(both.count())
    summary.rows_out["answered differently"] = int(different.count())
    report = Report("Two sets of captures compared")
    jobs.tell(report, summary, arguments.left, arguments.right)
    _report(report, output, different, only)


def _answers(calls: "DataFrame", side: str) -> "DataFrame":
    """Each request with the statuses that it was answered with."""
    from pyspark.sql import functions as f

    same = f.udf(same_request, "string", useArrow=False)
    return (
        calls.withColumn("same", f.coalesce(same("request"), f.lit("")))
        .groupBy("interface", "name", "same")
        .agg(
            f.array_join(f.array_sort(f.collect_set("status_name")), ", ").alias(side),
            f.count("*").alias(f"{side}_calls"),
            f.expr("round(percentile_approx(duration_ms, 0.5), 3)").alias(f"{side}_p50_ms"),
        )
    )


def _report(report: Report, output: Path, different: "DataFrame", only: "DataFrame") -> None:
    from pyspark.sql import functions as f

    counted = jobs.rows_of(different.groupBy("name").count().orderBy(f.desc("count")))
    report.plot("Requests answered differently, by method", jobs.bars(counted, "name", "count"))
    report.table("differences", "Same requests, differing answers", jobs.first_rows(different))
    report.table("only", "Requests on one side only", jobs.first_rows(only))
    report.write(output)


if __name__ == "__main__":
    sys.exit(jobs.main(add, work, "compare"))
