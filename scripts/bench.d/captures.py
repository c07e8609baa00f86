"""Reading captures: `rpcqm capture show` and the analysis, against tshark on the same file."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import Figure
from recorded import generate

from rpcqm.capture.columnar.analysis import Single, analyse_columns
from rpcqm.capture.columnar.batch import CallBatch
from rpcqm.capture.dissector import dissector
from rpcqm.capture.file.problems import Problems

BEGIN = 20_000_000
SMALL, LARGE = 0, 1024
SIZES = {SMALL: 160_000_000, LARGE: 800_000_000}
"""So large that starting is little of it, for tshark too."""


def _cpu(command: list[str]) -> float:
    """The CPU seconds of a program, which do not depend on what else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.devnull, "wb") as nothing:
        subprocess.run(command, stdout=nothing, stderr=nothing, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _tshark(path: Path, *options: str) -> float:
    command = ["tshark", "-r", str(path), "-d", "tcp.port==2103,dcerpc", "-T", "fields"]
    return _cpu([*command, "-e", "frame.time_epoch", "-e", "ip.src", "-e", "ip.dst", *options])


def _shown(path: Path) -> float:
    return _cpu([sys.executable, "-m", "rpcqm", "capture", "show", str(path)])


def _measured(path: Path, body: int, what: str, script: Path) -> list[Figure]:
    show = _shown(path)
    opnum = _tshark(path, "-e", "dcerpc.opnum")
    name = f"capture show, {what}, against tshark's opnum column"
    note = (
        f"{show:.2f} s of processor against {opnum:.2f} s "
        f"for {path.stat().st_size / 1e6:.0f} MB, each with its start"
    )
    return [Figure(name, opnum / show, 10, note=note), _same(path, body, what, script)]


def _same(path: Path, body: int, what: str, script: Path) -> Figure:
    """Against tshark that tells what the list tells, on a smaller capture."""
    fields = ("rpcqm.method", "rpcqm.status_name", "rpcqm.field")
    columns = [word for field in fields for word in ("-e", field)]
    begin = path.with_name("begin.pcapng")
    generate(begin, body, BEGIN)
    same = _tshark(begin, "-X", f"lua_script:{script}", *columns)
    name = f"capture show, {what}, against tshark telling the same"
    figure = Figure(name, same / _shown(begin), note=f"{BEGIN / 1e6:.0f} MB")
    begin.unlink()
    return figure


def _analysis(path: Path, calls: int, what: str) -> Figure:
    """All calls paired, in columns, as `show` and `ingest` do it."""
    count = [0]

    def take(singles: list[Single], batch: CallBatch | None) -> None:
        count[0] += len(singles) + (len(batch) if batch is not None else 0)

    began = time.process_time()
    analyse_columns(path, take, Problems())
    seconds = time.process_time() - began
    assert count[0] == calls
    rate = path.stat().st_size / 1e6 / seconds
    return Figure(f"captured calls paired, {what}", rate, unit="MB/s", note="one core")


def run() -> list[Figure]:
    """Small and large stubs; tshark's figures only where it is installed."""
    figures = []
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "rpcqm.lua"
        script.write_text(dissector(), "utf-8")
        for what, body in (("small stubs", SMALL), ("1.1 KiB stubs", LARGE)):
            made = generate(Path(name) / "capture.pcapng", body, SIZES[body])
            figures.append(_analysis(made.path, made.calls, what))
            if shutil.which("tshark"):
                figures += _measured(made.path, body, what, script)
    return figures
