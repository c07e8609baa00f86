"""docs/http-api.md says for every command how a program does the same, or why none does."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_every_command_is_there_for_programs_or_needs_the_machine() -> None:
    told = (DOCS / "http-api.md").read_text("utf-8")
    told = told[told.index("## What commands do") : told.index("## Events")]
    commands = re.findall(r"(?m)^## rpcqm ([a-z-]+)", (DOCS / "commands.md").read_text("utf-8"))
    assert len(commands) > 50
    assert [each for each in commands if f"`{each}" not in told] == []
