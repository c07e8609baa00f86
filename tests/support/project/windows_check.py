"""The modules of scripts/windows-check.d, which lie outside of every package."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[3] / "scripts" / "windows-check.d"


def module(name: str) -> Any:
    """One of its modules."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return import_module(name)


def table() -> dict[str, Any]:
    """Its questions by their identifiers."""
    found: dict[str, Any] = module("questions").questions()
    return found


def answers_here(first: str, *without: str) -> dict[str, str]:
    """What the questions whose identifiers begin so have for an answer here."""
    return {
        name: question.here
        for name, question in table().items()
        if name.startswith(first) and name not in without
    }
