"""`rpcqm queue acl` and `rpcqm machine acl`: permissions in plain words."""

import argparse
import functools
import operator
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rpcqm.base.errors import MQError
from rpcqm.base.text import visible
from rpcqm.cli.account_names import is_administrator, is_of_a_machine, names_of_accounts
from rpcqm.cli.acl_explain import add_explain
from rpcqm.cli.errors import CommandError
from rpcqm.cli.options import QUEUE_HELP, add_local_options, add_server_options, queue_name
from rpcqm.cli.output import Table, print_json
from rpcqm.cli.parser import Parser, add_command, add_commands, one_of
from rpcqm.cli.session import with_server
from rpcqm.codec.security.access_check import PreparedDescriptor
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.codec.security.identifier import ANONYMOUS, EVERYONE, Sid
from rpcqm.codec.security.permissions import (
    MACHINE,
    QUEUE,
    WELL_KNOWN,
    Permission,
    Vocabulary,
    denied,
    granted,
    has_way_back,
    permissions,
    revoked,
    rights_in,
    undenied,
    words_of,
)

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

    Change = Callable[[SecurityDescriptor, Sid, int, Vocabulary], SecurityDescriptor]

_ALL = {word: WELL_KNOWN[word] for word in ("everyone", "authenticated")}
"""Groups that every account is in."""

