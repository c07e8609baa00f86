"""`python -m rpcqm` without its start-up: forked from a process that has loaded the product.

Tests run hundreds of commands and queue managers, and most of their time goes into loading modules.
Each is a process of its own all the same, with its arguments, directory, environment, files and
umask; and a child of the test's process, which waits for it and sends it signals. A process that
asks for more (another environment of Python or of the linker, a session of its own, …) is started
from nothing, as are all in a block of `started_from_nothing`.
"""

import atexit
import contextlib
import ctypes
import gc
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

START_FROM_NOTHING = "TESTS_START_FROM_NOTHING"
"""The variable for runs that start so few commands that it does not pay to load the product."""
COMMAND = (sys.executable, "-m", "rpcqm")
ROOT = Path(__file__).parents[3]
LONGEST = 128 << 10
"""Octets of a request: what fits into one packet between local sockets (208 KiB) with room."""
READ_AT_START = (
    *("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OPENSSL_", "RUST", "MUTATION_"),
)
"""Beginnings of variables that are read before the first line of a program, or change what it
loads."""
SERVED = ("rpcqm_admin", "remoteread", "qmcomm", "qmcomm2", "qmmgmt", "qm2qm", "epm", "mgmt")
"""Interfaces of which commands and queue managers call some methods each."""
_PR_SET_CHILD_SUBREAPER = 36


class ForkExec(Protocol):
    """What subprocess calls to start a process: its identifier."""

    def __call__(self, *arguments: Any) -> int: ...


class Forking:
    """Forks commands in place of `fork_exec`, which it calls for everything else."""

    def __init__(self, fork_exec: ForkExec) -> None:
        self.fork_exec = fork_exec
        self.paused = False
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._start = read_at_start(dict(os.environ))

    def __call__(self, *arguments: Any) -> int:
        args, _, _, kept, cwd, env = arguments[:6]
        files = [arguments[place] for place in (6, 9, 11)]
        session, group, gid, gids, uid, umask, preexec = arguments[15:22]
        words = [os.fspath(word) for word in args]
        environment = dict(os.environ) if env is None else _variables(env)
        plain = (
            not (self.paused or session or gid or gids or uid or preexec)
            and group == -1
            and len(kept) == 1
            and tuple(words[:3]) == COMMAND
            and (cwd is None or os.path.isdir(cwd))
            and read_at_start(environment) == self._start
        )
        mask = _umask() if umask == -1 else umask
        request = json.dumps([words[3:], os.fspath(cwd or os.getcwd()), environment, mask])
        if not plain or len(request) > LONGEST:
            return self.fork_exec(*arguments)
        files = [standard if file == -1 else file for standard, file in enumerate(files)]
        with self._lock:
            return self._fork(request.encode(), files) or self.fork_exec(*arguments)

    def _fork(self, request: bytes, files: Sequence[int]) -> int:
        """The identifier of a new process, 0 if there is nobody who can fork it."""
        control = self._control = self._control or self._serve()
        # The command becomes a child of ours when the process between it and the server ends.
        adopt(True)
        try:
            socket.send_fds(control, [request], files)
            return int.from_bytes(control.recv(4), "little")
        except OSError:  # it has ended, as the modules that it loads cannot be loaded
            return 0
        finally:
            adopt(False)

    def _serve(self) -> socket.socket:
        """Start the process that forks; it ends when ours does."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            subprocess.Popen(
                [sys.executable, "-m", "tests.support.cli.forked_commands", str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        return ours


def install() -> Forking:
    """Let subprocess fork the commands of this process from now on."""
    forking = Forking(subprocess._fork_exec)  # type: ignore[attr-defined]
    subprocess._fork_exec = forking  # type: ignore[attr-defined]
    return forking


@contextlib.contextmanager
def started_from_nothing() -> Iterator[None]:
    """Where the start of a command is what is tested."""
    forking = subprocess._fork_exec  # type: ignore[attr-defined]
    before, forking.paused = forking.paused, True
    try:
        yield
    finally:
        forking.paused = before


def read_at_start(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


def _variables(env: Sequence[bytes]) -> dict[str, str]:
    pairs = (os.fsdecode(pair).partition("=") for pair in env)
    return {name: value for name, _, value in pairs}


def _umask() -> int:
    """That of this process, which cannot be asked for without setting it but here."""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    return int(status.partition("\nUmask:")[2].split()[0], 8)


def adopt(orphans: bool) -> None:
    """Whether processes become our children when their own parents end."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(orphans), 0, 0, 0)


