"""Writes the objects of one queue manager into a directory ([MS-MQDSSM] 3.1.6.1, .2 and .7).

Each order can be repeated after a partial success: finished steps change nothing. Objects are
deleted one by one, and only our own: never with the objects below them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from rpcqm.adm.directory_object import NULL_GUID
from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.base.errors import DecodeError
from rpcqm.codec.security.access_check import DELETE, READ_CONTROL
from rpcqm.codec.security.descriptor import Ace, AceFlags, AceType, Acl, SecurityDescriptor
from rpcqm.codec.security.directory_rights import (
    CREATE_CHILD,
    DELETE_CHILD,
    LIST_CHILDREN,
    QUEUE_CLASS,
    QUEUE_RIGHTS,
    READ_PROPERTY,
    WRITE_PROPERTY,
    machine_entry,
    to_directory,
)
from rpcqm.codec.security.identifier import AUTHENTICATED_USERS, Sid
from rpcqm.directory import names, values
from rpcqm.directory.frames import plain
from rpcqm.directory.process import DirectoryError, DirectoryProcess
from rpcqm.directory.reading import Root
from rpcqm.directory.values import Entry

CONFIGURATION = "mSMQConfiguration"
QUEUE = "mSMQQueue"
SETTINGS = "mSMQSettings"
SETTINGS_NAME = "MSMQ Settings"
DESCRIPTOR = "nTSecurityDescriptor"

REFERRAL = 10
NO_SUCH_OBJECT, DENIED, EXISTS = 32, 50, 68
READ_PARTS, WRITTEN_PARTS = 7, 4
"""Parts of descriptors: those that a machine may see, and the access list, the only one it may
write."""
_SUCCESS = DirectoryOperationResult.SUCCESS
_NOT_FOUND = DirectoryOperationResult.OBJECT_NOT_FOUND


CREATE_QUEUE, WRITE_QUEUE, DELETE_QUEUE = "create queue", "write queue", "delete queue"
CREATE_MACHINE, WRITE_MACHINE, DELETE_MACHINE = "create machine", "write machine", "delete machine"

Values = dict[str, list[bytes]]
"""Values by the directory's names of attributes; an empty list means that it is not set."""


@dataclass(frozen=True, slots=True)
class WriteOrder:
    """One change of the objects of a queue manager.

    `machine` and `qualified` are its names, `queue` is the name of a queue of it. `settings` are
    the values of its settings in each site of `sites`, empty unless it is a router or a server,
    None to leave them alone. `routers` are identifiers of queue managers by attributes that hold
    their distinguished names. An adopted object gets the attributes of `own` only. `security` is
    the descriptor of the queue, empty where permissions are not written.
    """

    action: str
    machine: str
    qualified: str = ""
    queue: str = ""
    identifier: UUID = NULL_GUID
    values: Values = field(default_factory=dict)
    settings: Values | None = None
    sites: tuple[UUID, ...] = ()
    routers: Mapping[str, Sequence[UUID]] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    security: bytes = b""
    dry_run: bool = False


class Change(NamedTuple):
    """One change of a modify request: "add", "delete" or "replace"."""

    how: str
    attribute: str
    values: Sequence[bytes]


class Refused(Exception):
    """An order that cannot be carried out, in one sentence."""

    def __init__(
        self,
        reason: str,
        result: DirectoryOperationResult = DirectoryOperationResult.GENERIC_ERROR,
    ) -> None:
        super().__init__(reason)
        self.result = result


async def carry_out(process: DirectoryProcess, root: Root, order: WriteOrder) -> DirectoryAnswer:
    """Carry out an order over a bound connection; errors are in the answer."""
    writing = Writing(process, root, order)
    try:
        result, identifier = await _ACTIONS[order.action](writing)
    except DirectoryError as error:
        return _answer_of(error, writing.steps)
    except Refused as error:
        return DirectoryAnswer(error.result, reason=str(error), steps=tuple(writing.steps))
    except DecodeError as error:
        reason = f"the directory returned what cannot be read: {error}"
        return DirectoryAnswer(DirectoryOperationResult.GENERIC_ERROR, reason=reason)
    return DirectoryAnswer(result, identifier, steps=tuple(writing.steps))


