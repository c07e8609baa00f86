"""Options and arguments by argparse, with one clear sentence for every mistake."""

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from rpcqm.base.units import amount
from rpcqm.cli.errors import UsageMistake

T = TypeVar("T")
Run = Callable[[argparse.Namespace], int]

# argparse tells the kind of a mistake by its words only: `error` gets a text, and the exception
# under it has no more. tests/unit/cli/test_parser.py has a mistake for each of these patterns, so
# that a Python with other words is noticed; until then its own words are the sentence.
_MISSING = re.compile(r"the following arguments are required: (.*)")
_ONE_MISSING = re.compile(r"one of the arguments (.*) is required")
_UNKNOWN = re.compile(r"unrecognized arguments: (.*)", re.DOTALL)
_CHOICE = re.compile(r"argument (.*?): invalid choice: '?(.*?)'? \(choose from (.*)\)", re.DOTALL)
_EXPECTED = re.compile(r"argument (.*?): expected (one|at least one) argument")
_TOGETHER = re.compile(r"argument (.*?): not allowed with argument (.*)")
_ARGUMENT = re.compile(r"argument (.*?): (.*)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageMistake, and shows its epilog without filling lines.

    Behind the option `takes_rest` all words are its value, `--` and options among them.
    """

    takes_rest = ""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _HelpFormatter)
        super().__init__(**settings, allow_abbrev=False)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words, rest = list(sys.argv[1:] if args is None else args), None
        if self.takes_rest and self.takes_rest in words:
            at = words.index(self.takes_rest)
            words, rest = words[:at], words[at + 1 :]
        found, unknown = super().parse_known_args(words, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        if rest is not None:
            setattr(found, self._option_string_actions[self.takes_rest].dest, rest)
        return found, unknown

    def error(self, message: str) -> NoReturn:
        sentence = self._sentence(message)
        hint = f"; see `{self.prog} --help`."
        raise UsageMistake(sentence if sentence.endswith("?") else sentence[:-1] + hint)

    def _sentence(self, message: str) -> str:
        """argparse's words as a sentence."""
        if match := _MISSING.fullmatch(message):
            names = match[1].split(", ")
            return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing."
        if match := _ONE_MISSING.fullmatch(message):
            return f"One of {match[1].replace(' ', ', ')} is needed."
        if match := _UNKNOWN.fullmatch(message):
            return self._unknown(match[1].split()[0])
        if match := _CHOICE.fullmatch(message):
            return self._wrong_choice(match[1], match[2], re.sub(r"'", "", match[3]))
        if match := _EXPECTED.fullmatch(message):
            return f"{_option(match[1])} needs a value."
        if match := _TOGETHER.fullmatch(message):
            return f"{_option(match[1])} and {_option(match[2])} do not go together."
        if match := _ARGUMENT.fullmatch(message):
            return f"{_option(match[1])}: {match[2].rstrip('.')}."
        return message[:1].upper() + message[1:].rstrip(".") + "."

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"`{word}` is one argument too many."
        close = difflib.get_close_matches(word.split("=")[0], self._option_string_actions, 1)
        hint = f"; did you mean {close[0]}?" if close else "."
        return f"There is no option {word.split('=')[0]}{hint}"

    def _wrong_choice(self, name: str, word: str, choices: str) -> str:
        close = difflib.get_close_matches(word, choices.split(", "), 1)
        hint = f"; did you mean `{close[0]}`?" if close else f"; there are {choices}."
        if name == "COMMAND":
            return f"There is no command `{word}`{hint}"
        return f"{_option(name)} cannot be `{word}`{hint}"


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help of at most 96 columns, with room for long option names."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)
        self._width = min(self._width, 96)


def _option(name: str) -> str:
    """The long form of `-s/--server`."""
    return name.split("/")[-1]


def add_commands(parser: argparse.ArgumentParser) -> "argparse._SubParsersAction[Parser]":
    """Add sub-commands, one of which must be given."""
    return parser.add_subparsers(
        title="commands",
        metavar="COMMAND",
        dest=f"command_of_{parser.prog}",
        required=True,
        parser_class=Parser,
    )


def add_command(
    commands: "argparse._SubParsersAction[Parser]",
    name: str,
    summary: str,
    examples: Iterable[tuple[str, str]],
    run: Run,
    details: str = "",
) -> Parser:
    """Add a command; each example is a command line and what it does."""
    parser = commands.add_parser(
        name,
        help=summary[:1].lower() + summary[1:].rstrip("."),
        description=f"{summary}\n\n{details}" if details else summary,
        epilog=_examples(list(examples)),
    )
    parser.set_defaults(run=run)
    return parser


def _examples(examples: Sequence[tuple[str, str]]) -> str:
    lines = ["examples:"]
    for command, meaning in examples:
        lines += [f"  # {meaning}", f"  {command}"]
    return "\n".join(lines)


def whole_number(low: int, high: int, what: str) -> Callable[[str], int]:
    """A type of argument: an integer from `low` to `high`, decimal or 0x…."""

    def parse(text: str) -> int:
        try:
            value = int(text, 0)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"`{text}` is not {what} from {low} to {high}")
        return value

    return parse


LOOKUP_IDENTIFIER = whole_number(1, (1 << 64) - 1, "a lookup identifier")
"""A type of argument: the lookup identifier of a message."""


def amount_in(unit: str, low: int, high: int, what: str) -> Callable[[str], int]:
    """A type of argument: a number of `unit`, or a number with a unit of its own such as `5MB`."""
    plain = whole_number(low, high, what)

    def parse(text: str) -> int:
        if not (text[:1].isdigit() and text[-1:].isalpha()) or text[:2].lower() == "0x":
            return plain(text)
        try:
            value = amount(text, unit)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"`{text}` {error}") from None
        return plain(str(value))

    return parse


def one_of(values: Mapping[str, T], what: str) -> Callable[[str], T]:
    """A type of argument: a word that is a key of `values`."""

    def parse(text: str) -> T:
        if text.lower() not in values:
            close = difflib.get_close_matches(text.lower(), values, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(values)}"
            raise argparse.ArgumentTypeError(f"`{text}` is no {what}; {hint}")
        return values[text.lower()]

    return parse
