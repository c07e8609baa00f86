"""`rpcqm migrate`: queues and permissions of a Windows computer."""

import argparse
import shlex
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rpcqm.base.errors import HResult, MQError
from rpcqm.cli.errors import CommandError, UsageMistake
from rpcqm.cli.options import add_local_options
from rpcqm.cli.output import Table, counted
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.session import with_server
from rpcqm.cli.windows_export import WindowsEntry, WindowsExport, WindowsQueue
from rpcqm.client.names import format_name
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.security.descriptor import Ace, AceFlags, AceType, Acl, SecurityDescriptor
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.permissions import WELL_KNOWN, permissions, words_of
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.codec.names.format_name import FormatName

T = TypeVar("T")
SAME_EVERYWHERE = {
    "everyone": "everyone",
    r"nt authority\anonymous logon": "anonymous",
    r"nt authority\authenticated users": "authenticated",
    r"nt authority\system": "system",
    r"builtin\administrators": "administrators",
    r"builtin\users": "users",
    r"builtin\guests": "guests",
}
"""Windows' English names of identifiers that are the same on every computer."""
_PRIVACY = ("none", "optional", "body")
_DENIED = AceType.ACCESS_DENIED_ACE_TYPE


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "migrate",
        help="make the queues of a Windows computer here",
        description="Make the queues of a Windows computer here.",
    )
    _add_windows(add_commands(parser))


