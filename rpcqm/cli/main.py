"""The `rpcqm` command."""

import argparse
import codecs
import contextlib
import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from rpcqm.base.text import json_escapes, visible
from rpcqm.cli.errors import CommandError, ExitStatus, reason
from rpcqm.cli.interrupts import raise_again
from rpcqm.cli.parser import Parser, add_commands

CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
"""Errors of the system for an output that cannot be written."""
COMPLETION_VARIABLE = "_ARGCOMPLETE"
"""Set by the shell when the user presses Tab."""
DEBUG_VARIABLE = "RPCQM_DEBUG"
ALONE = frozenset({"-h", "--help", "--version"})
"""Options that print something and end, whatever comes after them."""
LINES = "\n"
"""Several mistakes stand on lines of their own; nothing else moves the cursor of a terminal."""
DESCRIPTION = "An MSMQ-compatible queue manager, and the commands to use it."
EPILOG = """\
examples:
  rpcqm serve                        # run a queue manager, with its data in ./var
  rpcqm queue create orders
  rpcqm send orders --body hello
  rpcqm receive orders
exit status: 0 done, 1 the queue manager refused, 2 wrong usage, 3 no queue manager to talk to,
  4 no message came in time, 5 `apply --plan` found a difference"""

COMMANDS = {
    "serve": ("serve", "run a queue manager"),
    "queue": ("queue", "create, list, show, set, rename and delete queues"),
    "machine": ("machine", "show and change who may do what with the queue manager itself"),
    "acl": ("acl_explain", "tell what an account may do with a queue, and by which entry"),
    "open": ("opened", "show who has queues open, and end that"),
    "user": ("user", "add, list and remove accounts for callers over the network"),
    "token": ("token", "make, list and delete tokens, which programs show instead of a password"),
    "trigger": ("trigger", "make, list, change and try rules of triggers"),
    "triggers": ("triggers", "run the service of triggers"),
    "send": ("send", "send messages to a queue"),
    "scheduled": ("scheduled", "list and cancel messages that wait for their time"),
    "receive": ("receive", "take messages out of a queue"),
    "peek": ("receive", "look at messages and leave them in their queue"),
    "find": ("find", "find messages by what they are and what they say"),
    "move": ("move", "move messages to a subqueue, or to another queue here or elsewhere"),
    "copy": ("move", "copy messages to another queue, here or elsewhere"),
    "resend": (
        "resend",
        "send messages of a queue again, to where they were for or elsewhere, as they are or "
        "changed",
    ),
    "purge": ("purge", "delete all messages of a queue"),
    "export": ("definitions", "write the definitions of the queue manager to a file"),
    "apply": (
        "definitions",
        "make queues, accounts, permissions and triggers as a file of definitions says",
    ),
    "dead-letter": ("dead_letter", "list, inspect and resend dead letters"),
    "explain": (
        "explain",
        "explain a code, what became of a message, or what is on its way to a queue elsewhere",
    ),
    "trace": (
        "explain",
        "tell what became of a message, or what is on its way to a queue elsewhere",
    ),
    "directory": (
        "directory",
        "try an Active Directory, show and export what it has, join and leave it, and publish "
        "public queues in it",
    ),
    "network": ("network", "let messages to other queue managers go, or hold them back"),
    "cluster": ("cluster", "show and change which node of a cluster is the queue manager"),
    "maintenance": ("maintenance", "take no new messages for a time, while readers go on"),
    "migrate": ("migrate", "make the queues of a Windows computer here"),
    "status": (
        "status",
        "show what the queues do: messages in and out, the oldest message, waiting readers",
    ),
    "top": (
        "top",
        "watch the queue manager in the terminal: what needs attention, and the busiest queues",
    ),
    "doctor": ("doctor", "check whether a queue manager can do its work here"),
    "identity": ("identity", "say what a data directory is that was copied or moved"),
    "fsck": ("fsck", "check the data directory of a queue manager that does not run"),
    "backup": (
        "backup",
        "copy everything that is durable to a directory, while the queue manager runs",
    ),
    "restore": ("backup", "make a data directory from a backup"),
    "compact": ("compact", "give the disk space of removed messages back"),
    "config": ("config", "check configuration and directory files"),
    "console": ("console", "open the operator's pages in a browser, logged on without a password"),
    "service": ("service", "install the system's service"),
    "capture": ("capture", "look at recorded traffic"),
    "pipeline": ("pipeline", "jobs on Spark over captures and queues"),
    "completion": ("completion", "print the script that makes Tab complete commands in a shell"),
    "help": ("help", "explain a command, as its --help does"),
}
"""Every command: the module that adds it, and what it does, as that says it too."""


