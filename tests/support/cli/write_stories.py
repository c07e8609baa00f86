"""Run the commands of pages and write into the pages what they print, where it differs.

python -m tests.support.cli.write_stories docs/tutorial.md …
"""

import sys
import tempfile
from pathlib import Path

from tests.support.cli.command_server import quick_commands
from tests.support.cli.documents import Step, agrees, steps
from tests.support.cli.story import Story, is_over_http, machines_of


def main(pages: list[str]) -> None:
    """Bring each page up to date."""
    with tempfile.TemporaryDirectory() as name, quick_commands(Path(name)) as tools:
        for number, page in enumerate(pages):
            _rewrite(Path(page), Path(name) / str(number), tools)


def _rewrite(page: Path, directory: Path, tools: Path) -> None:
    story = steps(page)
    with Story(directory, tools, machines_of(story), over_http=is_over_http(story)) as machines:
        printed = [(step, machines.accept(step)) for step in story]
    lines = page.read_text("utf-8").splitlines()
    for step, shown in reversed(printed):
        if not agrees(step.expected, shown):
            begin = _end_of(step)
            lines[begin : begin + len(step.expected)] = shown
    page.write_text("\n".join(lines) + "\n", "utf-8")


def _end_of(step: Step) -> int:
    """How many lines of the page come before what the command prints."""
    return step.line + step.command.count("\n")


if __name__ == "__main__":
    main(sys.argv[1:])