# The process that forks


def serve(control: socket.socket) -> None:
    """Fork commands until nobody can ask for them; returns in the processes of commands."""
    _load()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    while True:
        request, files, _, _ = socket.recv_fds(control, LONGEST, 3)
        if not request:
            os._exit(0)
        if (number := _fork_twice()) == 0:
            control.close()
            _become(files, *json.loads(request))
            return
        for file in files:
            os.close(file)
        control.send(number.to_bytes(4, "little"))


def _load() -> None:
    """All commands and the service; but not Spark, and nothing that starts a thread."""
    import rpcqm.cli
    import rpcqm.client
    from rpcqm.cli.main import build_parser

    build_parser()
    for package in (rpcqm.cli, rpcqm.client):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    for name in ("rpcqm.service.queue_manager_service", "uvloop"):
        import_module(name)
    with contextlib.suppress(ModuleNotFoundError):  # a product without the fast room
        import_module("rpcqm.fast.install")
    _compile()
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads cannot be forked"


def _compile() -> None:
    """The codecs of the interfaces that every queue manager serves."""
    from rpcqm.codec.interface import load

    functions = [f"{of}.{name}" for of in ("request", "response") for name in ("encode", "decode")]
    made_when_asked_for = attrgetter(*functions)
    for interface in map(load, SERVED):
        for operation in filter(None, interface.operations):
            for codec in map(operation.codec, interface.syntaxes):
                made_when_asked_for(codec)


def _fork_twice() -> int:
    """The identifier of a process that is no child of this one, or 0 in that process."""
    ours, theirs = os.pipe()
    between = os.fork()
    if between:
        os.close(theirs)
        told = os.read(ours, 4)
        os.close(ours)
        os.waitpid(between, 0)
        return int.from_bytes(told, "little")
    os.close(ours)
    if number := os.fork():
        os.write(theirs, number.to_bytes(4, "little"))
        os._exit(0)
    os.close(theirs)
    return 0


def _become(
    files: list[int], words: list[str], directory: str, environment: dict[str, str], umask: int
) -> None:
    """Take over what the command was started with."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for standard, file in enumerate(files):
        os.dup2(file, standard)
    for file in files:
        os.close(file)
    os.chdir(directory)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    # Objects that were made for other files remember whether those could be sought in.
    sys.stdin = sys.__stdin__ = _text(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _text(1, "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(2, "w")  # type: ignore[misc]
    sys.argv = ["rpcqm", *words]


def _text(file: int, mode: str) -> io.TextIOWrapper:
    """A standard stream as Python opens it."""
    model = (sys.stdin, sys.stdout, sys.stderr)[file]
    unbuffered = "PYTHONUNBUFFERED" in os.environ and mode == "w"
    return io.TextIOWrapper(
        open(file, f"{mode}b", 0 if unbuffered else -1, closefd=False),
        encoding=model.encoding,
        errors=model.errors,
        line_buffering=file == 2 or os.isatty(file),
        write_through=unbuffered,
    )


def _run() -> None:
    """Run the command, and end as Python does but for what it frees.

    Most pages are those of the process that forked: freeing what lies on them would copy each one,
    which took longer than most commands do.
    """
    try:
        runpy.run_module("rpcqm", run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        if not isinstance(stop.code, int | None):
            raise
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(stop.code or 0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    _run()
