"""`rpcqm completion`: the script for a shell, and what Tab offers for queues and accounts."""

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rpcqm.base.errors import MQError, RpcFault
from rpcqm.cli.errors import CommandError, ExitStatus
from rpcqm.cli.options import add_local_options, target
from rpcqm.cli.parser import Parser, add_command
from rpcqm.client.target import LocalServer
from rpcqm.codec.security.permissions import WELL_KNOWN

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

    Ask = Callable[[QueueManagerClient], Awaitable[list[str]]]

SHELLS = ("bash", "zsh", "fish")
DETAILS = """\
Tab completes commands, options and files; names of queues, subqueues and accounts come from the
queue manager of this machine that the command line or RPCQM_DATA_DIR names."""
PATIENCE = 2.0
"""Seconds that Tab waits for the queue manager."""
LINE_VARIABLE = "COMP_LINE"
"""Set by the shell: what has been typed."""
PRIVATE = "\\private$\\"
SYSTEM = "\\system$;"
SYSTEM_QUEUES = ("DeadLetter$", "XactDeadLetter$", "Journal$")


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "completion",
        "Print the script that makes Tab complete commands in a shell.",
        [
            ('eval "$(rpcqm completion bash)"', "in ~/.bashrc"),
            ('eval "$(rpcqm completion zsh)"', "in ~/.zshrc, after compinit"),
            ("rpcqm completion fish | source", "in ~/.config/fish/config.fish"),
        ],
        run,
        DETAILS,
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    # Only here, because no other run needs it.
    from argcomplete.shell_integration import shellcode

    shell = "fish" if arguments.shell == "fish" else "bash"  # that of bash serves zsh too
    print(shellcode(["rpcqm"], shell=shell))
    return ExitStatus.OK


def typed_words() -> list[str]:
    """The words that have been typed whole after `rpcqm`, by which one command is loaded alone."""
    words = os.environ.get(LINE_VARIABLE, "").split(" ")
    return [word for word in words[1:-1] if word]


def answer(parser: argparse.ArgumentParser) -> None:
    """Tell the shell what fits what has been typed, and end."""
    import argcomplete

    add_completers(parser)
    argcomplete.autocomplete(parser)


def add_completers(parser: argparse.ArgumentParser) -> None:
    """Give arguments that name queues or accounts, and those with few values, their completers."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                add_completers(child)
        elif found := _completer(parser.prog, action):
            action.completer = found  # type: ignore[attr-defined]


Completer = Callable[..., Iterable[str]]


def _completer(prog: str, action: argparse.Action) -> Completer | None:
    metavar = str(action.metavar or "")
    if "|" in metavar:
        return lambda **_: metavar.split("|")
    if metavar == "NAME" and prog in ("rpcqm user password", "rpcqm user remove"):
        return _asking(_accounts)
    return _BY_METAVAR.get(metavar)


def _asking(ask: "Ask") -> Completer:
    """Asks the queue manager of this machine; offers nothing where it does not answer."""

    def complete(parsed_args: argparse.Namespace, **_: object) -> list[str]:
        try:
            server = target(_with_defaults(parsed_args))
            return asyncio.run(asyncio.wait_for(_answer(server, ask), PATIENCE))
        except (CommandError, MQError, RpcFault, OSError, TimeoutError):
            return []  # Tab prints no errors

    return complete


def _with_defaults(typed: argparse.Namespace) -> argparse.Namespace:
    """What was typed so far; options that the shell has not come to yet have their defaults."""
    parser = Parser(add_help=False)
    add_local_options(parser)
    return argparse.Namespace(**(vars(parser.parse_args([])) | vars(typed)))


async def _answer(server: object, ask: "Ask") -> list[str]:
    from rpcqm.client.queue_manager import QueueManagerClient  # only now: it takes time to load

    if not isinstance(server, LocalServer):
        return []  # elsewhere a password might be needed
    async with QueueManagerClient(server) as client:
        return await ask(client)


async def _queues(client: "QueueManagerClient") -> list[str]:
    """Short names of queues and subqueues, and format names of those elsewhere."""
    try:
        names = [queue.name for queue in (await client.maintenance.status()).queues]
    except (MQError, RpcFault):  # others than administrators are told private queues only
        names = list(await client.management.private_queues())
    return [*sorted(_short(name) for name in names if SYSTEM not in name), *SYSTEM_QUEUES]


def _short(name: str) -> str:
    """A private queue of this machine as it is typed."""
    if "=" in name:
        return name
    _, private, tail = name.partition(PRIVATE)
    return tail if private else f".\\{name.partition(chr(92))[2]}"


async def _accounts(client: "QueueManagerClient") -> list[str]:
    return [account.name for account in await client.accounts.list()]


async def _everybody(client: "QueueManagerClient") -> list[str]:
    return [*await _accounts(client), *WELL_KNOWN]


_BY_METAVAR: Mapping[str, Completer] = {
    **dict.fromkeys(("QUEUE", "FROM", "TO", "Q", "PATTERN"), _asking(_queues)),
    "WHO": _asking(_everybody),
}
"""Completers of arguments and options by what the help calls them."""
