"""Programs compiled by widl and mingw, run by Wine's rpcrt4: strangers' NDR and PDU code."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.codec.widl import COMMAND, INCLUDED, prepare
from tests.support.network.namespace import Namespace

SOURCES = Path(__file__).parents[2] / "interop" / "wine"
MINGW = "x86_64-w64-mingw32-"
PROGRAMS = ("wine", "wineserver", f"{MINGW}widl", f"{MINGW}gcc")

Step = dict[str, Any]


def compile_program(directory: Path, name: str, interfaces: Sequence[str]) -> Path:
    """The program of a source: prepared IDL, widl's stubs, mingw's compiler."""
    prepare(directory)

    def call(*command: str) -> None:
        subprocess.run(command, cwd=directory, check=True, capture_output=True)

    for interface in interfaces:
        call(*COMMAND, "-h", "-c", f"{interface}.idl")
    for included in INCLUDED:
        call(*COMMAND, "-h", f"{included}.idl")
    stubs = [f"{interface}_c.c" for interface in interfaces]
    call(
        # each stub defines the one binding: -fcommon makes them the same
        *(f"{MINGW}gcc", "-std=gnu11", "-O1", "-w", "-fcommon", "-I.", "-o", f"{name}.exe"),
        *(str(SOURCES / f"{name}.c"), *stubs, "-lrpcrt4", "-lole32"),
    )
    return directory / f"{name}.exe"


class Wine:
    """Wine with a prefix of its own, inside a network namespace."""

    def __init__(self, namespace: Namespace, directory: Path) -> None:
        self._namespace = namespace
        self._environment = {
            **os.environ,
            "WINEPREFIX": str(directory),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
        }

    def start(self) -> None:
        self.run("wineboot", "--init", timeout=120)

    def run(self, *command: object, timeout: float = 60) -> str:
        done = self._namespace.run(
            ["wine", *command], timeout, env=self._environment, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def steps(self, *command: object) -> list[Step]:
        """What a program prints for each step."""
        return [json.loads(line) for line in self.run(*command).splitlines()]

    def stop(self) -> None:
        self._namespace.run(["wineserver", "--kill"], env=self._environment)
