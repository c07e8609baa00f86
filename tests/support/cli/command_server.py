"""`rpcqm` without its start-up: a process that has loaded the commands and forks for each one.

The documentation's commands are many, and loading Python's modules takes longer than what they do.
Everything else is the command's own: its arguments, directory, environment, files and exit status.
"""

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

_CLIENT = """\
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    told = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(told).to_bytes(4, "little")], [0, 1, 2])
    server.sendall(told)
    answer = server.recv(1)
sys.exit(answer[0] if answer else 99)
"""
_LOADED = (
    "rpcqm.client.queue_manager",
    "rpcqm.client.blocking",
    "rpcqm.client.mq",
    "rpcqm.service.fsck",
)


@contextlib.contextmanager
def quick_commands(directory: Path) -> Iterator[Path]:
    """A directory for PATH with an `rpcqm` that starts at once; its process ends with the block."""
    where = directory / "commands.socket"
    tools = directory / "bin"
    tools.mkdir()
    client = directory / "client.py"
    client.write_text(_CLIENT)
    command = shlex.join([sys.executable, "-I", "-S", str(client), str(where)])
    (tools / "rpcqm").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (tools / "rpcqm").chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.cli.command_server", str(where)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield tools
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def serve(path: str) -> None:
    """Run commands until the process is ended."""
    from rpcqm.cli.main import build_parser

    build_parser()
    for name in _LOADED:
        with contextlib.suppress(ModuleNotFoundError):
            import_module(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            # Two commands of a pipe run at the same time: each has a process that waits for it.
            if os.fork() == 0:
                listener.close()
                os._exit(_answer(connection))
            connection.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _answer(connection: socket.socket) -> int:
    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    told = b""
    while len(told) < int.from_bytes(head, "little"):
        told += connection.recv(65536)
    arguments, directory, environment = json.loads(told)
    child = os.fork()
    if child == 0:
        connection.close()
        _run(arguments, directory, environment, files)
    for number in files:
        os.close(number)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):  # what it was piped to may have gone
        connection.sendall(bytes([status & 0xFF]))
    return 0


def _run(
    arguments: list[str], directory: str, environment: dict[str, str], files: list[int]
) -> None:
    """Become the command."""
    from rpcqm.cli.main import main

    for standard, number in enumerate(files):
        os.dup2(number, standard)
        os.close(number)
    # Objects that were made for other files remember whether those could be sought in.
    sys.stdin = os.fdopen(0, "r")
    sys.stdout = os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    status = 98
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
