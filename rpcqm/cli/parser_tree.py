"""What a parser knows of its commands and arguments, for the pages that are made of it."""

import argparse
from collections.abc import Iterator

COMMON = ("queue manager", "over the network")
"""Titles of the groups of options that many commands have."""


def commands_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands inside a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def common_groups(parser: argparse.ArgumentParser) -> list["argparse._ArgumentGroup"]:
    """The groups of options that many commands have, described once."""
    return [group for group in parser._action_groups if group.title in COMMON]


def argument_name(action: argparse.Action) -> str:
    """An option with its value, or an argument."""
    value = str(action.metavar or "")
    if not action.option_strings:
        return f"[{value}]" if action.nargs in ("?", "*") else value
    names = ", ".join(action.option_strings)
    return f"{names} {value}" if value and action.nargs != 0 else names