class _Version(argparse._VersionAction):
    """Tells the version; it reads the metadata only when it is asked, for that takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        metadata = import_module("importlib.metadata")
        print(f"rpcqm {metadata.version('rpcqm')}")
        parser.exit()


def build_parser(words: Sequence[str] = ()) -> Parser:
    """A parser for the command in `words`, or for every command if `words` names no command."""
    parser, commands = _empty_parser()
    for module in _modules(words):
        import_module(f"rpcqm.cli.{module}").add(commands)
    return parser


def outline() -> Parser:
    """A parser that knows what the commands are, and nothing of their arguments.

    It does for the list of commands and for a word that is none: to load all would take longest.
    """
    parser, commands = _empty_parser()
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary)
    return parser


def parser_for(words: Sequence[str]) -> Parser:
    """A parser that understands these words, which loads no more than they need."""
    if words and (words[0] in COMMANDS or (words[0].startswith("-") and words[0] not in ALONE)):
        return build_parser(words)
    return outline()


def _empty_parser() -> "tuple[Parser, argparse._SubParsersAction[Parser]]":
    parser = Parser(prog="rpcqm", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action=_Version, help="show program's version number and exit")
    return parser, add_commands(parser)


def _modules(words: Sequence[str]) -> list[str]:
    """The modules to import: one command does not need the others."""
    if words and words[0] in COMMANDS:
        return [COMMANDS[words[0]][0]]
    return list(dict.fromkeys(module for module, _ in COMMANDS.values()))


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the return value is the exit status.

    Every mistake is one sentence on standard error; a reader of the output that goes away, as
    `head` does, ends the command quietly.
    """
    words = sys.argv[1:] if arguments is None else arguments
    try:
        _prepare_output(words)
        status = _run(words)
        sys.stdout.flush()
    except CommandError as error:
        return _fail(error)
    except BrokenPipeError:  # `head` and the like have read enough: that is no error
        _forget_output()
        return ExitStatus.OK
    except OSError as error:
        if error.errno in CANNOT_WRITE:
            _forget_output()
            return _fail(CommandError(f"The output cannot be written: {reason(error)}."))
        if error.filename is None:
            return _fail_unexpectedly(error)
        return _fail(CommandError(f"{error.filename} cannot be used: {reason(error)}."))
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except Exception as error:  # a person gets one sentence, never a traceback
        return _fail_unexpectedly(error)
    return status


def _prepare_output(words: list[str]) -> None:
    """Open an output if there is none, and write what it cannot spell as escapes.

    Raises CommandError if the output is closed: a message that cannot be printed should not leave
    its queue. `serve` needs no output.
    """
    closed = sys.stdout is None
    if closed:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if closed and words[:1] != ["serve"]:
        raise CommandError("The output cannot be written: it is closed.")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="rpcqm")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Escapes that are good in JSON too."""
    assert isinstance(error, UnicodeEncodeError)
    return json_escapes(error.object[error.start : error.end]), error.end


codecs.register_error("rpcqm", _escaped)


def _forget_output() -> None:
    """Keep Python from writing to a failed output once more when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    if COMPLETION_VARIABLE in os.environ:
        completion = import_module("rpcqm.cli.completion")  # only now: no other run needs it
        completion.answer(parser_for(completion.typed_words()))
    parser = parser_for(words)
    if not words:
        parser.print_help()
        return ExitStatus.WRONG_USAGE
    arguments = parser.parse_args(words)
    raise_again()
    run = arguments.run
    status: int = run(arguments)
    return status


def _fail(error: CommandError) -> int:
    print(f"rpcqm: {visible(str(error), keep=LINES)}", file=sys.stderr)
    return error.status


def _fail_unexpectedly(error: Exception) -> int:
    """Tell an error of the program itself; a variable makes it print the traceback."""
    if DEBUG_VARIABLE in os.environ:
        traceback.print_exc()
    text = visible(str(error), keep=LINES)
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    hint = f"set {DEBUG_VARIABLE}=1 to see where"
    print(f"rpcqm: An error that should not happen ({reason}); {hint}.", file=sys.stderr)
    return ExitStatus.REFUSED
