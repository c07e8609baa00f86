"""The table of attacks names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TABLE = Path(__file__).with_name("README.md")
ROWS = re.findall(r"^\| ([^|]+) \| (tests/\S+\.py)::(test_\w+) \|$", TABLE.read_text("utf-8"), re.M)


def functions_of(path: Path) -> set[str]:
    """The names of the functions of a module."""
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("path", "name"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_attack_has_its_test(path: str, name: str) -> None:
    assert name in functions_of(ROOT / path)


def test_every_row_of_the_table_is_read() -> None:
    lines = [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(lines) - 1


def test_every_attack_of_this_directory_is_in_the_table() -> None:
    listed = {name for _, path, name in ROWS}
    made = {
        name
        for path in Path(__file__).parent.glob("test_*_under_attack.py")
        for name in functions_of(path)
        if name.startswith("test_")
    }
    controls = {
        "test_what_alice_sends_unchanged_is_served",
        "test_impackets_ntlm_v2_logs_on",
        "test_alice_reads_her_own_queue",
        "test_a_request_in_pieces_is_carried_out",
    }
    assert made - controls - listed == set()
