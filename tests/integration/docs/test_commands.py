"""Every command of the documentation prints what the page says that it prints."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.cli.main import build_parser
from tests.support.cli.command_server import quick_commands
from tests.support.cli.documents import PAGES, ROOT, agrees, blocks, steps, translations
from tests.support.cli.story import Story, StoryFailedError, is_over_http, machines_of

STORIES = [page for page in PAGES if steps(page)]
NEEDS_MORE = re.compile(
    r"rpcqm |podman |systemctl |scripts/|python3|tcpdump |wireshark |spark-submit |export |date "
    r"|/opt/|kubectl |drbdadm |curl |nats-server "
)
"""Commands in ```sh blocks are not run: they need root, another machine, or much time."""
SHELL = [
    (page, number, line)
    for page in PAGES
    for block in blocks(page)
    if block.language in ("sh", "bash")
    for number, line in enumerate("\n".join(block.lines).replace("\\\n", " ").split("\n"))
    if line and not line.startswith("#")
]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with quick_commands(tmp_path_factory.mktemp("tools")) as directory:
        yield directory


@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.name)
def test_each_command_of_a_page_prints_what_the_page_shows(
    page: Path, tmp_path: Path, tools: Path
) -> None:
    story = steps(page)
    with Story(tmp_path, tools, machines_of(story), over_http=is_over_http(story)) as machines:
        for step in story:
            machines.play(step)


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path, tools: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ rpcqm queue create orders\n.\\private$\\bills\n```\n")
    with (
        Story(tmp_path / "story", tools, machines_of(steps(page))) as machines,
        pytest.raises(StoryFailedError, match=r"line 2: rpcqm queue create orders"),
    ):
        machines.play(steps(page)[0])


def test_identifiers_and_times_are_compared_by_their_kind() -> None:
    page = [r"{b612fe70-822d-4a0a-bb8c-fa25e3950d10}\1 at 2026-11-21 03:19:12"]
    printed = [r"{e9f754ff-bda1-4e85-bc20-de8ff1fe21f1}\7  at 2030-01-01 00:00:00"]
    assert agrees(page, printed)
    assert not agrees(page, ["none at 2030-01-01 00:00:00"])
    assert translations(page, printed)[page[0].split()[0]] == printed[0].split()[0]


def test_dots_stand_for_any_text_and_any_lines() -> None:
    assert agrees(["one … three", "…", "end"], ["one two three", "more", "and more", "end"])
    assert not agrees(["one … three", "end"], ["one two three", "more", "end"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_with_prompts_is_run(page: Path) -> None:
    for block in blocks(page):
        if block.language != "console":
            prompts = [line for line in block.lines if re.match(r"[a-z]*[$] ", line)]
            assert not prompts, f"line {block.line}: {prompts[0]}"


def test_what_is_not_run_is_understood() -> None:
    assert SHELL
    parser = build_parser()
    for page, number, line in SHELL:
        assert NEEDS_MORE.match(line), f"{page.relative_to(ROOT)}, {number}: {line}"
        if (found := re.search(r"(?:^|bin/)rpcqm (.*)", line)) is not None:
            parser.parse_args(_words(found[1]))


def _words(text: str) -> list[str]:
    words = shlex.split(text, comments=True)
    stops = [words.index(stop) for stop in ("|", "<", ">", "&") if stop in words]
    return words[: min(stops, default=len(words))]