def _answer_of(error: DirectoryError, steps: Sequence[str]) -> DirectoryAnswer:
    reason, result = str(error), values.result_of(error.code)
    if error.code == REFERRAL:
        # Another controller may take it; this one counts as not reached.
        result = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
        reason = "the domain controller is a read-only one"
    return DirectoryAnswer(result, None, error.code == DENIED, reason, tuple(steps))


Outcome = tuple[DirectoryOperationResult, UUID | None]


@dataclass(eq=False, repr=False)
class Writing:
    """The steps of one order."""

    process: DirectoryProcess
    root: Root
    order: WriteOrder
    steps: list[str] = field(default_factory=list)
    """The changes that were made, or would be."""

    # Places

    async def computer(self) -> Entry:
        """The computer's object, with its SID; refused unless there is exactly one."""
        account = f"{self.order.machine[:15]}$".encode()
        found = await self._computers(values.equals_filter("sAMAccountName", account))
        if not found and self.order.qualified:
            host = values.equals_filter("dNSHostName", self.order.qualified.encode())
            found = await self._computers(host)
        if len(found) != 1:
            many = "more than one computer" if found else "no computer"
            raise Refused(f"the domain has {many} {self.order.machine}")
        return found[0]

    async def _computers(self, wanted: str) -> list[Entry]:
        both = f"(&(objectCategory=computer){wanted})"
        return await self._found(self.root.domain, ("objectSid",), both)

    async def _found(
        self, base: str, attributes: Sequence[str], what: str, scope: str = "all"
    ) -> list[Entry]:
        found: list[Entry] = []
        async for entries in self.process.search(base, attributes, what, scope, READ_PARTS):
            found += entries
        return found

    async def _there(self, name: str, attributes: Sequence[str]) -> Entry | None:
        """An object by its name or identifier, or None."""
        return await self.process.read(name, attributes, READ_PARTS)

    async def _own(self, computer: Entry) -> str:
        """The name of the queue manager's object; refused if it has none."""
        name = names.child_of(computer.name, "msmq")
        if await self._there(name, ("objectGUID",)) is None:
            raise Refused(f"{computer.name} has no MSMQ object: run rpcqm directory join")
        return name

    # Steps

    async def _add(self, name: str, kind: str, given: Mapping[str, Sequence[bytes]]) -> None:
        self.steps.append(f"add {name}")
        if not self.order.dry_run:
            present = {each: found for each, found in given.items() if found}
            attributes = plain({"objectClass": [kind.encode()], **present})
            await self.process.order("add", name=name, attributes=attributes)

    async def _delete(self, name: str) -> None:
        self.steps.append(f"delete {name}")
        if not self.order.dry_run:
            await self.process.order("delete", name=name)

    async def _write(self, entry: Entry, wanted: Values) -> None:
        """Replace differing attributes; those without values are removed."""
        changes = [
            Change("replace", attribute, given)
            for attribute, given in wanted.items()
            if sorted(entry.all(attribute)) != sorted(given)
        ]
        if changes:
            told = ", ".join(each.attribute for each in changes)
            self.steps.append(f"set {told} of {entry.name}")
            if not self.order.dry_run:
                await modify(self.process, entry.name, changes)

    async def _write_permissions(self, entry: Entry, machine: Sid) -> None:
        """Write the access list alone, in a request of its own ([MS-MQDSSM] 3.1.6.17)."""
        wanted = self._permissions(machine)
        now = SecurityDescriptor.decode(entry.first(DESCRIPTOR) or _NOTHING).dacl
        if now is not None and _explicit(now) == _entries(wanted):
            return
        self.steps.append(f"set the permissions of {entry.name}")
        if not self.order.dry_run:
            change = Change("replace", DESCRIPTOR, [wanted.encode()])
            await modify(self.process, entry.name, [change], WRITTEN_PARTS)

    def _permissions(self, machine: Sid) -> SecurityDescriptor:
        return to_directory(SecurityDescriptor.decode(self.order.security), QUEUE_RIGHTS, machine)

    async def _identifier(self, name: str) -> UUID | None:
        """objectGUID, chosen by the directory; None if nothing was written."""
        entry = await self._there(name, ("objectGUID",))
        if entry is None and self.order.dry_run:
            return None
        return values.read_guid((entry.first("objectGUID") if entry else None) or b"")

    # Queues

    async def create_queue(self) -> Outcome:
        """[MS-MQDSSM] 3.1.6.1.2."""
        computer = await self.computer()
        name = self._queue_name(await self._own(computer))
        given = self.order.values | {"mSMQQueueNameExt": self._extension()}
        given[DESCRIPTOR] = [self._queue_descriptor(_sid_of(computer))]
        try:
            await self._add(name, QUEUE, given)
        except DirectoryError as error:
            if error.code != EXISTS:
                raise
            await self._adopt(name, _sid_of(computer))
        return _SUCCESS, await self._identifier(name)

    async def _adopt(self, name: str, machine: Sid) -> None:
        """Take over an object that an earlier attempt of ours has added."""
        entry = await self._there(name, (*self.order.values, DESCRIPTOR))
        unchanged = "mSMQTransactional"
        if entry is None or _owner_of(entry) != machine or not _same(entry, self.order, unchanged):
            raise Refused(f"{name} is there", DirectoryOperationResult.OBJECT_ALREADY_EXISTS)
        await self._write(entry, {k: v for k, v in self.order.values.items() if k != unchanged})

    def _queue_name(self, own: str) -> str:
        if not names.may_be_published(self.order.queue):
            raise Refused("the directory does not keep spaces at the ends of a name")
        return names.child_of(own, names.stored_name(self.order.queue)[0])

    def _extension(self) -> list[bytes]:
        rest = names.stored_name(self.order.queue)[1]
        return [rest.encode()] if rest else []

    def _queue_descriptor(self, machine: Sid) -> bytes:
        """The machine's rights, with the permissions of the queue if they are written."""
        if self.order.security:
            return _descriptor(machine, _entries(self._permissions(machine)))
        return _descriptor(machine, [machine_entry(machine), _READABLE])

    async def write_queue(self) -> Outcome:
        """[MS-MQDSSM] 3.1.6.7.2; `transactional` was fixed at its creation."""
        wanted = {k: v for k, v in self.order.values.items() if k != "mSMQTransactional"}
        place = values.guid_base(self.order.identifier)
        entry = await self._there(place, (*wanted, DESCRIPTOR))
        if entry is None:
            return _NOT_FOUND, None
        await self._write(entry, wanted)
        if self.order.security:
            await self._write_permissions(entry, _sid_of(await self.computer()))
        return _SUCCESS, self.order.identifier

    async def delete_queue(self) -> Outcome:
        """[MS-MQDSSM] 3.1.6.2.2: by its identifier, or by its name if it is ours."""
        if not names.may_be_published(self.order.queue):
            return _NOT_FOUND, None
        computer = await self.computer()
        own = names.child_of(computer.name, "msmq")
        by_name = await self._there(self._queue_name(own), (DESCRIPTOR, "objectGUID"))
        entry = by_name if by_name is not None and _owner_of(by_name) == _sid_of(computer) else None
        if self.order.identifier.int:
            place = values.guid_base(self.order.identifier)
            entry = await self._there(place, (DESCRIPTOR, "objectGUID"))
            parent = "" if entry is None else names.parent_of(entry.name)
            if names.comparable(parent) != names.comparable(own):
                entry = None
        if entry is None:
            return _NOT_FOUND, None
        await self._delete(entry.name)
        return _SUCCESS, values.read_guid(entry.first("objectGUID") or b"")

    # The queue manager

    async def create_machine(self) -> Outcome:
        """[MS-MQDSSM] 3.1.6.1.1; an existing one is adopted, and then written."""
        computer = await self.computer()
        name, machine = names.child_of(computer.name, "msmq"), _sid_of(computer)
        entry = await self._there(name, ("objectGUID", *self.order.own))
        if entry is None:
            given = await self._machine_values()
            given[DESCRIPTOR] = [configuration_descriptor(machine)]
            await self._add(name, CONFIGURATION, given)
        else:  # an administrator's decisions there count
            own = self.order.own
            await self._write(entry, {k: v for k, v in self.order.values.items() if k in own})
        identifier = await self._identifier(name)
        if entry is None and identifier is not None:
            await self._write_settings(computer, identifier)
        return _SUCCESS, identifier

    async def _write_machine(self, name: str) -> None:
        wanted = await self._machine_values()
        entry = await self._there(name, tuple(wanted))
        if entry is None:
            raise DirectoryError(f"{name} is not there", NO_SUCH_OBJECT)
        await self._write(entry, wanted)

    async def _machine_values(self) -> Values:
        """Values with the names of queue managers in the directory; others are skipped."""
        found: Values = dict(self.order.values)
        for attribute, identifiers in self.order.routers.items():
            there = [await self._there(values.guid_base(each), ("cn",)) for each in identifiers]
            found[attribute] = [each.name.encode() for each in there if each is not None]
        return found

    async def write_machine(self) -> Outcome:
        """[MS-MQDSSM] 3.1.6.7.1."""
        computer = await self.computer()
        own = await self._own(computer)
        await self._write_machine(own)
        identifier = await self._identifier(own)
        if identifier is not None:
            await self._write_settings(computer, identifier)
        return _SUCCESS, identifier

    async def delete_machine(self) -> Outcome:
        """[MS-MQDSSM] 3.1.6.2.1; refused while foreign objects are below it."""
        computer = await self.computer()
        own, machine = names.child_of(computer.name, "msmq"), _sid_of(computer)
        if await self._there(own, ("objectGUID",)) is None:
            return _NOT_FOUND, None
        found = await self._found(own, (DESCRIPTOR,), "(objectClass=*)")
        below = [each for each in found if names.comparable(each.name) != names.comparable(own)]
        others = [each.name for each in below if _owner_of(each) != machine]
        if others:
            raise Refused(f"{len(others)} objects below {own} are not ours, such as {others[0]}")
        await self._write_settings(computer, None)
        for each in below:
            await self._delete(each.name)
        await self._delete(own)
        return _SUCCESS, None

    # Settings of routers and servers

    async def _write_settings(self, computer: Entry, identifier: UUID | None) -> None:
        """Write one object in each site of a router or server ([MS-MQDSSM] 3.1.6.7.1.9).

        A differing one is deleted and made again: the machine cannot change it.
        """
        if self.order.settings is None:
            return
        base = f"CN=Sites,{self.root.configuration}"
        wanted = {names.comparable(each): each for each in await self._settings_places(computer)}
        host = names.value_of(names.parts_of(computer.name)[0]).encode()
        servers = f"(&(objectClass=server){values.equals_filter('cn', host)})"
        for server in await self._found(base, ("cn",), servers):
            here = wanted.pop(names.comparable(server.name), None) is not None
            await self._settle_settings(server.name, identifier, here)
        if wanted and identifier is not None:
            raise Refused(f"{next(iter(wanted.values()))} is not there: an administrator adds it")

    async def _settings_places(self, computer: Entry) -> list[str]:
        """The machine's existing server objects; unknown sites are skipped."""
        if not self.order.settings:
            return []
        host = names.value_of(names.parts_of(computer.name)[0])
        sites = [await self._there(values.guid_base(each), ("cn",)) for each in self.order.sites]
        return [
            names.child_of(f"CN=Servers,{site.name}", host) for site in sites if site is not None
        ]

    async def _settle_settings(self, server: str, identifier: UUID | None, wanted: bool) -> None:
        name = names.child_of(server, SETTINGS_NAME)
        given: Values = dict(self.order.settings or {})
        if identifier is not None:
            given["mSMQQMID"] = [identifier.bytes_le]
        entry = await self._there(name, tuple(given))
        keep = wanted and identifier is not None
        if entry is not None and not (keep and all(_has(entry, k, v) for k, v in given.items())):
            await self._delete(name)
            entry = None
        if entry is None and keep:
            await self._add(name, SETTINGS, given)


