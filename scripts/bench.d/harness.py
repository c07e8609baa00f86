"""What the benches share: figures, interleaved pairs, pinned processes, and the C peers.

A bench is a module NAME.py beside this one whose ``run()`` gives Figures of its rows in the
catalogue. It measures ratios within one run; an absolute number is given only where the target
is one.
"""

import hashlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from figures import Figure, figure
from sampling import environment

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "var" / "bench"

all_cpus = tuple(sorted(os.sched_getaffinity(0)))
client_cpu, server_cpu = all_cpus[0], all_cpus[-1]
Cpus = int | Sequence[int]

TRIAL = bool(os.environ.get("BENCH_TRIAL"))
"""Whether this run only shows that the rows work: everything is short, and no figure means much."""

PATIENCE = 300.0
"""Seconds in which a load of so many calls ends, on a slow machine too."""

UNPROTECTED = "[security] allow_unprotected_rpc = true, allow_nonauthenticated_rpc = true"
"""The settings that allow calls at level NONE."""


def brief(seconds: float) -> float:
    """How long to measure: as long as is said, but in a trial."""
    return min(seconds, 0.5) if TRIAL else seconds


def few(count: int) -> int:
    """How often, or how many: as is said, but in a trial."""
    return max(count // 10, 1) if TRIAL else count


def sampled_environment() -> dict[str, str]:
    """What servers get, so that rows which miss their target can be profiled."""
    return environment(BUILD / "samples")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Medians of interleaved rounds: ``ratio`` is the median of ours / theirs."""

    ratio: float
    ours: float
    theirs: float
    ratios: tuple[float, ...]
    stolen: float | None = None
    again: Callable[[], object] | None = None
    """What measures ours once more."""

    def figure(self, name: str, server: int | None = None, note: str = "") -> Figure:
        """The ratio; with the profile of a server, if that is given and the target is missed."""
        made = figure(name, self.ratio, f"{self.spread}{note}", stolen=self.stolen)
        return made.explained(server, self.again) if server and self.again else made

    @property
    def spread(self) -> str:
        """The medians of the rates and the range of the ratios, for a figure's note."""
        low, high = min(self.ratios), max(self.ratios)
        return f"{self.ours:,.0f}/s against {self.theirs:,.0f}/s; rounds {low:.3g} to {high:.3g}"


class Stolen:
    """Measures the processor time that other machines take from this one, from now on."""

    def __init__(self) -> None:
        self._before = self._ticks()

    @property
    def share(self) -> float:
        """Of all time of the processors that we may use; 0 where the kernel does not tell."""
        stolen, everything = (
            now - then for now, then in zip(self._ticks(), self._before, strict=True)
        )
        return stolen / everything if everything else 0.0

    @staticmethod
    def _ticks() -> tuple[int, int]:
        ours = {f"cpu{number}" for number in all_cpus}
        lines = (line.split() for line in Path("/proc/stat").read_text("ascii").splitlines())
        # user, nice, system, idle, iowait, irq, softirq, steal; what guests take is in the first.
        ticks = [[int(each) for each in line[1:9]] for line in lines if line[0] in ours]
        return sum(each[7] for each in ticks), sum(map(sum, ticks))


def pairs(ours: Callable[[], float], theirs: Callable[[], float], rounds: int = 5) -> Pairs:
    """Measure two rates alternately, so that a change of the machine's mood hits both."""
    watch = Stolen()
    measured = [(ours(), theirs()) for _ in range(1 if TRIAL else rounds)]
    ratios = tuple(mine / other for mine, other in measured)
    return Pairs(
        statistics.median(ratios),
        statistics.median(mine for mine, _ in measured),
        statistics.median(other for _, other in measured),
        ratios,
        watch.share,
        ours,
    )


def per_second(function: Callable[[], object], seconds: float = 0.2) -> float:
    """Calls per second of ``function``, over at least ``seconds``."""
    batch = 1
    while True:
        began = time.perf_counter()
        for _ in range(batch):
            function()
        took = time.perf_counter() - began
        if took >= seconds:
            return batch / took
        batch = max(batch * 2, min(batch * 100, int(batch * seconds * 1.2 / max(took, 1e-9))))


@dataclass(frozen=True, slots=True)
class Syncs:
    """What the disk alone does: appends to a zero-filled file, each with its fdatasync."""

    per_second: float
    p50_us: float


def syncs_of(directory: Path, size: int, seconds: float = 0.5) -> Syncs:
    """Append `size` bytes over and over."""
    room = 16 << 20
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        file.write(bytes(room))
        file.flush()
        os.fsync(file.fileno())
        data, at, times = os.urandom(size), 0, [time.perf_counter()]
        while times[-1] - times[0] < brief(seconds):
            os.pwrite(file.fileno(), data, at)
            os.fdatasync(file.fileno())
            at = (at + size) % (room - size)
            times.append(time.perf_counter())
    took = [then - before for before, then in pairwise(times)]
    return Syncs(len(took) / (times[-1] - times[0]), statistics.median(took) * 1e6)


def raw_syncs(directory: Path, size: int, seconds: float = 0.5) -> float:
    """Such syncs per second."""
    return syncs_of(directory, size, seconds).per_second


def _several(cpu: Cpus) -> tuple[int, ...]:
    return (cpu,) if isinstance(cpu, int) else tuple(cpu)


def pin(pid: int, cpu: Cpus) -> None:
    """Keep every thread of a process on one CPU, or on some."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), _several(cpu))


def computed(pid: int) -> float:
    """Seconds that the processors have spent on all threads of a process, to the nanosecond.

    The clock of another process is named by its number (clock_getcpuclockid).
    """
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


def processor_seconds(pid: int) -> float:
    """Time that the processors have spent on a process and all below it, in steps of 10 ms."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
            found = int(path.parent.name)
            parents[found], ticks[found] = int(fields[1]), int(fields[11]) + int(fields[12])
    total, below = 0, [pid]
    while below:
        total += sum(ticks.get(each, 0) for each in below)
        below = [each for each, parent in parents.items() if parent in below]
    return total / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> int:
    """Octets of memory that a process has now."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) << 10


class WriteTimer:
    """The CPU that the writes of a store take in this thread; `seconds` may be set back."""

    def __init__(self, store: Any) -> None:
        self.seconds = 0.0
        self._write = store._database.write
        store._database.write = self._timed

    def _timed(self, *arguments: Any) -> None:
        began = time.thread_time()
        self._write(*arguments)
        self.seconds += time.thread_time() - began


def pinned(argv: Sequence[object], cpu: Cpus, **popen: Any) -> subprocess.Popen[bytes]:
    """Start a process on one CPU, or on some; the keywords are those of Popen."""
    taskset = ["taskset", "--cpu-list", ",".join(map(str, _several(cpu)))]
    return subprocess.Popen([*taskset, *map(str, argv)], **popen)


def compile_c(name: str, variant: str = "", options: Sequence[str] = ()) -> Path:
    """Compile NAME.c of this directory to an optimised program; quick when it is there already.

    A variant is the same source with further options. The program's name has a digest of what it
    is made from, so that none is ever older than its source.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("the bench compiles its C peers: install a C compiler (gcc)")
    source = HERE / f"{name}.c"
    made_from = b"".join(path.read_bytes() for path in (source, *sorted(HERE.glob("*.h"))))
    digest = hashlib.sha256(made_from + " ".join(options).encode()).hexdigest()[:12]
    program = BUILD / f"{name}{variant}-{digest}"
    if not program.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        command = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(made), str(source)]
        subprocess.run([*command, *options], check=True)
        made.rename(program)
    return program


