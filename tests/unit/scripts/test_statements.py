"""scripts/statements counts what is carried out, in the rooms of a commit."""

import subprocess
from collections import Counter
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "statements"

_loader = SourceFileLoader("statements", str(SCRIPT))
_spec = spec_from_loader("statements", _loader)
assert _spec
script = module_from_spec(_spec)
_loader.exec_module(script)

SOURCE = '''"""A text."""

X = 1
"""What it is."""


class C:
    """A text."""

    def f(self) -> None:
        """A text."""
        if X:
            print("no text")
'''


def test_texts_are_no_statements() -> None:
    assert script.statements(SOURCE) == len(["X", "class", "def", "if", "print"])


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("rpcqm/__main__.py", "(none)"),
        ("rpcqm/codec/ndr/decode.py", "codec"),
        ("rpcqm/codec/types/mqmp.pyi", "codec/types (stubs)"),
    ],
)
def test_a_room_has_all_that_is_below_it(path: str, room: str) -> None:
    assert script.room_of(path) == room


def test_of_two_commits_it_says_what_the_last_has_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.net"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    file = tmp_path / "rpcqm" / "store" / "index.py"
    file.parent.mkdir(parents=True)
    git("init", "-q")
    for source in ("X = 1\n", SOURCE):
        file.write_text(source)
        git("add", ".")
        git("commit", "-q", "-m", "A commit")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    assert script.count("HEAD~1") == Counter(store=1)
    *_, last = script.table(["HEAD~1", "HEAD"])
    assert last.split() == ["all", "1", "5", "+4"]


def test_a_commit_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(SystemExit, match="no-such-commit"):
        script.count("no-such-commit")
