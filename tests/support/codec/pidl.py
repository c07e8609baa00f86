"""Decoders that Samba's pidl generates, run by its ndrdump: a stranger's NDR of any interface."""

import re
import subprocess
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "interop" / "pidl"
PROGRAMS = ("pidl", "gcc", "ndrdump")

_LEAF = re.compile(r"^\s*(\w+|\[\d+\])\s*: (.*)$")
_STRUCTURE = re.compile(r"\*|(?:struct|union) .*|ARRAY\(\d+\).*")
_HEXADECIMAL = re.compile(r"(0x[0-9a-fA-F]+) \(.*\)")
_NAMED = re.compile(r"\w+ \((\d+)\)")

Leaf = int | str


class Pidl:
    """The decoder and encoder of an interface, compiled from tests/interop/pidl."""

    def __init__(self, interface: str, directory: Path) -> None:
        self._interface = interface
        self._directory = directory
        self._library = directory / f"lib{interface}.so"
        self._run("pidl", "--outputdir=.", "--header", "--ndr-parser", "--", _source(interface))
        self._run(
            *("gcc", "-shared", "-fPIC", "-I.", "-I/usr/include/samba-4.0", "-o", self._library),
            *(f"ndr_{interface}.c", "-lndr", "-ltalloc"),
        )

    def request(
        self, opnum: int, stub: bytes, written_again: bool = False
    ) -> list[tuple[str, Leaf]]:
        """What it reads in a request, field by field; AssertionError unless that is all of it.

        With `written_again` it must write the same octets.
        """
        return self._dump(opnum, "in", stub, *["--validate"] * written_again)

    def response(self, opnum: int, stub: bytes, request: bytes) -> list[tuple[str, Leaf]]:
        """The same of a response to a request; it is written again."""
        (self._directory / "context").write_bytes(request)
        context = self._directory / "context"
        return self._dump(opnum, "out", stub, "--validate", "--context-file", context)

    def _dump(self, opnum: int, way: str, stub: bytes, *options: object) -> list[tuple[str, Leaf]]:
        data = self._directory / "data"
        data.write_bytes(stub)
        said = self._run(
            *("ndrdump", "--load-dso", self._library, self._interface, opnum, way, data, *options)
        )
        assert "WARNING" not in said, said
        assert said.endswith("dump OK\n"), said
        dump = said[said.rindex(f" {way}: struct") :]
        return [leaf for line in dump.splitlines() if (leaf := _leaf(line)) is not None]

    def _run(self, *command: object) -> str:
        done = subprocess.run(
            list(map(str, command)),
            cwd=self._directory,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _source(interface: str) -> Path:
    return SOURCES / f"{interface}.idl"


def _leaf(line: str) -> tuple[str, Leaf] | None:
    """Name and value of a line that has a value, not only parts."""
    found = _LEAF.match(line)
    if found is None or _STRUCTURE.fullmatch(found[2]):
        return None
    text = found[2]
    if text.startswith("'"):
        return found[1], text[1:-1]
    number = _HEXADECIMAL.fullmatch(text) or _NAMED.fullmatch(text)
    return found[1], int(number[1], 0) if number else text if text == "NULL" else int(text)
