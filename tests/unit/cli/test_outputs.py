"""Output that cannot be written, and output that cannot spell everything."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from rpcqm.base import log
from rpcqm.cli.main import main

EXPLAIN = (sys.executable, "-m", "rpcqm", "explain", "0xC00E0025")


def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("wb") as full:
        outcome = subprocess.run(EXPLAIN, stdout=full, stderr=subprocess.PIPE, check=False)
    assert outcome.returncode == 1
    assert outcome.stderr == b"rpcqm: The output cannot be written: No space left on device.\n"


def test_a_closed_output_is_one_sentence() -> None:
    command = ("sh", "-c", 'exec "$@" >&-', "sh", *EXPLAIN)
    outcome = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    assert outcome.returncode == 1
    assert outcome.stderr == b"rpcqm: The output cannot be written: it is closed.\n"


def test_a_reader_that_goes_away_ends_a_command_quietly() -> None:
    command = " ".join(EXPLAIN) + " | true; echo ${PIPESTATUS[0]}"
    outcome = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (outcome.stdout, outcome.stderr) == (b"0\n", b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_a_terminal_cannot_spell_is_escaped(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(errors, encoding, write_through=True))
    assert main(["explain", "bü€𝄞"]) == 1
    said = errors.getvalue().decode(encoding)
    (word,) = [word for word in said.split() if word.startswith("`")]
    assert json.loads(f'"{word.strip("`.")}"') == "bü€𝄞"


@pytest.mark.parametrize(("set_to", "coloured"), [("1", False), ("", True), (None, True)])
def test_logs_have_no_colours_where_none_are_wanted(
    set_to: str | None, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if set_to is not None:
        monkeypatch.setenv("NO_COLOR", set_to)
    before = structlog.get_config()
    stream = io.StringIO()
    try:
        log.configure(stream=stream)
        log.get_logger("test").info("hello")
    finally:
        structlog.configure(**before)
    assert ("\x1b[" in stream.getvalue()) == coloured
