"""What argparse says of each kind of mistake is understood, and told as a sentence of ours.

argparse tells the kind of a mistake by its English words only, and they change with versions of
Python. Each test here fails where a pattern of rpcqm.cli.parser no longer fits them.
"""

import pytest

from rpcqm.cli.errors import UsageMistake
from rpcqm.cli.parser import Parser, add_commands, whole_number


def parser() -> Parser:
    made = Parser(prog="p")
    made.add_argument("-n", "--number", type=whole_number(0, 9, "a number"), metavar="N")
    made.add_argument("--colour", choices=["green", "blue"])
    made.add_argument("--names", nargs="+")
    pair = made.add_mutually_exclusive_group(required=True)
    pair.add_argument("--all", action="store_true")
    pair.add_argument("--one", action="store_true")
    return made


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--number", "3"], "One of --all, --one is needed; see `p --help`."),
        (["--all", "more"], "`more` is one argument too many; see `p --help`."),
        (["--all", "--numbr=3"], "There is no option --numbr; did you mean --number?"),
        (["--all", "--zzzzz"], "There is no option --zzzzz; see `p --help`."),
        (["--all", "--colour", "red"], "--colour cannot be `red`; there are green, blue; see"),
        (["--all", "--colour", "gren"], "--colour cannot be `gren`; did you mean `green`?"),
        (["--all", "--number"], "--number needs a value; see `p --help`."),
        (["--all", "--names"], "--names needs a value; see `p --help`."),
        (["--all", "--one"], "--one and --all do not go together; see `p --help`."),
        (["--all", "-n", "x"], "--number: `x` is not a number from 0 to 9; see `p --help`."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_kind_of_mistake_is_understood(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageMistake) as caught:
        parser().parse_args(words)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["FROM"], "FROM is missing; see `p --help`."),
        (["FROM", "TO"], "FROM and TO are missing; see `p --help`."),
    ],
)
def test_missing_arguments_are_named(names: list[str], sentence: str) -> None:
    made = Parser(prog="p")
    for name in names:
        made.add_argument(name)
    with pytest.raises(UsageMistake) as caught:
        made.parse_args([])
    assert str(caught.value) == sentence


def test_a_command_that_does_not_exist_is_no_choice_but_a_command() -> None:
    made = Parser(prog="p")
    commands = add_commands(made)
    commands.add_parser("send")
    commands.add_parser("serve")
    with pytest.raises(UsageMistake, match=r"^There is no command `sendd`; did you mean `send`\?$"):
        made.parse_args(["sendd"])
    with pytest.raises(UsageMistake, match=r"^There is no command `x`; there are send, serve; see"):
        made.parse_args(["x"])


def test_words_of_argparse_that_no_pattern_fits_are_still_a_sentence() -> None:
    with pytest.raises(UsageMistake, match=r"^Something new happened; see `p --help`\.$"):
        parser().error("something new happened")
