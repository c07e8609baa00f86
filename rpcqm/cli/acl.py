"""`rpcqm queue acl`: who may do what with a queue, in plain words."""

import argparse
import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from rpcqm.base.errors import DecodeError, MQError, RpcFault
from rpcqm.base.texts import printable
from rpcqm.cli.errors import CommandError
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.output import Table, print_json
from rpcqm.cli.parser import Parser, add_command, add_commands, one_of
from rpcqm.cli.permissions import (
    FULL,
    RIGHTS,
    WELL_KNOWN,
    Permission,
    denied,
    granted,
    permissions,
    revoked,
    words_of,
)
from rpcqm.cli.session import with_server
from rpcqm.codec.access_check import PreparedDescriptor
from rpcqm.codec.security_descriptor import SecurityDescriptor
from rpcqm.codec.security_identifier import ANONYMOUS, EVERYONE, Sid

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

    Change = Callable[[SecurityDescriptor, Sid, int], SecurityDescriptor]

ADMINISTRATOR = 500
"""The last number in the SID of a machine's own administrator ([MS-DTYP] 2.4.2.4)."""
_OF_A_MACHINE = (21,)

WHO_HELP = f"an account, {', '.join(WELL_KNOWN)}, or a SID"
RIGHTS_HELP = ", ".join(RIGHTS)
DETAILS = """\
A denial wins over what is granted, also by way of a group. `receive` includes `peek`; `full` is
everything. `everyone` is all who have logged on, `anonymous` who has not."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to those of `rpcqm queue`."""
    parser = commands.add_parser(
        "acl",
        help="show and change who may do what",
        description="Show and change who may do what with a queue.",
    )
    lists = add_commands(parser)
    _add_show(lists)
    _add_change(
        lists,
        "grant",
        "Let somebody do something.",
        granted,
        "+",
        [("rpcqm queue acl grant orders alice receive send", "alice may read and write")],
    )
    _add_change(
        lists,
        "deny",
        "Keep somebody from doing something.",
        denied,
        "+",
        [("rpcqm queue acl deny orders anonymous full", "nothing for the unauthenticated")],
    )
    _add_change(
        lists,
        "revoke",
        "Take back what was granted or denied.",
        revoked,
        "*",
        [
            ("rpcqm queue acl revoke orders everyone", "everything that is said of everyone"),
            ("rpcqm queue acl revoke orders alice send", "one right"),
        ],
    )
    _add_owner(lists)


def _add_owner(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "owner",
        "Give a queue another owner, who can always see and change its permissions.",
        [("rpcqm queue acl owner orders administrators", "instead of whoever created it")],
        run_owner,
    )
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    parser.add_argument("who", metavar="WHO", help=WHO_HELP)
    add_server_options(parser)


def _add_show(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "show",
        "Show who may do what.",
        [("rpcqm queue acl show orders", "in plain words")],
        run_show,
    )
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_server_options(parser)


def _add_change(
    commands: "argparse._SubParsersAction[Parser]",
    name: str,
    summary: str,
    change: "Change",
    number: str,
    examples: list[tuple[str, str]],
) -> None:
    parser = add_command(commands, name, summary, examples, run_change, DETAILS)
    parser.set_defaults(change=change)
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    parser.add_argument("who", metavar="WHO", help=WHO_HELP)
    parser.add_argument(
        "rights", metavar="RIGHT", nargs=number, type=one_of(RIGHTS, "right"), help=RIGHTS_HELP
    )
    add_server_options(parser)


def run_show(arguments: argparse.Namespace) -> int:
    """Print the owner and the entries."""
    name = queue_name(arguments, arguments.queue)

    async def work(client: "QueueManagerClient") -> None:
        descriptor = await client.queues.security(name)
        names = await _names(client)
        if arguments.json:
            print_json(_for_programs(descriptor, names))
        else:
            _print_table(descriptor, names)

    return with_server(arguments, f"show the permissions of `{arguments.queue}`", work)