_ACTIONS: dict[str, Callable[[Writing], Awaitable[Outcome]]] = {
    CREATE_QUEUE: Writing.create_queue,
    WRITE_QUEUE: Writing.write_queue,
    DELETE_QUEUE: Writing.delete_queue,
    CREATE_MACHINE: Writing.create_machine,
    WRITE_MACHINE: Writing.write_machine,
    DELETE_MACHINE: Writing.delete_machine,
}

_NOTHING = SecurityDescriptor().encode()
_READABLE = Ace(
    AceType.ACCESS_ALLOWED_ACE_TYPE,
    mask=READ_PROPERTY | LIST_CHILDREN | READ_CONTROL,
    sid=AUTHENTICATED_USERS,
)
"""Every queue manager of the forest has to read it."""


def configuration_descriptor(machine: Sid) -> bytes:
    """The descriptor for adding CN=msmq: with the default its own machine could write nothing.

    The machine writes the object, makes and deletes queues below it, and writes and deletes those
    ([MS-MQDSSM] 3.1.6.1.1.8, with the rights of directories).
    """
    kind, allowed = AceType.ACCESS_ALLOWED_OBJECT_ACE_TYPE, AceType.ACCESS_ALLOWED_ACE_TYPE
    own = READ_PROPERTY | WRITE_PROPERTY | LIST_CHILDREN | READ_CONTROL
    below = AceFlags.CONTAINER_INHERIT_ACE | AceFlags.INHERIT_ONLY_ACE
    written = READ_PROPERTY | WRITE_PROPERTY | DELETE
    entries = [
        Ace(allowed, mask=own, sid=machine),
        Ace(kind, 0, CREATE_CHILD | DELETE_CHILD, machine, QUEUE_CLASS),
        Ace(kind, below, written, machine, None, QUEUE_CLASS),
        _READABLE,
    ]
    return _descriptor(machine, entries)


