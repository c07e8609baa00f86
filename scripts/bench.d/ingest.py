"""`rpcqm pipeline ingest` on local[2] against two tsharks on the halves of the same captures.

With BENCH_LARGE=1 in the environment 4 GB are measured as well.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harness import HERE, Figure
from recorded import Recorded, cut, generate

MEGABYTE = 1_000_000
SMALL, LARGE = 0, 1024
SIZES = (100, 1000)
MORE = 4000
_JOB = """
import argparse, json, os, sys, time
began = time.perf_counter()
sys.path.insert(0, os.environ["BENCHES"])
from harness import processor_seconds
from rpcqm.pipeline import ingest, jobs
from rpcqm.pipeline.session import spark_session
parser = argparse.ArgumentParser()
ingest.add(parser)
arguments = parser.parse_args(sys.argv[1:])
spark = spark_session("local[2]", "bench", **{"spark.driver.host": "127.0.0.1"})
spark.range(1).count()
ready, before = time.perf_counter(), processor_seconds(os.getpid())
summary = jobs.Summary()
ingest.work(spark, arguments, summary)
done = time.perf_counter()
used = processor_seconds(os.getpid()) - before
told = {"job": done - ready, "all": done - began, "processors": used, "rows": summary.rows_out}
print(json.dumps(told))
spark.stop()
"""


def _anonymous(pid: int) -> int:
    """The memory of a process and all below it in octets, without what is mapped from files."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            fields = dict(
                line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line
            )
            own = int(path.parent.name)
            children.setdefault(int(fields["PPid"]), []).append(own)
            used[own] = int(fields.get("RssAnon", "0 kB").split()[0]) * 1024
    total, below = 0, [pid]
    while below:
        total += sum(used.get(each, 0) for each in below)
        below = [child for each in below for child in children.get(each, [])]
    return total


@contextmanager
def _watched(pid: int) -> Iterator[list[int]]:
    """The most memory that a process has while the block runs, in the list's one element."""
    peak, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            peak[0] = max(peak[0], _anonymous(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def _ingest(captures: list[Recorded], directory: Path) -> dict[str, Any]:
    """Seconds of the job, and with the start of Java; peak of memory."""
    output = directory / "tables"
    paths = [str(each.path) for each in captures]
    command = [sys.executable, "-c", _JOB, "--input", *paths, "--output", str(output)]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    streams["env"] = os.environ | {"BENCHES": str(HERE)}
    with subprocess.Popen(command, **streams) as process, _watched(process.pid) as peak:
        told, _ = process.communicate()
    found: dict[str, Any] = json.loads(told)
    assert found["rows"]["calls"] == sum(each.calls for each in captures)
    shutil.rmtree(output)
    return found | {"peak": peak[0]}


def _tsharks(halves: list[list[Path]]) -> float:
    """Seconds of two tsharks at once, each over its halves of all captures."""
    began = time.perf_counter()
    running = [
        subprocess.Popen(
            ["sh", "-c", " && ".join(f"{_tshark(path)} > {path}.txt" for path in mine)],
            stderr=subprocess.DEVNULL,
        )
        for mine in halves
    ]
    for each in running:
        assert each.wait() == 0
    return time.perf_counter() - began


def _tshark(path: Path) -> str:
    """Opnums, and which answers belong to which requests."""
    fields = ("frame.time_epoch", "ip.src", "ip.dst", "dcerpc.opnum", "dcerpc.request_in")
    columns = " ".join(f"-e {field}" for field in fields)
    return f"tshark -r {path} -d tcp.port==2103,dcerpc -T fields {columns}"


def _against_tshark(directory: Path) -> list[Figure]:
    made = [
        generate(directory / f"{name}.pcapng", body, 520 * MEGABYTE)
        for name, body in (("small", SMALL), ("large", LARGE))
    ]
    found = _ingest(made, directory)
    pairs = [cut(each, directory) for each in made]
    seconds = _tsharks([[pair[n] for pair in pairs] for n in (0, 1)])
    size = sum(each.path.stat().st_size for each in made) / MEGABYTE
    note = (
        f"{size:.0f} MB, {sum(each.calls for each in made):,} calls in {found['job']:.1f} s "
        f"({found['processors']:.1f} of processors), "
        f"with the start of Java {found['all']:.1f} s; two tsharks {seconds:.1f} s"
    )
    return [
        Figure("ingest on local[2] over two tsharks", seconds / found["job"], 8, note=note),
        Figure("the same with the start of Java", seconds / found["all"], note=note),
    ]


def _growth(directory: Path) -> list[Figure]:
    """Speed and memory by size, half of it small stubs and half of it large ones."""
    figures = []
    for megabytes in (*SIZES, *([MORE] if os.environ.get("BENCH_LARGE") else [])):
        path = directory / "growth"
        path.mkdir()
        made = [
            generate(path / f"{body}.pcapng", body, megabytes * MEGABYTE // 2)
            for body in (SMALL, LARGE)
        ]
        found = _ingest(made, path)
        note = (
            f"{found['job']:.1f} s; JVM and two workers {found['peak'] / MEGABYTE:.0f} MB at most"
        )
        name = f"ingest of {megabytes} MB on local[2]"
        figures.append(Figure(name, megabytes / found["job"], unit="MB/s", note=note))
        name = f"memory at the peak of {megabytes} MB"
        figures.append(Figure(name, found["peak"] / MEGABYTE, 4000, unit="MB", at_most=True))
        shutil.rmtree(path)
    return figures


def run() -> list[Figure]:
    """The ratio needs tshark; where it is missing only the growth is measured."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        figures = _growth(directory)
        if shutil.which("tshark"):
            figures += _against_tshark(directory)
    return figures