def _add_windows(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "windows",
        "Show how queues here differ from those of a Windows computer, and make them the same.",
        [
            ("rpcqm migrate windows queues.json permissions.json", "changes nothing"),
            ("rpcqm migrate windows queues.json permissions.json --apply", "makes them"),
            (
                r"rpcqm migrate windows permissions.json --account 'SHOP\alice=alice.shop'",
                "an account that has another name here",
            ),
        ],
        run_windows,
        "The files are what Get-MsmqQueue and Get-MsmqQueueACL print through ConvertTo-Json. "
        "Nothing is changed without --apply, and nothing is ever deleted.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="queues, permissions")
    parser.add_argument("--apply", action="store_true", help="make the changes")
    parser.add_argument(
        "--account",
        metavar="WINDOWS=HERE",
        action="append",
        default=[],
        help="which account here one of Windows is; may be given again",
    )
    add_local_options(parser)


@dataclass(frozen=True, slots=True)
class Difference:
    """One row of the table; nothing is done about it if it `stays`."""

    queue: str
    what: str
    here: str
    windows: str
    stays: bool = False


@dataclass(slots=True)
class Plan:
    """What is to be done with one queue; None where nothing is."""

    path: PathName | None
    differences: list[Difference]
    create: QueueSettings | None = None
    change: QueueSettings | None = None
    descriptor: SecurityDescriptor | None = None
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The list of permissions that a queue should have, None where it cannot be made here.

    `left` are rows about entries that cannot be had.
    """

    descriptor: SecurityDescriptor | None
    left: list[Difference]

    @property
    def is_incomplete(self) -> bool:
        """Whether an account that is denied something is not known here."""
        return any(row.what == "may not" for row in self.left)


def run_windows(arguments: argparse.Namespace) -> int:
    """Compare, and change what differs if that is wanted."""
    export = WindowsExport()
    for path in arguments.files:
        export.read(path)
    known = _given_accounts(arguments.account)

    async def work(client: "QueueManagerClient") -> None:
        accounts = {each.name.casefold(): each.sid for each in await client.accounts.list()}
        names = _Names(known, accounts)
        plans = [plan async for plan in _plans(client, export, names)]
        if arguments.apply:
            for plan in plans:
                await _apply(client, plan)
        _tell(plans, applied=arguments.apply)
        if arguments.apply:
            _check_refused(plans)

    return with_server(arguments, "migrate the queues", work, administrators_only=True)


def _check_refused(plans: Sequence[Plan]) -> None:
    """Raise CommandError if queues have kept their permissions, or were not made (G410)."""
    refused = [str(plan.path) for plan in plans if plan.is_refused]
    if refused:
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        raise CommandError(
            f"{refused[0]}{more}: an account that is denied something on Windows is not known "
            "here, so that the queue would let in more than there; add the account, or say by "
            "`--account WINDOWS=HERE` which one it is, and migrate again."
        )


def _given_accounts(given: Sequence[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    for windows, separator, here in pairs:
        if not (windows and separator and here):
            raise UsageMistake(f"--account takes WINDOWS=HERE, not `{windows}{separator}{here}`.")
    return {windows.casefold(): here for windows, _, here in pairs}


class _Names:
    """Which security identifiers accounts of Windows have here."""

    def __init__(self, given: dict[str, str], accounts: dict[str, str]) -> None:
        self._given, self._accounts = given, accounts
        self._taken: dict[str, str] = {}

    def sid(self, account: str, *, denied: bool) -> Sid | None:
        """The identifier, None if there is no such account here.

        Accounts of two domains with one name are two people: the second is not known (G367). Nor
        is an identifier that is denied something and belongs to nobody here (G410): the account
        that it stands for may have another one here.
        """
        folded = account.casefold()
        here = self._given.get(folded) or SAME_EVERYWHERE.get(folded)
        if here is not None:
            return WELL_KNOWN.get(here.casefold()) or self._account(here)
        found = self._account(self._short(folded))
        return None if denied and found is not None and not self._is_here(found) else found

    def _short(self, folded: str) -> str:
        """The name without its domain, empty if that is another account's already."""
        short = folded.rpartition("\\")[2]
        return short if self._taken.setdefault(short, folded) == folded else ""

    def _account(self, name: str) -> Sid | None:
        """An account here, or an identifier in its text form."""
        try:
            return Sid.parse(self._accounts.get(name.casefold(), name.upper()))
        except ValueError:
            return None

    def _is_here(self, sid: Sid) -> bool:
        return str(sid) in self._accounts.values() or sid in WELL_KNOWN.values()


async def _plans(
    client: "QueueManagerClient", export: WindowsExport, names: _Names
) -> AsyncIterator[Plan]:
    """A plan for each queue, in the order of the files."""
    for folded in dict.fromkeys([*export.queues, *export.entries]):
        entries = export.entries.get(folded, [])
        queue = export.queues.get(folded)
        name = queue.name if queue is not None else entries[0].queue
        path = _path(name)
        if path is None:
            left = Difference(name, "queue", "", "not a queue of applications", stays=True)
            yield Plan(None, [left])
        else:
            yield await _plan(client, path, queue, entries, names)


def _path(name: str) -> PathName | None:
    """The queue here of a name, None for journals and queues of the system."""
    try:
        path = PathName.parse(f".\\{name}")
    except MQError:
        return None
    applications = path.kind in (QueueKind.PRIVATE, QueueKind.PUBLIC) and not path.suffix
    return path if applications and not path.queue.endswith("$") else None


def _wanted(name: str, entries: Sequence[WindowsEntry], names: _Names) -> Wanted:
    """The list of permissions that entries make, and what of them cannot be had here.

    There is no list where one who is denied something is not known: it would allow too much
    (G367). Those who are allowed something and are not known are left out.
    """
    left, masks = [], dict[tuple[bool, Sid], int]()
    for entry in entries:
        sid = names.sid(entry.account, denied=entry.denied)
        if sid is None:
            what = "may not" if entry.denied else "may"
            text = f"{entry.account}: {words_of(entry.mask)}"
            left.append(Difference(name, what, "no such account", text, stays=True))
        else:
            key = (not entry.denied, sid)
            masks[key] = masks.get(key, 0) | entry.mask
    wanted = Wanted(SecurityDescriptor(dacl=Acl(tuple(_aces(masks)))), left)
    return replace(wanted, descriptor=None) if wanted.is_incomplete else wanted


def _aces(masks: dict[tuple[bool, Sid], int]) -> Iterator[Ace]:
    """Entries, denials first, so that they win."""
    for (allowed, sid), mask in sorted(masks.items(), key=lambda each: each[0][0]):
        kind = AceType.ACCESS_ALLOWED_ACE_TYPE if allowed else _DENIED
        yield Ace(kind, mask=mask, sid=sid)


async def _plan(
    client: "QueueManagerClient",
    path: PathName,
    queue: WindowsQueue | None,
    entries: Sequence[WindowsEntry],
    names: _Names,
) -> Plan:
    """What makes a queue here that of Windows.

    Files that have no permissions of a queue change none. One that is made has an empty list
    then, as queues without entries have it on Windows (G410).
    """
    wanted = _wanted(str(path), entries, names)
    plan = Plan(path, [], is_refused=wanted.is_incomplete)
    if queue is not None and path.kind is QueueKind.PRIVATE:  # it is of public queues only
        queue = replace(queue, settings=replace(queue.settings, base_priority=None))
    try:
        await _compare(client, plan, queue, wanted.descriptor if entries else None)
    except MQError as error:
        if error.status is not HResult.MQ_ERROR_QUEUE_NOT_FOUND:
            raise
        _create(plan, queue, wanted.descriptor)
    if queue is not None and queue.multicast:
        row = Difference(str(path), "multicast", "not served", queue.multicast, stays=True)
        plan.differences.append(row)
    plan.differences += wanted.left
    return plan


def _create(plan: Plan, queue: WindowsQueue | None, descriptor: SecurityDescriptor | None) -> None:
    """Make the queue; without its properties it is not known what it has to be.

    No queue is made without its list, since the default one may allow more (G410).
    """
    if queue is None or descriptor is None:
        why = "only its permissions" if queue is None else "denies something to an unknown account"
        row = Difference(str(plan.path), "queue", "is missing", why, stays=True)
        plan.differences.append(row)
        return
    plan.create, plan.descriptor = queue.settings, descriptor
    given = ", ".join(f"{_word(n)} {_shown(n, value)}" for n, value in queue.settings.given())
    plan.differences.append(Difference(str(plan.path), "queue", "is missing", given))
    row = Difference(str(plan.path), "permissions", "", _permissions_text(descriptor))
    plan.differences.append(row)


async def _compare(
    client: "QueueManagerClient",
    plan: Plan,
    queue: WindowsQueue | None,
    descriptor: SecurityDescriptor | None,
) -> None:
    """What differs of a queue that is here; raises MQError if it is not."""
    assert plan.path is not None
    name = format_name(str(plan.path))
    information = await client.management.queue_information(name)
    if queue is not None:
        here = await _if_allowed(plan, "properties", client.queues.properties(name))
        if here is not None:
            settings = {**asdict(here), "transactional": information.transactional}
            _compare_settings(plan, settings, queue.settings)
    if descriptor is None:
        return
    present = await _if_allowed(plan, "permissions", client.queues.security(name))
    if present is not None and not _allows_the_same(present, descriptor):
        plan.descriptor = descriptor
        texts = _permissions_text(present), _permissions_text(descriptor)
        plan.differences.append(Difference(str(plan.path), "permissions", *texts))


async def _if_allowed(plan: Plan, what: str, asked: Awaitable[T]) -> T | None:
    """What a queue tells, None with a row where its own permissions keep that from the caller."""
    try:
        return await asked
    except MQError as error:
        if error.status is not HResult.MQ_ERROR_ACCESS_DENIED:
            raise
    row = Difference(str(plan.path), what, "you may not see them", "", stays=True)
    plan.differences.append(row)
    return None


def _compare_settings(plan: Plan, here: dict[str, Any], wanted: QueueSettings) -> None:
    changed: dict[str, Any] = {}
    for name, value in wanted.given():
        if here[name] == value:
            continue
        stays = name == "transactional"  # it is chosen when a queue is made
        if not stays:
            changed[name] = value
        texts = _shown(name, here[name]), _shown(name, value)
        plan.differences.append(Difference(str(plan.path), _word(name), *texts, stays))
    if changed:
        plan.change = QueueSettings(**changed)


def _allows_the_same(present: SecurityDescriptor, wanted: SecurityDescriptor) -> bool:
    """Whether two lists have the same entries, and each denial counts in both."""
    return _denials_count(present) and _masks(present) == _masks(wanted)


def _denials_count(descriptor: SecurityDescriptor) -> bool:
    """Whether every entry has an effect, and denials come before what they take from."""
    aces = descriptor.dacl.aces if descriptor.dacl else ()
    kinds = [ace.type for ace in aces]
    inherited = any(ace.flags & AceFlags.INHERIT_ONLY_ACE for ace in aces)
    return not inherited and kinds == sorted(kinds, key=lambda kind: kind != _DENIED)


def _masks(descriptor: SecurityDescriptor) -> dict[Sid, tuple[int, int]]:
    return {each.sid: (each.allowed, each.denied) for each in permissions(descriptor)}


def _permissions_text(descriptor: SecurityDescriptor) -> str:
    texts = [
        f"{_called(each.sid)} {verb} {words_of(mask)}"
        for each in sorted(permissions(descriptor), key=lambda each: str(each.sid))
        for verb, mask in (("may", each.allowed), ("may not", each.denied))
        if mask
    ]
    return "; ".join(texts) or "nobody may do anything; its owner may change that"


def _called(sid: Sid) -> str:
    return next((word for word, known in WELL_KNOWN.items() if known == sid), str(sid))


def _word(name: str) -> str:
    return name.replace("_", " ")


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "privacy" and isinstance(value, int) and 0 <= value < len(_PRIVACY):
        return _PRIVACY[value]
    if name.endswith("quota"):
        return "unlimited" if value == INFINITE else f"{value} KB"
    return f"'{value}'" if isinstance(value, str) else str(value)


async def _apply(client: "QueueManagerClient", plan: Plan) -> None:
    """Carry out a plan; what was done before a refusal stays."""
    if plan.path is None:
        return
    if plan.create is not None:
        await client.queues.create(plan.path, plan.create, plan.descriptor)
        return
    try:
        await _change(client, plan, format_name(str(plan.path)))
    except MQError as error:
        if error.status is not HResult.MQ_ERROR_ACCESS_DENIED:
            raise
        private = plan.path.kind is QueueKind.PRIVATE
        short = shlex.quote(plan.path.queue if private else str(plan.path))
        raise CommandError(
            f"{plan.path} has permissions that do not let you change it ({error.status.name}); "
            f"`rpcqm queue acl grant {short} administrators full`, and migrate again."
        ) from error


async def _change(client: "QueueManagerClient", plan: Plan, name: "FormatName") -> None:
    if plan.change is not None:
        await client.queues.set_properties(name, plan.change)
    if plan.descriptor is not None:
        await client.queues.set_security(name, plan.descriptor)


def _tell(plans: Sequence[Plan], applied: bool) -> None:
    rows = [row for plan in plans for row in plan.differences]
    if not rows:
        print("Nothing differs.")
        return
    table = Table(["QUEUE", "WHAT", "HERE", "WINDOWS", "THEN"])
    for row in rows:
        done = "changed" if applied else "would change"
        then = "stays" if row.stays else done
        table.add(row.queue, row.what, row.here, row.windows, then)
    table.print()
    changing = sum(not row.stays for row in rows)
    differences = counted(changing, "difference")
    if not applied and changing:
        print(f"{differences} would be changed; --apply does it.")
    elif applied:
        print(f"{differences} changed.")