def _descriptor(machine: Sid, entries: Sequence[Ace]) -> bytes:
    return SecurityDescriptor(owner=machine, dacl=Acl(tuple(entries), revision=4)).encode()


def _sid_of(computer: Entry) -> Sid:
    return Sid.decode(computer.first("objectSid") or b"")


def _owner_of(entry: Entry) -> Sid | None:
    octets = entry.first(DESCRIPTOR)
    return None if octets is None else SecurityDescriptor.decode(octets).owner


def _entries(descriptor: SecurityDescriptor) -> tuple[Ace, ...]:
    return () if descriptor.dacl is None else descriptor.dacl.aces


def _explicit(dacl: Acl) -> tuple[Ace, ...]:
    return tuple(ace for ace in dacl.aces if not ace.flags & AceFlags.INHERITED_ACE)


def _has(entry: Entry, attribute: str, given: Sequence[bytes]) -> bool:
    return sorted(entry.all(attribute)) == sorted(given)


def _same(entry: Entry, order: WriteOrder, attribute: str) -> bool:
    no = [b"FALSE"]
    return list(entry.all(attribute) or no) == (order.values.get(attribute) or no)


# Values that are written whole


async def modify(
    process: DirectoryProcess, name: str, changes: Sequence[Change], flags: int = 0
) -> None:
    """Change an object by one request; raises DirectoryError, and nothing has changed then."""
    written = [
        [each.how, each.attribute, [value.decode("latin-1") for value in each.values]]
        for each in changes
    ]
    await process.order("modify", name=name, changes=written, flags=flags)
