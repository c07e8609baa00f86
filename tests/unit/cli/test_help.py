"""`rpcqm help`, and the manual page."""

import argparse
from collections.abc import Iterator
from configparser import ConfigParser

import pytest

from rpcqm.cli.main import build_parser, main
from rpcqm.cli.manual import manual_page
from rpcqm.cli.parser_tree import commands_of
from rpcqm.cli.reference import ROOT


@pytest.mark.parametrize("words", [[], ["send"], ["queue"], ["queue", "acl", "grant"]])
def test_help_prints_what_the_option_prints(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(["help", *words]) == 0
    told = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    assert told == capsys.readouterr().out
    assert told.startswith(f"usage: {' '.join(['rpcqm', *words])} ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["frobnicate"], "There is no command `frobnicate`"),
        (["queue", "crate"], "There is no command `crate`; did you mean `create`?"),
    ],
)
def test_help_for_what_is_no_command_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert main(["help", *words]) == 2
    assert sentence in capsys.readouterr().err


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    children = list(commands_of(parser))
    for child in children:
        yield from leaves(child)
    if not children:
        yield parser


def test_the_manual_page_has_every_command_with_every_option() -> None:
    parser = build_parser()
    page = manual_page(parser)
    for command in leaves(parser):
        assert f'\n.SS "{command.prog.replace("-", chr(92) + "-")}' in page
        for option in command._option_string_actions:
            assert option in ("-h", "--help") or option.replace("-", "\\-") in page


def test_no_text_of_the_manual_page_is_taken_for_a_macro() -> None:
    known = (".TH ", ".SH ", ".SS ", ".TP", ".PP", ".B ", ".I ", ".EX", ".EE", '.\\" ')
    for line in manual_page(build_parser()).splitlines():
        assert not line.startswith("'")
        assert not line.startswith(".") or line.startswith(known)


def test_the_manual_page_is_installed() -> None:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["options.data_files"]["share/man/man1"] == "docs/rpcqm.1"
