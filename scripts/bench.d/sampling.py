"""Where the processor time of a server goes while a load runs, for rows that miss their target.

The servers of the benches are started with a sampler of their own (sampler/sitecustomize.py), so
that a plain machine is enough; what is measured in the bench's own process is sampled there, and a
command from its start to its end. Where `perf` is installed it adds the shares of the kernel and of
the libraries, which the sampler cannot tell apart.
"""

import os
import runpy
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
FUNCTIONS = 9
"""With the line above them and that of `perf`, a profile has eleven lines."""
KNOWN = {"asyncio/runners.py Runner.run": "the event loop, its sockets, the kernel below it"}
PATIENCE = 5.0
"""Seconds for a busy server to come to the signal."""
PARTS = 4
"""Parts of the program that `perf` tells; the others are small."""


def environment(samples: Path) -> dict[str, str]:
    """What a server needs in its environment to be sampled; its samples go to that directory."""
    samples.mkdir(parents=True, exist_ok=True)
    before = os.environ.get("PYTHONPATH")
    path = f"{HERE / 'sampler'}{os.pathsep + before if before else ''}"
    return {"PYTHONPATH": path, "BENCH_SAMPLES": str(samples)}


def sampled(process: int, again: Callable[[], object]) -> tuple[str, ...]:
    """Repeat a load: the functions of the server that took the most time meanwhile.

    Nothing when the process was not started with the sampler; this process needs none.
    """
    if process == os.getpid():
        return _sampled_here(again)
    directory = _directory(process)
    if directory is None:
        return ()
    path = directory / str(process)
    path.unlink(missing_ok=True)
    with _parts(process) as parts:
        os.kill(process, signal.SIGUSR1)
        try:
            again()
        except RuntimeError as error:  # what was measured counts without its profile
            return (f"no profile: {error}",)
        finally:
            os.kill(process, signal.SIGUSR2)
    end = time.monotonic() + PATIENCE
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return (*_shares_of(_counts(path) if path.exists() else []), *parts)


def sampled_command(argv: Sequence[str], given: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Run a command of Python once more: the functions of all its processes that took most."""
    with tempfile.TemporaryDirectory() as name:
        samples = {**given, **environment(Path(name)), "BENCH_SAMPLE_ALL": "1"}
        nothing = subprocess.DEVNULL
        done = subprocess.run(argv, env=samples, stdout=nothing, stderr=nothing)
        if done.returncode:
            return (f"no profile: the command ended with status {done.returncode}",)
        counts: Counter[str] = Counter()
        for path in Path(name).iterdir():
            counts.update({function: count for count, function in _counts(path)})
    return _shares_of([(count, function) for function, count in counts.most_common()])


def _sampled_here(again: Callable[[], object]) -> tuple[str, ...]:
    """The same of this process, where the sampler is not loaded before."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["BENCH_SAMPLES"] = name
        try:
            sampler = runpy.run_path(str(HERE / "sampler" / "sitecustomize.py"))
            sampler["_begin"](0, None)
            again()
            sampler["_end"](0, None)
        finally:
            del os.environ["BENCH_SAMPLES"]
        return _shares_of(_counts(Path(name) / str(os.getpid())))


def _shares_of(counts: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    total = sum(count for count, _ in counts)
    head = f"profile of one more round, {total:,} samples by functions (with the C that they call):"
    return (head, *(f"{count / total:5.1%} {name}" for count, name in counts[:FUNCTIONS]))


def _directory(process: int) -> Path | None:
    """Where a process writes its samples."""
    for each in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
        name, _, value = each.decode(errors="replace").partition("=")
        if name == "BENCH_SAMPLES":
            return Path(value)
    return None


def _counts(path: Path) -> list[tuple[int, str]]:
    lines = (line.partition(" ") for line in path.read_text("utf-8").splitlines())
    return [(int(count), KNOWN.get(name, name)) for count, _, name in lines]


@contextmanager
def _parts(process: int) -> Iterator[list[str]]:
    """The shares of the kernel and the libraries in the list's one line, where `perf` works."""
    found: list[str] = []
    if shutil.which("perf") is None:
        yield found
        return
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        argv = ["perf", "record", "-q", "-F", "499", "-p", str(process), "-o", str(data)]
        recorder = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield found
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
        if shares := _shares(data):
            found.append(f"perf: {', '.join(shares)}")


def _shares(data: Path) -> list[str]:
    argv = ["perf", "report", "--stdio", "-q", "--sort", "dso", "-i", str(data)]
    told = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    words = (line.split() for line in told.stdout.splitlines() if "%" in line)
    return [f"{share} {Path(name).name}" for share, name, *_ in words][:PARTS]
