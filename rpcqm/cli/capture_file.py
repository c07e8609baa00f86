"""The capture that a command is about: its options, and reading it with its problems told."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.text import visible
from rpcqm.cli.errors import CommandError, UsageMistake
from rpcqm.cli.output import counted

if TYPE_CHECKING:
    from rpcqm.capture.analysis import Exchange
    from rpcqm.capture.conversation.call import Conversation
    from rpcqm.capture.file.problems import Problem, Problems
    from rpcqm.capture.unsealing.accounts import UnsealingAccount

_TOLD = 20
"""Problems of a file that are shown one by one; the rest is counted."""


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add the capture, and the accounts that unseal it."""
    parser.add_argument("file", metavar="FILE", type=Path, help="the capture")
    parser.add_argument(
        "--account",
        metavar="ACCOUNT",
        action="append",
        default=[],
        help="unseal with DOMAIN\\user:password, DOMAIN\\user:NT-HASH, or a file of such lines; "
        "may be given more than once",
    )
    parser.add_argument(
        "--keytab",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="unseal what was said to the services whose Kerberos keys are in it; "
        "may be given more than once",
    )


def accounts_of(arguments: argparse.Namespace) -> "list[UnsealingAccount]":
    """The accounts that the options give; CommandError."""
    from rpcqm.capture.unsealing.accounts import AccountError, read_accounts, read_keytabs

    option = "--account"
    try:
        accounts = read_accounts(arguments.account)
        option = "--keytab"
        return accounts + read_keytabs(arguments.keytab)
    except AccountError as error:
        raise UsageMistake(f"{option}: {error}") from None
    except OSError as error:
        raise UsageMistake(
            f"{option}: {error.filename} cannot be read: {error.strerror}."
        ) from None


def read(
    path: Path,
    emit: "Callable[[Exchange], None]",
    accounts: "list[UnsealingAccount]",
    opened: "Callable[[Conversation], None] | None" = None,
) -> "Problems":
    """Analyse a capture and print its problems; raises CommandError if it is not a capture."""
    from rpcqm.capture.analysis import analyse

    return guarded(path, lambda told: analyse(path, emit, told, accounts, opened=opened))


def guarded(path: Path, work: "Callable[[Problems], object]") -> "Problems":
    """Work on a capture and print its problems; raises CommandError if it is not a capture."""
    from rpcqm.capture.file.problems import Problems
    from rpcqm.capture.file.reading import CaptureError

    problems = Problems(str(path), _tell, _TOLD)
    try:
        work(problems)
    except CaptureError as error:
        raise CommandError(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    if problems.total:
        kinds = ", ".join(f"{number} {kind}" for kind, number in problems.counts.items())
        told = f"{path}: {counted(problems.total, 'problem')}: {kinds}."
        print(f"rpcqm: {visible(told)}", file=sys.stderr)
    return problems


def _tell(problem: "Problem") -> None:
    print(f"rpcqm: {visible(str(problem))}", file=sys.stderr)
