"""`rpcqm open`: who has queues open, and ending that."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from rpcqm.base.errors import MQError, NtStatus
from rpcqm.base.text import visible
from rpcqm.cli.errors import CommandError
from rpcqm.cli.options import QUEUE_HELP, add_local_options, queue_name
from rpcqm.cli.output import Table, counted, print_json, told_time
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.cli.session import Work
    from rpcqm.client.queue_manager import QueueManagerClient

_AT_ONCE = 1000
DETAILS = """\
What a client holds it by is run down, as if the client had gone: reads that wait are cancelled,
messages that were not finished with are given back, what was sent in a transaction is not sent. A
client may open it again; `rpcqm queue acl` keeps an account out. Ending a connection ends
the handles of its client with the last one that it has. On a terminal the command asks first."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "open",
        help="show who has queues open, and end that",
        description="Show who has queues open, and end that; for administrators.",
    )
    opened = add_commands(parser)
    _add_list(opened)
    _add_connections(opened)
    _add_end(opened)


def _add_list(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "list",
        "Show who has queues open: handles with their waiting reads, leases, transactions.",
        [
            ("rpcqm open list orders", "with its journal and its subqueues"),
            ("rpcqm open list", "all queues"),
        ],
        run_list,
    )
    parser.add_argument("queue", metavar="QUEUE", nargs="?", help=QUEUE_HELP)
    parser.add_argument(
        "--limit", metavar="N", type=int, default=_AT_ONCE, help=f"rows (default {_AT_ONCE:,})"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_local_options(parser)


def _add_connections(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "connections",
        "Show the connections of all doors, the oldest first.",
        [("rpcqm open connections", "who has connected, from where")],
        run_connections,
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_local_options(parser)


def _add_end(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "end",
        "End handles, leases, transactions or connections.",
        [
            ("rpcqm open end handle-17", "by its identifier in the list"),
            ("rpcqm open end connection-4 --yes", "without a question"),
        ],
        run_end,
        DETAILS,
    )
    parser.add_argument("id", metavar="ID", nargs="+", help="as the lists show them")
    parser.add_argument("--yes", action="store_true", help="ask nothing, also on a terminal")
    add_local_options(parser)


def _administer(arguments: argparse.Namespace, purpose: str, work: "Work") -> int:
    return with_server(arguments, purpose, work, administrators_only=True)


def run_list(arguments: argparse.Namespace) -> int:
    """Print what is open, page by page."""
    queue: str | None = arguments.queue
    name = None if queue is None else queue_name(arguments, queue)

    async def work(client: "QueueManagerClient") -> None:
        rows: list[dict[str, Any]] = []
        after: str | None = ""
        while after is not None and len(rows) < arguments.limit:
            wanted = min(_AT_ONCE, arguments.limit - len(rows))
            page = await client.maintenance.opened(name, after, wanted)
            rows, after = rows + page["opened"], page["next"]
        if arguments.json:
            print_json(rows)
            return
        _print_rows(rows)
        if after is not None:
            print(f"There are more than {arguments.limit:,}; --limit shows more.", file=sys.stderr)

    subject = "what is open" if queue is None else f"who has `{queue}` open"
    return _administer(arguments, f"show {subject}", work)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    headings = ["ID", "QUEUE", "HELD BY", "FROM", "SINCE", "FOR", ">WAITING", ">MESSAGES"]
    table = Table(headings)
    for each in rows:
        table.add(
            each["id"],
            ", ".join(each["queues"]),
            each["account"] or "the queue manager",
            f"{each['address']} ({each['door']})",
            told_time(each["since"]),
            (each["access"] or each["kind"]) + (", alone" if each["exclusive"] else ""),
            each["waiting"],
            each["messages"],
        )
    table.print()


def run_connections(arguments: argparse.Namespace) -> int:
    """Print the connections."""

    async def work(client: "QueueManagerClient") -> None:
        rows = await client.maintenance.open_connections()
        if arguments.json:
            print_json(rows)
            return
        table = Table(["ID", "BY", "FROM", "LOGGED ON", "SINCE", ">HANDLES"])
        for each in rows:
            accounts = ", ".join(each["accounts"])
            since = told_time(each["since"])
            table.add(each["id"], each["door"], each["peer"], accounts, since, each["handles"])
        table.print()

    return _administer(arguments, "show the connections", work)


def run_end(arguments: argparse.Namespace) -> int:
    """End each, after a question on a terminal."""
    identifiers: list[str] = arguments.id

    async def work(client: "QueueManagerClient") -> None:
        if not arguments.yes and sys.stdin.isatty():
            _ask(identifiers)
        for each in identifiers:
            try:
                await client.maintenance.end_opened(each)
            except MQError as error:
                raise _not_open(error, each) from error
            print(visible(f"{each} has ended."))

    return _administer(arguments, f"end {', '.join(identifiers)}", work)


def _ask(identifiers: list[str]) -> None:
    """Ask on the terminal; CommandError for any other answer than yes."""
    print(f"End {visible(', '.join(identifiers))} as if the client had gone? [y/N] ", end="")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(f"Nothing was ended of {counted(len(identifiers), 'thing')}.")


def _not_open(error: MQError, identifier: str) -> Exception:
    if error.status is NtStatus.STATUS_OBJECT_NAME_NOT_FOUND:
        said = f"`{identifier}` is not open, or not any more; `rpcqm open list` and"
        return CommandError(f"{said} `rpcqm open connections` show what is.")
    return error
