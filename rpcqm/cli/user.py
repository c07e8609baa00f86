"""`rpcqm user`: the accounts that callers over the network log on with."""

import argparse
from typing import TYPE_CHECKING

from rpcqm.cli.errors import CommandError, UsageMistake
from rpcqm.cli.options import add_local_options, ask_password, read_password_line
from rpcqm.cli.output import Table, print_json
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.session import with_server
from rpcqm.client.passwords import nt_hash

if TYPE_CHECKING:
    from rpcqm.cli.session import Work
    from rpcqm.client.queue_manager import QueueManagerClient

GROUPS = ("administrators", "users", "guests", "observers")


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "user",
        help="add, list and remove accounts for callers over the network",
        description="Add, list and remove accounts for callers over the network.",
    )
    users = add_commands(parser)
    _add_add(users)
    _add_password(users)
    _add_list(users)
    _add_remove(users)


def _administer(arguments: argparse.Namespace, purpose: str, work: "Work") -> int:
    return with_server(arguments, purpose, work, administrators_only=True)


def _add_add(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "add",
        "Add an account and print its SID.",
        [
            ("rpcqm user add alice", "asks for the password"),
            (
                "rpcqm user add ops --group administrators --password-stdin < secret",
                "one that may do everything",
            ),
            (
                "rpcqm user add auditor --read-only",
                "may see everything, and change nothing",
            ),
        ],
        run_add,
    )
    parser.add_argument("name", metavar="NAME", help="name of the account")
    parser.add_argument(
        "--group",
        metavar="GROUP",
        action="append",
        choices=GROUPS,
        default=[],
        help=f"a group that it belongs to, more than once for several: {', '.join(GROUPS)}",
    )
    parser.add_argument(
        "--read-only",
        action="store_true",
        help="let it look at what administrators see, and change nothing: the group observers",
    )
    _add_password_option(parser)


def _add_password_option(parser: Parser) -> None:
    add_local_options(parser)
    parser.add_argument(
        "--password-stdin",
        dest="account_password_stdin",
        action="store_true",
        help="read the account's password from standard input",
    )


def run_add(arguments: argparse.Namespace) -> int:
    """Add the account."""
    groups = [*arguments.group, *(["observers"] if arguments.read_only else ())]
    if "observers" in groups and len(set(groups)) > 1:
        raise UsageMistake("An account that may only look is in no other group than observers.")
    password_hash = nt_hash(_new_password(arguments))

    async def work(client: "QueueManagerClient") -> None:
        print(await client.accounts.add(arguments.name, password_hash, groups))

    return _administer(arguments, f"add `{arguments.name}`", work)


def _new_password(arguments: argparse.Namespace) -> str:
    """A password from standard input, or typed twice."""
    if arguments.account_password_stdin:
        password = read_password_line()
    else:
        password = ask_password(f"Password for {arguments.name}: ")
        if ask_password("Again: ") != password:
            raise CommandError("The two passwords are not the same; nothing was changed.")
    if not password:
        raise UsageMistake("The password is empty.")
    return password


def _add_password(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "password",
        "Give an account another password; its SID, and so its permissions, stay.",
        [("rpcqm user password alice", "asks for the password")],
        run_password,
    )
    parser.add_argument("name", metavar="NAME", help="name of the account")
    _add_password_option(parser)


def run_password(arguments: argparse.Namespace) -> int:
    """Change the password."""
    password_hash = nt_hash(_new_password(arguments))

    async def work(client: "QueueManagerClient") -> None:
        await client.accounts.set_password(arguments.name, password_hash)

    return _administer(arguments, f"change the password of `{arguments.name}`", work)


def _add_list(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "list",
        "List the accounts.",
        [
            ("rpcqm user list", "names, groups and SIDs"),
            ("rpcqm user list --json", "for a program"),
        ],
        run_list,
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_local_options(parser)


def run_list(arguments: argparse.Namespace) -> int:
    """List the accounts."""

    async def work(client: "QueueManagerClient") -> None:
        accounts = await client.accounts.list()
        if arguments.json:
            print_json(
                [
                    {"name": account.name, "sid": account.sid, "groups": list(account.groups)}
                    for account in accounts
                ]
            )
            return
        table = Table(["NAME", "GROUPS", "SID"])
        for account in accounts:
            table.add(account.name, ", ".join(account.groups), account.sid)
        table.print()

    return _administer(arguments, "list the accounts", work)


def _add_remove(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "remove",
        "Remove an account.",
        [("rpcqm user remove alice", "alice cannot log on any more")],
        run_remove,
    )
    parser.add_argument("name", metavar="NAME", help="name of the account")
    add_local_options(parser)


def run_remove(arguments: argparse.Namespace) -> int:
    """Remove the account."""

    async def work(client: "QueueManagerClient") -> None:
        await client.accounts.remove(arguments.name)

    return _administer(arguments, f"remove `{arguments.name}`", work)
