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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from figures import Figure, UnavailableError, attempt, figure, unmeasured
from harness import HERE, few
from recorded import Recorded, cut, generate
from sampling import sampled_command

MEGABYTE = 1_000_000
SMALL, LARGE = 0, 1024
SIZES = (100, 1000)
MORE = 4000
BENCHES = {"BENCHES": str(HERE)}
OVER = "ingest on local[2] over two tsharks"
WITH_JAVA = "ingest with the start of Java over two tsharks"
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


def _command(captures: list[Recorded], output: Path) -> list[str]:
    paths = [str(each.path) for each in captures]
    return [sys.executable, "-c", _JOB, "--input", *paths, "--output", str(output)]


def _ingest(captures: list[Recorded], directory: Path) -> dict[str, Any]:
    """Seconds of the job, and with the start of Java; peak of memory."""
    output = directory / "tables"
    command = _command(captures, output)
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    streams["env"] = os.environ | BENCHES
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
    if shutil.which("tshark") is None:
        raise UnavailableError("tshark is not installed")
    made = [
        generate(directory / f"{name}.pcapng", body, few(520 * MEGABYTE))
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
    over = figure(OVER, seconds / found["job"], note)
    if not over.met:  # of the driver and its workers: the sampler is for Python
        again = _command(made, directory / "again")
        over = replace(over, profile=sampled_command(again, os.environ | BENCHES))
    return [
        over,
        figure(WITH_JAVA, seconds / found["all"], note),
    ]


def _rows_of(megabytes: int) -> tuple[str, str]:
    return f"ingest of {megabytes} MB on local[2]", f"memory at the peak of {megabytes} MB"


def _growth(directory: Path, megabytes: int) -> list[Figure]:
    """Speed and memory at a size, half of it small stubs and half of it large ones."""
    path = directory / str(megabytes)
    path.mkdir()
    made = [
        generate(path / f"{body}.pcapng", body, few(megabytes * MEGABYTE // 2))
        for body in (SMALL, LARGE)
    ]
    size = sum(each.path.stat().st_size for each in made) / MEGABYTE
    found = _ingest(made, path)
    shutil.rmtree(path)
    note = f"{found['job']:.1f} s; JVM and two workers {found['peak'] / MEGABYTE:.0f} MB at most"
    speed, memory = _rows_of(megabytes)
    return [figure(speed, size / found["job"], note), figure(memory, found["peak"] / MEGABYTE)]


def run() -> Iterator[Figure]:
    """The ratio needs tshark; 4 GB are measured only when they are asked for."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for megabytes in SIZES:
            yield from attempt(_rows_of(megabytes), partial(_growth, directory, megabytes))
        yield from attempt((OVER, WITH_JAVA), partial(_against_tshark, directory))
        if os.environ.get("BENCH_LARGE"):
            yield from attempt(_rows_of(MORE), partial(_growth, directory, MORE))
        else:
            yield from (unmeasured(each, "BENCH_LARGE=1 asks for it") for each in _rows_of(MORE))