@contextmanager
def limit_server(
    bind_ack: bytes,
    response: bytes,
    log: Path | None = None,
    only: tuple[int, bytes] | None = None,
) -> Iterator[int]:
    """The C server that only echoes fixed bytes (with ``log``: also keeps each call durably).

    ``only`` is the one opnum that is logged, and the response to it. Yields the server's port on
    127.0.0.1.
    """
    argv: list[object] = [compile_c("limit"), bind_ack.hex(), response.hex()]
    if log is not None:
        argv.append(log)
        argv += [only[0], only[1].hex()] if only else []
    process = pinned(argv, server_cpu, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes of the answer to a once-PDU that go into a PDU of the loop (a context handle)."""

    reply: int
    start: int
    length: int
    loop: int
    to: int


@dataclass(frozen=True, slots=True)
class Script:
    """What each connection of the load generator sends; answers in the loop end with ``tail``.

    ``window`` calls are outstanding on each; what follows the first of ``once`` is sent for each of
    them, because a server runs the calls of one context handle one after the other.
    """

    once: Sequence[bytes]
    loop: Sequence[bytes]
    copy: Sequence[Copy] = field(default=())
    tail: bytes = b""
    window: int = 1

    @property
    def text(self) -> str:
        """The script in the load generator's own lines."""
        lines = [f"once {pdu.hex()}" for pdu in self.once]
        lines += [f"loop {pdu.hex()}" for pdu in self.loop]
        lines += [f"copy {c.reply} {c.start} {c.length} {c.loop} {c.to}" for c in self.copy]
        lines += [f"tail {self.tail.hex()}"] if self.tail else []
        lines += [f"window {self.window}"]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Load:
    """What the load generator saw."""

    calls_per_second: float
    p50_us: float
    p99_us: float
    calls: int


def load(
    port: int,
    connections: int,
    script: Script,
    seconds: float = 2.0,
    warm_up: float = 0.5,
    calls: int = 0,
) -> Load:
    """Drive a server on 127.0.0.1 with the script's calls outstanding on each connection.

    With `calls` the run ends after so many, whatever time they take. Raises RuntimeError when an
    answer is a fault, or is not what the script says.
    """
    times, counted = lasting(seconds, warm_up, calls)
    argv = [compile_c("load"), str(port), str(connections), *times]
    return generated(argv, f"{script.text}{counted}", warm_up + seconds + PATIENCE)


def lasting(seconds: float, warm_up: float, calls: int) -> tuple[tuple[str, str], str]:
    """For a load generator: its two times, and the line of its script that says how much to do."""
    if calls:
        return (str(brief(warm_up)), str(PATIENCE)), f"calls {calls}\n"
    return (str(brief(warm_up)), str(brief(seconds))), ""


def load_streams(
    streams: Mapping[int, Path],
    seconds: float | None = None,
    warm_up: float = 0.0,
    window: int = 1,
) -> Load:
    """Drive connections that are open and bound already: file descriptors, and files of PDUs.

    Each request is sent once, because it is sealed, or differs from the others; `window` of them
    are outstanding on each connection. The run ends when a file does, or after the seconds if any
    are given.
    """
    # In a trial there are too few calls for a warm-up.
    lasts = PATIENCE if seconds is None else brief(seconds)
    times = (str(0 if TRIAL else warm_up), str(lasts))
    argv = [compile_c("load"), "0", "0", *times]
    script = "".join(f"stream {socket} {path}\n" for socket, path in streams.items())
    script += f"window {window}\n"
    return generated(argv, script, warm_up + lasts + PATIENCE, pass_fds=tuple(streams))


@contextmanager
def memory_file() -> Iterator[Path]:
    """A file that is nowhere on the disk, so that writing it disturbs nobody's syncs."""
    descriptor = os.memfd_create("bench")
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    finally:
        os.close(descriptor)


def generated(
    argv: Sequence[object], script: str, timeout: float, cpu: int = client_cpu, **popen: Any
) -> Load:
    """Run a load generator, which reads its script; RuntimeError when it refuses anything."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = pinned(argv, cpu, **pipes, **popen)
    try:
        out, err = process.communicate(script.encode(), timeout=timeout)
    finally:
        process.kill()
    if process.returncode:
        raise RuntimeError(f"load generator: {err.decode().strip()}")
    return harvested(out.decode())


def harvested(printed: str) -> Load:
    """What a load generator prints: how many, seconds, and two latencies in ns."""
    calls, took, p50, p99 = printed.split()
    return Load(int(calls) / float(took), int(p50) / 1000, int(p99) / 1000, int(calls))
