"""`rpcqm queue`: create, list, show, set, rename and delete queues."""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from rpcqm.base.errors import MQError
from rpcqm.base.text import iso_time, visible
from rpcqm.cli import acl, deliveries, journals, outgoing, queue_delete, queue_rename, transfer
from rpcqm.cli.errors import CommandError, UsageMistake
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.output import Table, print_fields, print_json, size_text, time_text
from rpcqm.cli.parser import Parser, add_command, add_commands, amount_in, one_of
from rpcqm.cli.session import if_told, with_server
from rpcqm.cli.watching import add_pattern, add_watch, is_wanted, show
from rpcqm.client.names import HERE, is_format_name, path_name, shown_name
from rpcqm.client.queue_settings import (
    PublicQueue,
    QueueInformation,
    QueueProperties,
    QueueSettings,
)
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import QueueKind
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.codec.security.sddl import format_sddl, parse_sddl
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    Uses = dict[str, tuple[int | None, int | None]]
    from rpcqm.client.queue_manager import QueueManagerClient

PRIVACY = {"none": 0, "optional": 1, "body": 2}
MAXIMUM_LABEL = 124


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "queue",
        help="create, list, show, set, rename and delete queues",
        description="Create, list, show, set, rename and delete queues.",
    )
    queues = add_commands(parser)
    _add_create(queues)
    _add_list(queues)
    _add_show(queues)
    _add_set(queues)
    queue_rename.add(queues)
    queue_delete.add(queues)
    transfer.add(queues)
    acl.add(queues)


def _add_create(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "create",
        "Create a queue and print its path name.",
        [
            ("rpcqm queue create orders", "an ordinary queue"),
            (
                "rpcqm queue create bills --transactional --journal --label 'Bills'",
                "for exactly-once messages; received ones are kept in its journal",
            ),
            (
                "rpcqm queue create jobs --max-deliveries 5",
                "what fails the fifth time goes to `jobs;poison`",
            ),
            ("rpcqm queue create logs --sddl 'D:(A;;0x4;;;WD)'", "everybody may only send"),
            (r"rpcqm queue create '.\offers'", "a public queue, where there is a directory file"),
        ],
        run_create,
        "A public queue is listed in the directory, and created on its own machine only.",
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        help=r"`orders`, or in full `.\private$\orders`; `.\orders` is a public queue",
    )
    parser.add_argument(
        "--transactional", action="store_true", help="take messages of transactions only"
    )
    parser.add_argument(
        "--journal", action="store_true", default=None, help="keep a copy of received messages"
    )
    parser.add_argument(
        "--authenticate", action="store_true", default=None, help="take signed messages only"
    )
    parser.add_argument(
        "--trail",
        action="store_true",
        default=None,
        help="write down what happens to its messages for `rpcqm explain`",
    )
    deliveries.add_options(parser)
    journals.add_options(parser)
    _add_settings(parser)


def _add_settings(parser: Parser) -> None:
    """Add the options that `create` and `set` share."""
    parser.add_argument(
        "--quota",
        metavar="KB",
        type=_quota,
        help="what its messages may take: KB, `5MB`, or `unlimited`",
    )
    parser.add_argument(
        "--journal-quota", metavar="KB", type=_quota, help="what its journal may take, likewise"
    )
    parser.add_argument("--label", metavar="T", type=_label, help="what it is for")
    parser.add_argument(
        "--privacy",
        metavar="none|optional|body",
        type=one_of(PRIVACY, "privacy level"),
        help="whether message bodies must not, may or must be encrypted",
    )
    parser.add_argument(
        "--sddl", metavar="S", type=_descriptor, help="who may do what, in Windows' notation"
    )
    add_server_options(parser)


def _quota(text: str) -> int:
    if text.lower() == "unlimited":
        return INFINITE
    return amount_in("KB", 0, INFINITE, "a number of KB")(text)


def _label(text: str) -> str:
    if len(text.encode("utf-16-le")) // 2 > MAXIMUM_LABEL:
        raise argparse.ArgumentTypeError(f"a label has at most {MAXIMUM_LABEL} characters")
    return text


def _descriptor(text: str) -> SecurityDescriptor:
    try:
        return parse_sddl(text)
    except MQError as error:
        raise argparse.ArgumentTypeError(error.detail or error.status.meaning) from None


def _settings(arguments: argparse.Namespace) -> QueueSettings:
    return QueueSettings(
        transactional=getattr(arguments, "transactional", None),
        journal=arguments.journal,
        authenticate=arguments.authenticate,
        quota=arguments.quota,
        journal_quota=arguments.journal_quota,
        label=arguments.label,
        privacy=arguments.privacy,
    )


