"""The operator's programs of a node."""

import asyncio
import sys
from pathlib import Path

import pytest

from rpcqm.service.cluster import programs
from rpcqm.service.cluster.programs import run_program
from rpcqm.service.start_error import StartError


def run(*words: str) -> None:
    asyncio.run(run_program("replica.on_promote", words, {"RPCQM_NODE": "a b"}))


def test_a_program_has_its_arguments_as_they_are_and_is_told_of_the_node(tmp_path: Path) -> None:
    code = "import os, sys; open(sys.argv[1], 'w').write(sys.argv[2] + os.environ['RPCQM_NODE'])"
    run(sys.executable, "-c", code, str(tmp_path / "told"), "$HOME; x ")
    assert (tmp_path / "told").read_text() == "$HOME; x a b"


def test_no_program_is_none() -> None:
    run()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((sys.executable, "-c", "exit(3)"), "ended with 3."),
        (("/not/there",), "cannot be run: No such file or directory."),
    ],
)
def test_a_program_that_fails_is_told_in_one_sentence(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(StartError) as caught:
        run(*words)
    assert str(caught.value) == f"replica.on_promote: {words[0]} {told}"


def test_a_program_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LONGEST_SECONDS", 0.2)
    with pytest.raises(StartError, match="did not end within"):
        run(sys.executable, "-c", "import time; time.sleep(60)")