def run_change(arguments: argparse.Namespace) -> int:
    """Change the entries of one account or group, and show what then holds for it."""
    name = queue_name(arguments, arguments.queue)
    mask = functools.reduce(operator.or_, arguments.rights, 0) or FULL

    async def work(client: "QueueManagerClient") -> None:
        sid = await _sid(client, arguments.who)
        descriptor = await client.queues.security(name)
        changed = arguments.change(descriptor, sid, mask)
        _require_a_way_back(changed)
        await client.queues.set_security(name, changed)
        print(_sentence(arguments.who, changed, sid))
        still = _still_allowed(changed, mask) if arguments.change is denied else 0
        if sid == EVERYONE and still:
            print(f"anonymous is not in everyone, and may still: {words_of(still)}.")

    return with_server(arguments, f"change the permissions of `{arguments.queue}`", work)


def run_owner(arguments: argparse.Namespace) -> int:
    """Change the owner, and nothing else."""
    name = queue_name(arguments, arguments.queue)

    async def work(client: "QueueManagerClient") -> None:
        owner = await _sid(client, arguments.who)
        await client.queues.set_security(name, SecurityDescriptor(owner=owner))
        print(f"The owner of `{arguments.queue}` is {arguments.who} now.")

    return with_server(arguments, f"change the owner of `{arguments.queue}`", work)


def _require_a_way_back(descriptor: SecurityDescriptor) -> None:
    """Refuse a list after which nobody could change it any more."""
    way_back = RIGHTS["change-permissions"]
    if not any(p.allowed & ~p.denied & way_back for p in permissions(descriptor)):
        raise CommandError(
            "Nobody could change the permissions any more; grant change-permissions to somebody "
            "first, as with `rpcqm queue acl grant QUEUE administrators full`."
        )


def _sentence(who: str, descriptor: SecurityDescriptor, sid: Sid) -> str:
    nothing = Permission(sid, 0, 0)
    entry = next((p for p in permissions(descriptor) if p.sid == sid), nothing)
    also = f", and is denied: {words_of(entry.denied)}" if entry.denied else ""
    return f"{who} may now: {words_of(entry.allowed)}{also}."


def _still_allowed(descriptor: SecurityDescriptor, mask: int) -> int:
    """What Anonymous may of `mask`."""
    return PreparedDescriptor(descriptor).granted(frozenset({str(ANONYMOUS)})) & mask


async def _names(client: "QueueManagerClient") -> dict[Sid, str]:
    """Names of the well-known and, on the same machine and for administrators, of accounts."""
    names = {sid: word for word, sid in WELL_KNOWN.items()}
    try:
        accounts = await client.accounts.list()
    except (MQError, RpcFault, DecodeError):
        accounts = ()
    return names | {Sid.parse(account.sid): account.name for account in accounts}


async def _sid(client: "QueueManagerClient", who: str) -> Sid:
    if who.lower() in WELL_KNOWN:
        return WELL_KNOWN[who.lower()]
    if who.upper().startswith("S-1-"):
        try:
            return Sid.parse(who.upper())
        except (MQError, ValueError):
            raise CommandError(f"`{who}` is not a valid SID.") from None
    for sid, name in (await _names(client)).items():
        if name.casefold() == who.casefold():
            return sid
    raise CommandError(f"There is no account `{who}` here; give {WHO_HELP}.")


def _for_programs(descriptor: SecurityDescriptor, names: dict[Sid, str]) -> dict[str, object]:
    return {
        "owner": str(descriptor.owner) if descriptor.owner else None,
        "entries": [
            {
                "name": names.get(entry.sid),
                "sid": str(entry.sid),
                "allowed": _list(entry.allowed),
                "denied": _list(entry.denied),
            }
            for entry in permissions(descriptor)
        ],
    }


def _name(sid: Sid, names: dict[Sid, str]) -> str:
    """The name of somebody; root and the service's own user are the administrator."""
    own = sid.sub_authorities[:1] == _OF_A_MACHINE and sid.sub_authorities[-1] == ADMINISTRATOR
    return names.get(sid, "administrator" if own else str(sid))


def _list(mask: int) -> list[str]:
    return words_of(mask).split(", ") if mask else []


def _print_table(descriptor: SecurityDescriptor, names: dict[Sid, str]) -> None:
    if descriptor.owner is not None:
        print(printable(f"Owner: {_name(descriptor.owner, names)}"))
    table = Table(["WHO", "MAY", "MAY NOT"])
    for entry in permissions(descriptor):
        denied_words = words_of(entry.denied) if entry.denied else ""
        table.add(_name(entry.sid, names), words_of(entry.allowed), denied_words)
    table.print()
