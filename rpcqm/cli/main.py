"""The `rpcqm` command."""

import codecs
import contextlib
import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from rpcqm.base.text import json_escapes, visible
from rpcqm.cli.errors import CommandError, ExitStatus, reason
from rpcqm.cli.interrupts import raise_again
from rpcqm.cli.parser import Parser, add_commands

CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
"""Errors of the system for an output that cannot be written."""
COMPLETION_VARIABLE = "_ARGCOMPLETE"
"""Set by the shell when the user presses Tab."""
DEBUG_VARIABLE = "RPCQM_DEBUG"
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
  4 no message came in time"""

COMMANDS = {
    "serve": "serve",
    "queue": "queue",
    "machine": "machine",
    "user": "user",
    "token": "token",
    "send": "send",
    "receive": "receive",
    "peek": "receive",
    "move": "move",
    "purge": "purge",
    "dead-letter": "dead_letter",
    "explain": "explain",
    "trace": "explain",
    "network": "network",
    "migrate": "migrate",
    "status": "status",
    "top": "top",
    "doctor": "doctor",
    "identity": "identity",
    "fsck": "fsck",
    "backup": "backup",
    "restore": "backup",
    "compact": "compact",
    "config": "config",
    "console": "console",
    "service": "service",
    "capture": "capture",
    "pipeline": "pipeline",
    "completion": "completion",
    "help": "help",
}
"""Every command and the module that adds it."""


def build_parser(words: Sequence[str] = ()) -> Parser:
    """A parser for the command in `words`, or for every command if `words` names no command."""
    parser = Parser(prog="rpcqm", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"rpcqm {version('rpcqm')}")
    commands = add_commands(parser)
    for module in _modules(words):
        import_module(f"rpcqm.cli.{module}").add(commands)
    return parser


def _modules(words: Sequence[str]) -> list[str]:
    """The modules to import: one command does not need the others."""
    if words and words[0] in COMMANDS:
        return [COMMANDS[words[0]]]
    return list(dict.fromkeys(COMMANDS.values()))


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
        completion.answer(build_parser(completion.typed_words()))
    parser = build_parser(words)
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