WHO_HELP = f"an account, {', '.join(WELL_KNOWN)}, or a SID"
DETAILS = """\
A denial wins over what is granted, also by way of a group; what was granted stays in the list, and
counts again after `revoke --denied`. `receive` includes `peek`; `full` is
everything. `everyone` is all who have logged on, `anonymous` who has not."""
MACHINE_DETAILS = """\
A denial wins over what is granted, also by way of a group; what was granted stays in the list, and
counts again after `revoke --denied`. `create-queue` is for queues of any
kind; the dead-letter queues and the journal of the queue manager have no permissions of their own.
`full` is everything. `everyone` is all who have logged on, `anonymous` who has not."""
_SUMMARIES = {
    "grant": "Let somebody do something.",
    "deny": "Keep somebody from doing something.",
    "revoke": "Take back what was granted or denied.",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """An object with permissions: a queue, or the queue manager itself."""

    vocabulary: Vocabulary
    name: str
    grant: str
    """The command that grants something, up to WHO."""
    read: "Callable[[QueueManagerClient], Awaitable[SecurityDescriptor]]"
    write: "Callable[[QueueManagerClient, SecurityDescriptor], Awaitable[None]]"


def _queue(arguments: argparse.Namespace) -> Subject:
    name = queue_name(arguments, arguments.queue)
    return Subject(
        QUEUE,
        f"`{arguments.queue}`",
        f"rpcqm queue acl grant {shlex.quote(arguments.queue)}",
        lambda client: client.queues.security(name),
        lambda client, descriptor: client.queues.set_security(name, descriptor),
    )


def _machine(_: argparse.Namespace) -> Subject:
    return Subject(
        MACHINE,
        "the queue manager",
        "rpcqm machine acl grant",
        lambda client: client.maintenance.security(),
        lambda client, descriptor: client.maintenance.set_security(descriptor),
    )


_OF_QUEUES = {
    "show": [("rpcqm queue acl show orders", "in plain words")],
    "grant": [("rpcqm queue acl grant orders alice receive send", "alice may read and write")],
    "deny": [("rpcqm queue acl deny orders anonymous full", "nothing for the unauthenticated")],
    "revoke": [
        ("rpcqm queue acl revoke orders everyone", "everything that is said of everyone"),
        ("rpcqm queue acl revoke orders alice send", "one right"),
        ("rpcqm queue acl revoke orders alice --denied", "what was granted before counts again"),
    ],
    "owner": [("rpcqm queue acl owner orders administrators", "instead of its creator")],
    "explain": [
        ("rpcqm queue acl explain orders alice", "what alice may, and by which entry"),
        ("rpcqm queue acl explain orders alice --token meter", "what a token of hers may"),
    ],
}
_OF_THE_MACHINE = {
    "show": [("rpcqm machine acl show", "in plain words")],
    "grant": [
        ("rpcqm machine acl grant alice receive-dead-letter", "alice may empty those queues")
    ],
    "deny": [("rpcqm machine acl deny guests create-queue", "no queues made by guests")],
    "revoke": [
        ("rpcqm machine acl revoke authenticated create-queue", "only administrators create")
    ],
    "owner": [("rpcqm machine acl owner administrators", "as it was in the beginning")],
    "explain": [("rpcqm machine acl explain alice", "what alice may, and by which entry")],
}
"""Examples of each command, with what they do."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to those of `rpcqm queue`."""
    _add_all(commands, "a queue", _OF_QUEUES, DETAILS, of_queue=True)


def add_machine(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to those of `rpcqm machine`."""
    _add_all(commands, "the queue manager", _OF_THE_MACHINE, MACHINE_DETAILS, of_queue=False)


def _add_all(
    commands: "argparse._SubParsersAction[Parser]",
    what: str,
    examples: dict[str, list[tuple[str, str]]],
    details: str,
    *,
    of_queue: bool,
) -> None:
    parser = commands.add_parser(
        "acl",
        help="show and change who may do what",
        description=f"Show and change who may do what with {what}.",
    )
    lists = add_commands(parser)
    _add_show(lists, examples["show"], of_queue=of_queue)
    for name, change in (("grant", granted), ("deny", denied), ("revoke", revoked)):
        _add_change(lists, name, change, examples[name], details, of_queue=of_queue)
    _add_owner(lists, what, examples["owner"], of_queue=of_queue)
    add_explain(lists, examples["explain"], of_queue=of_queue)


def _add_subject(parser: Parser, of_queue: bool) -> None:
    parser.set_defaults(subject=_queue if of_queue else _machine)
    if of_queue:
        parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)


def _add_options(parser: Parser, of_queue: bool) -> None:
    """Add the options; only programs of its machine may see the queue manager's permissions."""
    if of_queue:
        add_server_options(parser)
    else:
        add_local_options(parser)


def _add_owner(
    commands: "argparse._SubParsersAction[Parser]",
    what: str,
    examples: list[tuple[str, str]],
    *,
    of_queue: bool,
) -> None:
    parser = add_command(
        commands,
        "owner",
        f"Give {what} another owner, who can always see and change its permissions.",
        examples,
        run_owner,
    )
    _add_subject(parser, of_queue)
    parser.add_argument("who", metavar="WHO", help=WHO_HELP)
    _add_options(parser, of_queue)


def _add_show(
    commands: "argparse._SubParsersAction[Parser]",
    examples: list[tuple[str, str]],
    *,
    of_queue: bool,
) -> None:
    parser = add_command(commands, "show", "Show who may do what.", examples, run_show)
    _add_subject(parser, of_queue)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    _add_options(parser, of_queue)


def _add_change(
    commands: "argparse._SubParsersAction[Parser]",
    name: str,
    change: "Change",
    examples: list[tuple[str, str]],
    details: str,
    *,
    of_queue: bool,
) -> None:
    parser = add_command(commands, name, _SUMMARIES[name], examples, run_change, details)
    parser.set_defaults(change=change)
    _add_subject(parser, of_queue)
    parser.add_argument("who", metavar="WHO", help=WHO_HELP)
    words = (QUEUE if of_queue else MACHINE).words
    parser.add_argument(
        "rights",
        metavar="RIGHT",
        nargs="*" if change is revoked else "+",
        type=one_of(words, "right"),
        help=", ".join(words),
    )
    if change is revoked:
        parser.add_argument(
            "--denied",
            dest="change",
            action="store_const",
            const=undenied,
            help="only what was denied; what was granted counts again",
        )
    _add_options(parser, of_queue)


def run_show(arguments: argparse.Namespace) -> int:
    """Print the owner and the entries."""
    subject = arguments.subject(arguments)

    async def work(client: "QueueManagerClient") -> None:
        descriptor = await subject.read(client)
        names = await names_of_accounts(client, *_named_in(descriptor))
        if arguments.json:
            print_json(_for_programs(descriptor, names, subject.vocabulary))
        else:
            removed = _removed(descriptor, names)
            known = names | {sid: f"removed account {sid}" for sid in removed}
            _print_table(descriptor, known, subject.vocabulary)
            for sid in removed:
                revoke = subject.grant.replace(" grant", " revoke", 1)
                print(f"`{revoke} {sid}` takes out what a removed account may.")

    return with_server(arguments, f"show the permissions of {subject.name}", work)


def run_change(arguments: argparse.Namespace) -> int:
    """Change the entries of one account or group, and show its permissions afterwards."""
    subject = arguments.subject(arguments)
    words = subject.vocabulary
    mask = functools.reduce(operator.or_, arguments.rights, 0) or words.full

    async def work(client: "QueueManagerClient") -> None:
        sid = await _sid(client, arguments.who)
        descriptor = await subject.read(client)
        changed = arguments.change(descriptor, sid, mask, words)
        _require_a_way_back(changed, subject)
        await subject.write(client, changed)
        print(visible(_sentence(arguments.who, changed, sid, words)))
        if arguments.change is granted and sid not in _ALL.values():
            _print_what_all_may(changed, subject)
        still = _still_allowed(changed, mask, words) if arguments.change is denied else 0
        if sid == EVERYONE and still:
            print(f"anonymous is not in everyone, and may still: {words_of(still, words)}.")

    return with_server(arguments, f"change the permissions of {subject.name}", work)


def _print_what_all_may(descriptor: SecurityDescriptor, subject: Subject) -> None:
    """Say what all accounts may, who got a right has it perhaps only together with them."""
    words = subject.vocabulary
    for entry in permissions(descriptor, words):
        who = next((word for word, sid in _ALL.items() if sid == entry.sid), None)
        if who is not None and (still := entry.allowed & ~entry.denied):
            revoke = subject.grant.replace(" grant", " revoke", 1)
            told = f"{who} may still: {words_of(still, words)}; `{revoke} {who}` ends that."
            print(visible(told))


def run_owner(arguments: argparse.Namespace) -> int:
    """Change the owner, and nothing else."""
    subject = arguments.subject(arguments)

    async def work(client: "QueueManagerClient") -> None:
        owner = await _sid(client, arguments.who)
        await subject.write(client, SecurityDescriptor(owner=owner))
        print(visible(f"The owner of {subject.name} is {arguments.who} now."))

    return with_server(arguments, f"change the owner of {subject.name}", work)


def _require_a_way_back(descriptor: SecurityDescriptor, subject: Subject) -> None:
    """Refuse a list after which no account could change the permissions any more."""
    if not has_way_back(descriptor, subject.vocabulary):
        raise CommandError(
            "Nobody could change the permissions any more; grant change-permissions to somebody "
            f"first, as with `{subject.grant} administrators full`."
        )


def _sentence(who: str, descriptor: SecurityDescriptor, sid: Sid, words: Vocabulary) -> str:
    nothing = Permission(sid, 0, 0)
    entry = next((p for p in permissions(descriptor, words) if p.sid == sid), nothing)
    also = f", and is denied: {words_of(entry.denied, words)}" if entry.denied else ""
    return f"{who} may now: {words_of(entry.allowed & ~entry.denied, words)}{also}."


def _still_allowed(descriptor: SecurityDescriptor, mask: int, words: Vocabulary) -> int:
    """The rights of `mask` that Anonymous has."""
    prepared = PreparedDescriptor(descriptor, words.mapping)
    return prepared.granted(frozenset({str(ANONYMOUS)})) & mask


def _removed(descriptor: SecurityDescriptor, names: dict[Sid, str]) -> list[Sid]:
    """Who has entries and was an account of this queue manager, which is there no more.

    Accounts of one machine differ in the last number only, which is never given again.
    """
    machines = {
        sid.sub_authorities[:-1]
        for sid, name in names.items()
        if is_of_a_machine(sid) and "\\" not in name  # which those of a domain have
    }
    return [
        entry.sid
        for entry in permissions(descriptor)
        if entry.sid not in names
        and entry.sid.sub_authorities[:-1] in machines
        and not is_administrator(entry.sid)
    ]


def _named_in(descriptor: SecurityDescriptor) -> set[Sid]:
    """Whose identifiers are in a descriptor."""
    owner = [descriptor.owner] if descriptor.owner is not None else []
    return {*owner, *(entry.sid for entry in permissions(descriptor))}


async def _sid(client: "QueueManagerClient", who: str) -> Sid:
    if who.lower() in WELL_KNOWN:
        return WELL_KNOWN[who.lower()]
    if who.upper().startswith("S-1-"):
        try:
            return Sid.parse(who.upper())
        except (MQError, ValueError):
            raise CommandError(f"`{who}` is not a valid SID.") from None
    elsewhere = (who,) if "\\" in who else ()
    for sid, name in (await names_of_accounts(client, *elsewhere)).items():
        if name.casefold() == who.casefold():
            return sid
    raise CommandError(f"There is no account `{who}` here; give {WHO_HELP}.")


def _for_programs(
    descriptor: SecurityDescriptor, names: dict[Sid, str], words: Vocabulary
) -> dict[str, object]:
    return {
        "owner": str(descriptor.owner) if descriptor.owner else None,
        "entries": [
            {
                "name": names.get(entry.sid),
                "sid": str(entry.sid),
                "allowed": rights_in(entry.allowed, words),
                "denied": rights_in(entry.denied, words),
            }
            for entry in permissions(descriptor, words)
        ],
    }


def _name(sid: Sid, names: dict[Sid, str]) -> str:
    """The name of an account; root and the service's own user are the administrator."""
    return names.get(sid, "administrator" if is_administrator(sid) else str(sid))


def _print_table(descriptor: SecurityDescriptor, names: dict[Sid, str], words: Vocabulary) -> None:
    if descriptor.owner is not None:
        print(visible(f"Owner: {_name(descriptor.owner, names)}"))
    table = Table(["WHO", "MAY", "MAY NOT"])
    for entry in permissions(descriptor, words):
        denied_words = words_of(entry.denied, words) if entry.denied else ""
        table.add(_name(entry.sid, names), words_of(entry.allowed, words), denied_words)
    table.print()
