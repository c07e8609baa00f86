"""`rpcqm token`: what programs show instead of a password."""

import argparse
from typing import TYPE_CHECKING

from rpcqm.base.identity import TokenRight
from rpcqm.base.text import iso_time
from rpcqm.base.units import amount
from rpcqm.cli.options import add_local_options
from rpcqm.cli.output import Table, print_json
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.cli.session import Work
    from rpcqm.client.queue_manager import QueueManagerClient

NEVER = "never"
_RIGHTS = ",".join(TokenRight)


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "token",
        help="make, list and delete tokens, which programs show instead of a password",
        description="Make, list and delete tokens, which programs show instead of a password.",
    )
    tokens = add_commands(parser)
    _add_create(tokens)
    _add_list(tokens)
    _add_delete(tokens)


def _administer(arguments: argparse.Namespace, purpose: str, work: "Work") -> int:
    return with_server(arguments, purpose, work, administrators_only=True)


def _add_create(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "create",
        "Make a token and print it; it cannot be shown again, because only its digest is kept.",
        [
            ("rpcqm token create shop --account alice", "may do what alice may"),
            (
                "rpcqm token create meter --account alice --rights peek --queues orders,returns",
                "looks at two queues, and does nothing else",
            ),
            ("rpcqm token create night --account alice --expires 12h", "ends by itself"),
        ],
        run_create,
    )
    parser.add_argument("name", metavar="NAME", help="name of the token")
    parser.add_argument(
        "--account", metavar="ACCOUNT", required=True, help="whose rights it has at most"
    )
    parser.add_argument(
        "--rights",
        metavar="RIGHTS",
        type=_rights,
        default=frozenset(TokenRight),
        help=f"what it leaves of them, separated by commas: {_RIGHTS} (default: all)",
    )
    parser.add_argument(
        "--queues",
        metavar="Q,…",
        type=_queues,
        help="for which queues only, separated by commas (default: all, and the queue manager)",
    )
    parser.add_argument(
        "--expires",
        metavar="TIME",
        type=_life,
        default=0,
        help=f"after which time it ends, such as 30d or 12h (default: {NEVER})",
    )
    add_local_options(parser)


def _rights(text: str) -> frozenset[TokenRight]:
    try:
        return frozenset(TokenRight(word.strip().lower()) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {_RIGHTS}") from None


def _queues(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name")
    return names


def _life(text: str) -> int:
    """Milliseconds; 0 for never."""
    if text.lower() == NEVER:
        return 0
    try:
        life = amount(text, "ms")
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None
    if not life:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; a token that stays: {NEVER}")
    return life


def run_create(arguments: argparse.Namespace) -> int:
    """Make the token."""

    async def work(client: "QueueManagerClient") -> None:
        print(
            await client.tokens.create(
                arguments.name,
                arguments.account,
                arguments.rights,
                arguments.queues,
                arguments.expires,
            )
        )

    return _administer(arguments, f"make the token `{arguments.name}`", work)


def _add_list(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "list",
        "List the tokens, without their texts.",
        [
            ("rpcqm token list", "names, accounts, rights and queues"),
            ("rpcqm token list --json", "for a program"),
        ],
        run_list,
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_local_options(parser)


def run_list(arguments: argparse.Namespace) -> int:
    """List the tokens."""

    async def work(client: "QueueManagerClient") -> None:
        tokens = await client.tokens.list()
        if arguments.json:
            print_json(
                [
                    {
                        "name": token.name,
                        "account": token.account,
                        "rights": list(token.rights),
                        "queues": None if token.queues is None else list(token.queues),
                        "created": iso_time(token.created // 1000),
                        "expires": iso_time(token.expires // 1000),
                    }
                    for token in tokens
                ]
            )
            return
        table = Table(["NAME", "ACCOUNT", "RIGHTS", "QUEUES", "EXPIRES"])
        for token in tokens:
            queues = "all" if token.queues is None else ", ".join(token.queues)
            expires = iso_time(token.expires // 1000) or NEVER
            table.add(token.name, token.account, ", ".join(token.rights), queues, expires)
        table.print()

    return _administer(arguments, "list the tokens", work)


def _add_delete(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "delete",
        "Delete a token, which nobody can use any more.",
        [("rpcqm token delete shop", "programs that show it are refused from now on")],
        run_delete,
    )
    parser.add_argument("name", metavar="NAME", help="name of the token")
    add_local_options(parser)


def run_delete(arguments: argparse.Namespace) -> int:
    """Delete the token."""

    async def work(client: "QueueManagerClient") -> None:
        await client.tokens.delete(arguments.name)

    return _administer(arguments, f"delete the token `{arguments.name}`", work)