def run_create(arguments: argparse.Namespace) -> int:
    """Create the queue."""
    if is_format_name(arguments.name):
        raise UsageMistake(
            r"A queue is created by its path name, like `orders` or `.\private$\orders`, "
            f"not by `{arguments.name}`."
        )
    deliveries.check(arguments)
    name, path = queue_name(arguments, arguments.name), path_name(arguments.name, HERE)
    if path.suffix:
        raise UsageMistake(
            f"`{arguments.name}` is a part of a queue: a subqueue comes into being by "
            "`rpcqm move`, a journal by `rpcqm queue create --journal`."
        )
    if path.kind is QueueKind.PUBLIC and arguments.server is not None:
        raise CommandError(
            f"Cannot create {path}: public queues are created on their own machine, not over the "
            "network."
        )

    async def work(client: "QueueManagerClient") -> None:
        await client.queues.create(path, _settings(arguments), arguments.sddl)
        print(visible(str(path)))
        await _set_what_is_ours(client, name, arguments)

    return with_server(arguments, f"create {path}", work)


def _add_list(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "list",
        "List the private and public queues, with what is in them.",
        [
            ("rpcqm queue list", "all queues of applications"),
            ("rpcqm queue list 'ord*' --watch", "those that begin with `ord`, every second"),
            (
                "rpcqm queue list --json | jq -r '.[] | select(.messages > 0).path_name'",
                "those that are not empty",
            ),
            ("rpcqm queue list --outgoing", "what is on its way to other queue managers"),
            ("rpcqm queue list --directory", "the public queues of all machines"),
            ("rpcqm queue list --server mail.example.com --user alice", "of another computer"),
        ],
        run_list,
        "Over --server, public queues are listed while somebody has them open: MSMQ tells no more.",
    )
    add_pattern(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--outgoing", action="store_true", help="list the queues to other queue managers instead"
    )
    which.add_argument(
        "--directory",
        action="store_true",
        help="list the public queues that the directory knows instead, of all machines",
    )
    add_watch(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_server_options(parser)


def run_list(arguments: argparse.Namespace) -> int:
    """List the queues."""
    if arguments.directory and arguments.server is not None:
        raise UsageMistake("--directory and --server do not go together.")

    async def work(client: "QueueManagerClient") -> None:
        await show(arguments, lambda: _look(client, arguments))

    return with_server(arguments, "list the queues", work, administrators_only=True)


async def _look(client: "QueueManagerClient", arguments: argparse.Namespace) -> Callable[[], None]:
    """Ask for the queues that are wanted; returns what prints them."""
    pattern, as_json = arguments.pattern, arguments.json
    if arguments.directory:
        public = [q for q in await client.queues.public() if is_wanted(pattern, q.path_name)]
        return lambda: _print_directory(public, as_json)
    if arguments.outgoing:
        names = None if arguments.server else await client.maintenance.outgoing_queues()
        found = await client.management.outgoing_queues(names)
        waiting = [queue for queue in found if is_wanted(pattern, queue.format_name)]
        return lambda: outgoing.print_all(waiting, as_json)
    queues = await _all_queues(client, arguments)
    uses = await _uses(client, arguments)
    if as_json:
        return lambda: print_json([_listed(queue, uses) for queue in queues])
    return lambda: _print_table(queues, uses)


async def _all_queues(
    client: "QueueManagerClient", arguments: argparse.Namespace
) -> list[QueueInformation]:
    """Information on all queues; a queue that is deleted meanwhile is left out."""
    names = list(await client.management.private_queues())
    names = [name for name in names if is_wanted(arguments.pattern, name)]
    if arguments.server is None:
        public = await client.queues.public()
        here = [queue for queue in public if queue.here]
        names += [q.format_name for q in here if is_wanted(arguments.pattern, q.path_name)]
    asked = [queue_name(arguments, name) for name in names]
    found = await client.management.queues_information(asked)
    if arguments.server is not None:
        active = await client.management.active_public_queues()
        found += [queue for queue in active if is_wanted(arguments.pattern, queue.path_name)]
    return found


def _print_directory(queues: list[PublicQueue], as_json: bool) -> None:
    if as_json:
        print_json([asdict(queue) for queue in queues])
        return
    table = Table(["QUEUE", "FORMAT NAME", "HERE", "LABEL"])
    for queue in queues:
        table.add(queue.path_name, queue.format_name, _yes(queue.here), queue.label)
    table.print()


def _print_table(queues: list[QueueInformation], uses: "Uses") -> None:
    table = Table(["QUEUE", "KIND", ">MESSAGES", ">SIZE", ">JOURNAL", "QUOTA", "TRANSACTIONAL"])
    for queue in queues:
        table.add(
            queue.path_name,
            queue.type.lower(),
            queue.message_count,
            size_text(queue.bytes_in_queue),
            queue.journal_message_count,
            _used_text(*_used(queue, uses)),
            _yes(queue.transactional),
        )
    table.print()


async def _uses(client: "QueueManagerClient", arguments: argparse.Namespace) -> "Uses":
    """How full queues are, as far as this machine's queue manager tells it."""
    if arguments.server is not None:
        return {}
    return await if_told(client.maintenance.quota_uses()) or {}


def _used(queue: QueueInformation, uses: "Uses") -> tuple[int | None, int | None]:
    return uses.get(queue.path_name.lower(), (None, None))


def _used_text(queue: int | None, journal: int | None) -> str:
    """How much is used: `83 %`, `83 %, journal 5 %`, or `-` without a quota."""
    parts = [] if queue is None else [f"{queue} %"]
    parts += [] if journal is None else [f"journal {journal} %"]
    return ", ".join(parts) or "-"


def _listed(queue: QueueInformation, uses: "Uses") -> dict[str, object]:
    used, journal = _used(queue, uses)
    told = _information(queue)
    return told | {"quota_percent": used, "journal_quota_percent": journal}


def _information(queue: QueueInformation) -> dict[str, object]:
    return {
        "path_name": queue.path_name,
        "format_name": queue.format_name,
        "type": queue.type,
        "location": queue.location,
        "state": queue.state,
        "transactional": queue.transactional,
        "messages": queue.message_count,
        "bytes": queue.bytes_in_queue,
        "journal_messages": queue.journal_message_count,
        "journal_bytes": queue.bytes_in_journal,
        "subqueues": list(queue.subqueues),
    }


def _add_show(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "show",
        "Show everything about a queue.",
        [
            ("rpcqm queue show orders", "its content, its properties, who may do what"),
            ("rpcqm queue show DeadLetter$ --json", "a system queue, for a program"),
        ],
        run_show,
        "Over --server, properties and permissions are shown where that server tells them.",
    )
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_server_options(parser)


def run_show(arguments: argparse.Namespace) -> int:
    """Show the queue."""
    name = queue_name(arguments, arguments.queue)

    async def work(client: "QueueManagerClient") -> None:
        information = await client.management.queue_information(name)
        properties = await if_told(client.queues.properties(name))
        descriptor = await if_told(client.queues.security(name))
        sddl = None if descriptor is None else _sddl(descriptor)
        trail = await if_told(client.maintenance.has_trail(name))
        limit = await if_told(client.maintenance.max_deliveries(name))
        bounds = await if_told(client.maintenance.journal_bounds(name))
        uses = await _uses(client, arguments)
        told = (properties, descriptor, trail, limit)
        hidden = [part for part, each in zip(_PARTS, told, strict=True) if each is None]
        if arguments.json:
            shown = _listed(information, uses) | _shown_to_programs(properties, sddl)
            shown |= deliveries.for_programs(limit) | journals.for_programs(bounds)
            shown |= {"not_shown": hidden}
            print_json(shown if trail is None else shown | {"trail": trail})
        else:
            shown = _shown_to_people(information, properties, sddl)
            shown["Quota used"] = _used_text(*_used(information, uses))
            shown |= deliveries.for_people(limit) | journals.for_people(bounds)
            shown |= _not_shown(hidden)
            print_fields(shown if trail is None else shown | {"Event trail": _yes(trail)})

    return with_server(arguments, f"show `{arguments.queue}`", work, administrators_only=True)


_PARTS = {
    "properties": "properties such as label and quotas",
    "permissions": "permissions",
    "trail": "the event trail",
    "deliveries": "the limit of deliveries",
}
"""What may be hidden of a queue that is shown: words for programs, and words for people."""


def _not_shown(hidden: list[str]) -> dict[str, object]:
    """What a queue has that the caller is not shown."""
    lacking = " and ".join(_PARTS[part] for part in hidden)
    right = "your account may not see them, or the server does not tell them"
    return {"Not shown": f"{lacking}: {right}"} if lacking else {}


def _sddl(descriptor: SecurityDescriptor) -> str | None:
    """The text of a descriptor; None if it has entries without one, as other programs make them."""
    try:
        return format_sddl(descriptor)
    except MQError:
        return None


def _shown_to_programs(properties: QueueProperties | None, sddl: str | None) -> dict[str, object]:
    shown: dict[str, object] = {}
    if properties is not None:
        shown |= {
            "label": properties.label,
            "journal": properties.journal,
            "quota": None if properties.quota == INFINITE else properties.quota,
            "journal_quota": None
            if properties.journal_quota == INFINITE
            else properties.journal_quota,
            "base_priority": properties.base_priority,
            "authenticate": properties.authenticate,
            "privacy": _privacy_name(properties.privacy),
            "created": iso_time(properties.create_time),
            "modified": iso_time(properties.modify_time),
        }
    if sddl is not None:
        shown["sddl"] = sddl
    return shown


def _shown_to_people(
    information: QueueInformation, properties: QueueProperties | None, sddl: str | None
) -> dict[str, object]:
    shown: dict[str, object] = {
        "Path name": shown_name(information.path_name),
        "Format name": information.format_name,
        "Kind": f"{information.type.lower()}, {information.location.lower()}",
        "Transactional": _yes(information.transactional),
        "Messages": _content(information.message_count, information.bytes_in_queue),
        "In its journal": _content(information.journal_message_count, information.bytes_in_journal),
        "Subqueues": ", ".join(information.subqueues) or "none",
    }
    if properties is not None:
        shown |= _properties_for_people(properties)
    if sddl is not None:
        shown["Permissions"] = sddl
    return shown


def _properties_for_people(properties: QueueProperties) -> dict[str, object]:
    return {
        "Label": properties.label or "none",
        "Journal": _yes(properties.journal),
        "Quota": _quota_text(properties.quota),
        "Journal quota": _quota_text(properties.journal_quota),
        "Base priority": properties.base_priority,
        "Authenticate": _yes(properties.authenticate),
        "Privacy": _privacy_name(properties.privacy),
        "Created": time_text(properties.create_time),
        "Modified": time_text(properties.modify_time),
    }


def _content(count: int, size: int) -> str:
    """Messages and their size; a server that does not know the size of messages tells 0."""
    return f"{count:,}" if count and not size else f"{count:,} ({size_text(size)})"


def _quota_text(quota: int) -> str:
    return "unlimited" if quota == INFINITE else f"{quota:,} KB"


def _privacy_name(level: int) -> str:
    return next((name for name, value in PRIVACY.items() if value == level), str(level))


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _add_set(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "set",
        "Change properties or permissions of a queue.",
        [
            ("rpcqm queue set orders --quota 102400 --label 'Orders of today'", "both at once"),
            ("rpcqm queue set orders --no-journal", "keep no more copies"),
            (
                "rpcqm queue set orders --max-deliveries 5",
                "what fails the fifth time goes to `orders;poison`",
            ),
            ("rpcqm queue set orders --journal-max-age 30d", "copies go after a month"),
            ("rpcqm queue set orders --trail", "`rpcqm explain` can tell what became of messages"),
        ],
        run_set,
    )
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    parser.add_argument(
        "--journal",
        action=argparse.BooleanOptionalAction,
        help="keep a copy of received messages, or no longer",
    )
    parser.add_argument(
        "--authenticate",
        action=argparse.BooleanOptionalAction,
        help="take signed messages only, or any",
    )
    parser.add_argument(
        "--trail",
        action=argparse.BooleanOptionalAction,
        help="write down what happens to its messages for `rpcqm explain`, or no longer",
    )
    deliveries.add_options(parser)
    journals.add_options(parser)
    _add_settings(parser)


def run_set(arguments: argparse.Namespace) -> int:
    """Change the queue."""
    name = queue_name(arguments, arguments.queue)
    settings = _settings(arguments)
    deliveries.check(arguments)
    others = arguments.sddl, arguments.trail, arguments.max_deliveries
    ours = others != (None, None, None) or journals.given(arguments)
    if not dict(settings.given()) and not ours:
        raise UsageMistake("Nothing to set was given; see `rpcqm queue set --help`.")

    async def work(client: "QueueManagerClient") -> None:
        if dict(settings.given()):
            await client.queues.set_properties(name, settings)
        if arguments.sddl is not None:
            await client.queues.set_security(name, arguments.sddl)
        await _set_what_is_ours(client, name, arguments)

    return with_server(arguments, f"change `{arguments.queue}`", work)


async def _set_what_is_ours(
    client: "QueueManagerClient", name: FormatName, arguments: argparse.Namespace
) -> None:
    """Set what queues of MSMQ do not have."""
    if arguments.trail is not None:
        await client.maintenance.switch_trail(name, arguments.trail)
    if arguments.max_deliveries is not None:
        limit, poison = arguments.max_deliveries, arguments.poison or deliveries.POISON
        await client.maintenance.set_max_deliveries(name, limit, poison)
    await journals.set_bounds(client, name, arguments)
