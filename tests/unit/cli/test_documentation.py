"""The documentation says what the program does."""

import argparse
import shlex
from collections.abc import Iterator

import pytest

from rpcqm.cli.main import build_parser
from rpcqm.cli.reference import ROOT, documents

README = (ROOT / "README.md").read_text("utf-8")


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Every command that does something, with those inside others."""
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for action in inner:
        for command in action.choices.values():
            yield from commands(command)
    if not inner:
        yield parser


@pytest.mark.parametrize("path", sorted(documents()), ids=lambda path: path.name)
def test_what_is_generated_is_up_to_date(path: object) -> None:
    expected = {str(name): text for name, text in documents().items()}
    assert (ROOT / str(path)).read_text("utf-8") == expected[str(path)], "run scripts/document"


@pytest.mark.parametrize("command", list(commands(build_parser())), ids=lambda each: each.prog)
def test_every_command_has_examples_and_every_option_a_meaning(
    command: argparse.ArgumentParser,
) -> None:
    assert command.prog in (command.epilog or "")
    assert all(action.help for action in command._actions)


def test_every_example_is_a_command_line_that_is_understood() -> None:
    examples = [
        line.strip()
        for command in commands(build_parser())
        for line in (command.epilog or "").splitlines()
        if line.strip().startswith("rpcqm ")
    ]
    assert len(examples) > 25
    for example in examples:
        build_parser().parse_args(words_of(example))


def words_of(line: str) -> list[str]:
    """What the shell would pass on: without redirections and what follows a pipe."""
    words = shlex.split(line, comments=True)[1:]
    for stop in ("|", "<"):
        words = words[: words.index(stop)] if stop in words else words
    return words


def test_the_two_commands_are_named_at_the_beginning() -> None:
    assert "\nscripts/run\n" in README
    assert "\nscripts/test\n" in README
