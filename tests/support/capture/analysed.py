"""Captures whose calls are wanted all at once."""

from collections.abc import Sequence
from pathlib import Path

from rpcqm.capture.analysis import Exchange, analyse
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.unsealing.accounts import UnsealingAccount


def calls_of(
    path: Path, accounts: Sequence[UnsealingAccount] = ()
) -> tuple[list[Exchange], Problems]:
    """Every call and packet of a capture, in the order in which they were complete."""
    found: list[Exchange] = []
    problems = Problems(str(path))
    analyse(path, found.append, problems, accounts)
    return found, problems
