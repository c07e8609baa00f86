"""The manual page, made of the same texts as `--help`."""

import argparse
from collections.abc import Iterator, Sequence

from rpcqm.cli.options import PASSWORD_VARIABLE
from rpcqm.cli.parser_tree import COMMON, argument_name, commands_of, common_groups

HEADING = """\
.\\" Written by scripts/document from what --help knows.
.TH RPCQM 1 "" rpcqm "User Commands"
"""
ENVIRONMENT = {
    "RPCQM_DATA_DIR": "The data directory of the queue manager on this machine, as --data-dir.",
    "RPCQM_CONFIG": "Its configuration file, as --config.",
    PASSWORD_VARIABLE: "The password for --user.",
    "RPCQM_DEBUG": "Set to anything, errors of the program itself print where they come from.",
}
FILES = {
    "/etc/rpcqm/rpcqm.toml": "The configuration, if no other file is named.",
    "/var/lib/rpcqm": "The data of the system's service.",
}


def manual_page(parser: argparse.ArgumentParser) -> str:
    """rpcqm.1, in the macros of man(7)."""
    _, _, exit_status = (parser.epilog or "").partition("exit status: ")
    commands = list(_leaves(parser))
    lines = [
        *(".SH NAME", f"rpcqm \\- {_text(_lowered(parser.description or ''))}"),
        *(".SH SYNOPSIS", ".B rpcqm", ".I COMMAND", "[ARGUMENT ...]"),
        *(".SH DESCRIPTION", "Each command explains itself with --help too."),
        ".SH COMMANDS",
        *(line for command in commands for line in _command(command)),
        *(line for group in _shared(commands) for line in _group(group)),
        *(".SH EXIT STATUS", _text(exit_status[:1].upper() + exit_status[1:] + ".")),
        *(".SH ENVIRONMENT", *_list(ENVIRONMENT)),
        *(".SH FILES", *_list(FILES)),
    ]
    return HEADING + "".join(f"{line}\n" for line in lines)


def _leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands that do something, with those inside others."""
    children = list(commands_of(parser))
    for child in children:
        yield from _leaves(child)
    if not children:
        yield parser


def _shared(parsers: Sequence[argparse.ArgumentParser]) -> list["argparse._ArgumentGroup"]:
    """The groups of options that many commands have, each once."""
    found = {group.title: group for parser in parsers for group in common_groups(parser)}
    return [found[title] for title in COMMON]


def _command(parser: argparse.ArgumentParser) -> Iterator[str]:
    common = [action for group in common_groups(parser) for action in group._group_actions]
    shown = [a for a in parser._actions if a.dest != "help" and a not in common]
    positional = " ".join(argument_name(action) for action in shown if not action.option_strings)
    yield f".SS {_quoted(f'{parser.prog} {positional}'.strip())}"
    for paragraph in (parser.description or "").split("\n\n"):
        yield _text(paragraph)
        yield ".PP"
    yield from _arguments(shown)
    if groups := [f"\\(lq{_text(str(group.title))}\\(rq" for group in common_groups(parser)]:
        yield ".PP"
        yield f"Options also: {', '.join(groups)}, below."
    yield from (".PP", ".EX", _text((parser.epilog or "").partition("\n")[2]), ".EE")


def _group(group: "argparse._ArgumentGroup") -> Iterator[str]:
    yield f".SH {_quoted(f'OPTIONS: {str(group.title).upper()}')}"
    yield from _arguments(group._group_actions)


def _arguments(actions: Sequence[argparse.Action]) -> Iterator[str]:
    return _list({argument_name(action): action.help or "" for action in actions})


def _list(entries: dict[str, str]) -> Iterator[str]:
    for name, meaning in entries.items():
        yield from (".TP", f".B {_text(name)}", _text(meaning))


def _lowered(text: str) -> str:
    """A sentence as the line after NAME has it."""
    return text[:1].lower() + text[1:].rstrip(".")


def _quoted(text: str) -> str:
    """One argument of a macro."""
    return '"' + _text(text).replace('"', "\\(dq") + '"'


def _text(text: str) -> str:
    """A text in which nothing is a command of roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    escaped = escaped.replace("`", "\\(ga").replace("…", "\\[u2026]").replace("|", "\\(or")
    return "\n".join(f"\\&{line}" if line.startswith(".") else line for line in escaped.split("\n"))
