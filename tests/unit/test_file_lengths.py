"""A file of more than 600 lines has two subjects."""

from pathlib import Path

import rpcqm

LONGEST = 600


def test_no_file_is_too_long_to_be_read() -> None:
    folders = Path(rpcqm.__file__).parent, Path(__file__).parents[1]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    lines = {path: path.read_text("utf-8").count("\n") for path in files}
    assert [f"{path}: {number}" for path, number in lines.items() if number > LONGEST] == []
