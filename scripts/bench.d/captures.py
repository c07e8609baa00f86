"""Reading captures: `rpcqm capture show` and the analysis, against tshark on the same file."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from figures import Figure, UnavailableError, attempt, figure
from harness import few
from recorded import generate
from sampling import sampled_command

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


def _show(path: Path) -> list[str]:
    return [sys.executable, "-m", "rpcqm", "capture", "show", str(path)]


def _shown(path: Path) -> float:
    return _cpu(_show(path))


def _column(path: Path, what: str) -> Figure:
    """Against tshark's one column."""
    _look_for_tshark()
    show = _shown(path)
    opnum = _tshark(path, "-e", "dcerpc.opnum")
    name = f"capture show, {what}, against tshark's opnum column"
    note = (
        f"{show:.2f} s of processor against {opnum:.2f} s "
        f"for {path.stat().st_size / 1e6:.0f} MB, each with its start"
    )
    made = figure(name, opnum / show, note)
    return made if made.met else replace(made, profile=sampled_command(_show(path)))


def _look_for_tshark() -> None:
    if shutil.which("tshark") is None:
        raise UnavailableError("tshark is not installed")


def _same(path: Path, body: int, what: str, script: Path) -> Figure:
    """Against tshark that tells what the list tells, on a smaller capture."""
    _look_for_tshark()
    fields = ("rpcqm.method", "rpcqm.status_name", "rpcqm.field")
    columns = [word for field in fields for word in ("-e", field)]
    begin = path.with_name("begin.pcapng")
    generate(begin, body, few(BEGIN))
    same = _tshark(begin, "-X", f"lua_script:{script}", *columns)
    name = f"capture show, {what}, against tshark telling the same"
    made = figure(name, same / _shown(begin), f"{BEGIN / 1e6:.0f} MB")
    begin.unlink()
    return made


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
    return figure(f"captured calls paired, {what}", rate, "one core")


def run() -> Iterator[Figure]:
    """Small and large stubs; tshark's figures only where it is installed."""
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "rpcqm.lua"
        script.write_text(dissector(), "utf-8")
        for what, body in (("small stubs", SMALL), ("1.1 KiB stubs", LARGE)):
            made = generate(Path(name) / "capture.pcapng", body, few(SIZES[body]))
            show = f"capture show, {what}, against tshark"
            pairing = partial(_analysis, made.path, made.calls, what)
            yield from attempt(f"captured calls paired, {what}", pairing)
            yield from attempt(f"{show}'s opnum column", partial(_column, made.path, what))
            same = partial(_same, made.path, body, what, script)
            yield from attempt(f"{show} telling the same", same)
