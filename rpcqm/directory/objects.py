"""The objects of a directory as they were last read, and the elements made of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.directory_object import (
    NULL_GUID,
    DirectoryObject,
    DistributionList,
    Enterprise,
    QueueAlias,
    RoutingLink,
    Site,
    User,
)
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.directory import elements, names, searches
from rpcqm.directory.names import comparable
from rpcqm.directory.values import Entry, read_guid, read_text

T = TypeVar("T", bound=DirectoryObject)

MOST_SKIPPED = 100
"""Objects with wrong values that are named.

Bound `directory.skipped` [objects]: further ones are skipped without a line of their own.
"""
LARGEST_CERTIFICATES = 64 << 10
"""Octets of the certificates of one user.

Bound `directory.certificate_octets` [octets]: the user is skipped.
"""
SERVICES = "cn=msmqservices,"
_IN_LISTS = frozenset({searches.QUEUE, searches.ALIAS, searches.GROUP})

_log = get_logger("directory")


class Objects:
    """The objects of a round; elements are made when the whole round is there."""

    def __init__(self, most_queues: int, root_domain: str = "") -> None:
        self._most_queues = most_queues
        self._root_domain = root_domain
        self._kept: dict[str, dict[UUID, Entry]] = {kind: {} for kind in _KEPT}
        self._queues: dict[UUID, Queue] = {}
        self._waiting: dict[UUID, Entry] = {}
        self._machines: dict[str, QueueManager] = {}
        self.skipped: dict[str, str] = {}
        """The reasons for skipping objects, by their names."""
        self.left_out = 0
        """The number of queues beyond the bound."""
        self.changed = False
        self.moved = False
        """Whether a computer was renamed: the objects below it were, too, without a change of their
        own."""

    # Taking a round

    def take(self, entry: Entry) -> None:
        """Keep an object that a round has found; one without an identifier is skipped."""
        identifier = self._identifier(entry)
        kind = next((k for k in _order(entry) if k in self._kept or k == searches.QUEUE), None)
        if identifier is None or kind is None:
            return
        self.changed = True
        if kind != searches.QUEUE:
            self._kept[kind][identifier] = entry
        elif len(self._queues) < self._most_queues or identifier in self._queues:
            self._waiting[identifier] = entry
        else:
            self.left_out += 1

    def _identifier(self, entry: Entry) -> UUID | None:
        try:
            return read_guid(entry.first("objectGUID") or b"")
        except DecodeError as error:
            self._skip(entry.name, str(error))
            return None

    def matters(self, entry: Entry) -> bool:
        """Whether a changed object is relevant: most computers and groups are not."""
        kinds = _order(entry)
        if kinds[:1] == [searches.COMPUTER]:
            known = self._kept[searches.COMPUTER].get(self._identifier(entry) or NULL_GUID)
            self.moved |= known is not None and known.name != entry.name
            return known is not None
        if kinds[:1] == [searches.GROUP]:
            return self._identifier(entry) in self._kept[searches.GROUP] or self._has_member(entry)
        return True

    def keep_only(self, identifiers: set[UUID]) -> None:
        """Drop the objects that are not in the directory any more."""
        for kind, kept in self._kept.items():
            if kind != searches.COMPUTER:
                self._drop(kept, identifiers)
        self._drop(self._queues, identifiers)

    def _drop(self, kept: dict[UUID, T] | dict[UUID, Entry], there: set[UUID]) -> None:
        for gone in kept.keys() - there:
            del kept[gone]
            self.changed = True

    def computers_of_machines(self) -> list[str]:
        """The names of the computers that have a queue manager."""
        found = []
        for entry in self._kept[searches.MACHINE].values():
            try:
                found.append(names.parent_of(entry.name))
            except DecodeError as error:
                self._skip(entry.name, str(error))
        return found

    def computers_wanted(self) -> list[str]:
        """The same, without those that were read already."""
        there = {comparable(each.name) for each in self._kept[searches.COMPUTER].values()}
        return [each for each in self.computers_of_machines() if comparable(each) not in there]

    @property
    def lists(self) -> list[str]:
        """The names of the groups that were read."""
        return [each.name for each in self._kept[searches.GROUP].values()]

    def lists_missing(self, wanted: Mapping[str, str]) -> list[str]:
        """The names in `wanted` of groups that were not read; by their comparable names."""
        there = {comparable(each.name) for each in self._kept[searches.GROUP].values()}
        return [name for key, name in wanted.items() if key not in there]

    def groups_of(self, entries: Iterable[Entry]) -> dict[str, str]:
        """The groups these objects are in, by their comparable names, without those of users."""
        found: dict[str, str] = {}
        for entry in entries:
            if not _IN_LISTS.isdisjoint(_order(entry)):
                for value in entry.all("memberOf"):
                    name = value.decode("utf-8", "replace")
                    found[comparable(name)] = name
        return found

    def _has_member(self, entry: Entry) -> bool:
        """Whether a queue, an alias or a list is in a group."""
        there = self._targets()
        members = (comparable(each.decode("utf-8", "replace")) for each in entry.all("member"))
        return any(member in there for member in members)

    # Elements

    def make_machines(self) -> None:
        """Make all queue managers anew, and let the queues know theirs."""
        entries = self._kept[searches.MACHINE]
        by_name = {comparable(entry.name): guid for guid, entry in entries.items()}
        computers = {comparable(e.name): e for e in self._kept[searches.COMPUTER].values()}

        def make(entry: Entry) -> QueueManager:
            made = elements.read_queue_manager(entry, lambda name: by_name.get(comparable(name)))
            parent = comparable(names.parent_of(entry.name))
            elements.add_computer(made, computers.get(parent))
            return made

        made = self._made(entries.values(), make)
        self._machines = {comparable(each.full_path): each for each in made}
        for queue in list(self._queues.values()):
            machine = self._machines.get(comparable(names.parent_of(queue.full_path)))
            if machine is None:
                del self._queues[queue.identifier]
            queue.queue_manager = machine

    def make_queues(self) -> None:
        """Make queues of the objects that have come since the last time."""
        some, self._waiting = self._waiting, {}
        for made in self._made(some.values(), self._queue):
            self._queues[made.identifier] = made

    def _queue(self, entry: Entry) -> Queue:
        machine = self._machines.get(comparable(names.parent_of(entry.name)))
        if machine is None:
            raise DecodeError("its queue manager is not there")
        made = elements.read_queue(entry, machine)
        try:
            PathName.parse(made.pathname)
        except MQError as error:
            raise DecodeError("its name is that of no queue") from error
        return made

    def _made(self, entries: Iterable[Entry], make: Callable[[Entry], T]) -> list[T]:
        found = []
        for entry in entries:
            try:
                found.append(make(entry))
            except DecodeError as error:
                self._skip(entry.name, str(error))
            else:
                self.skipped.pop(entry.name, None)
        return found

    def _skip(self, name: str, why: str) -> None:
        """Skip an object, and log it once for each reason."""
        if self.skipped.get(name) != why and len(self.skipped) < MOST_SKIPPED:
            self.skipped[name] = why
            _log.warning("an object of the directory is left out", name=name, why=why)

    def contents(self) -> DirectoryContents:
        """All elements; queue managers and queues were made before."""
        self.changed = False
        machines = {each.identifier: each for each in self._machines.values()}
        sites = self._all(searches.SITE, elements.read_site)
        made = DirectoryContents(
            self._enterprise(),
            sites,
            self._links(sites, machines),
            list(machines.values()),
            list(self._queues.values()),
            self._all(searches.USER, self._user),
            queue_aliases=self._all(searches.ALIAS, self._alias),
        )
        made.distribution_lists = self._all(searches.GROUP, self._list_maker())
        return made

    def _all(self, kind: str, make: Callable[[Entry], T]) -> list[T]:
        return self._made(self._kept[kind].values(), make)

    def _enterprise(self) -> Enterprise | None:
        """The settings object with the section's name; others are only reported."""
        chosen = None
        for entry in self._kept[searches.ENTERPRISE].values():
            if comparable(entry.name).startswith(SERVICES):
                chosen = entry
            else:
                self._skip(entry.name, "it is a second one of its kind in the forest")
        found = [] if chosen is None else self._made([chosen], self._read_enterprise)
        return found[0] if found else None

    def _read_enterprise(self, entry: Entry) -> Enterprise:
        return elements.read_enterprise(entry, self._root_domain)

    def _links(self, sites: list[Site], machines: dict[UUID, QueueManager]) -> list[RoutingLink]:
        places = {comparable(each.full_path): each for each in sites}
        by_guid = {each.identifier: each for each in sites}

        def site(name: str) -> UUID | None:
            found = places.get(comparable(name))
            return None if found is None else found.identifier

        def machine(name: str) -> UUID | None:
            found = self._machines.get(comparable(name))
            return None if found is None else found.identifier

        links = self._all(searches.LINK, lambda entry: elements.read_link(entry, site, machine))
        for link in links:
            ends = by_guid[link.site1_identifier], by_guid[link.site2_identifier]
            link.site1_reference, link.site2_reference = ends
            for identifier in link.site_gate_identifier_list:
                _add_gate(link, machines[identifier], ends)
        return links

    def _user(self, entry: Entry) -> User:
        if len(entry.first("mSMQSignCertificates") or b"") > LARGEST_CERTIFICATES:
            raise DecodeError("its certificates are too large")
        return elements.read_user(entry)

    def _alias(self, entry: Entry) -> QueueAlias:
        made = elements.read_alias(entry)
        try:
            FormatName.parse(made.format_name)
        except MQError as error:
            raise DecodeError("its format name is none") from error
        return made

    # Lists

    def _targets(self) -> dict[str, str]:
        """The format names of all possible members of lists, by comparable names."""
        found = {
            comparable(each.full_path): f"PUBLIC={each.identifier}"
            for each in self._queues.values()
        }
        for guid, entry in self._kept[searches.GROUP].items():
            found[comparable(entry.name)] = f"DL={guid}"
        for alias in self._all(searches.ALIAS, self._alias):
            found[comparable(alias.full_path)] = alias.format_name
        return found

    def _list_maker(self) -> Callable[[Entry], DistributionList]:
        targets = self._targets() if self._kept[searches.GROUP] else {}

        def make(entry: Entry) -> DistributionList:
            members = [read_text(each) for each in entry.all("member")]
            found = [targets.get(comparable(each)) for each in members]
            if None in found:
                other = members[found.index(None)]
                raise DecodeError(f"{other}, which is in it, is no queue, alias or list")
            name = names.value_of(names.parts_of(entry.name)[0])
            identifier = read_guid(entry.first("objectGUID") or b"")
            texts = [each for each in found if each is not None]
            path = f"LDAP://{entry.name}"
            return DistributionList(identifier, name, texts, entry.name, path)

        return make


_KEPT = (
    searches.MACHINE,
    searches.ALIAS,
    searches.USER,
    searches.SITE,
    searches.LINK,
    searches.ENTERPRISE,
    searches.COMPUTER,
    searches.GROUP,
)


def _order(entry: Entry) -> Sequence[str]:
    """The classes of an object, the most special one first."""
    return [each.decode("ascii", "replace").lower() for each in reversed(entry.all("objectClass"))]


def _add_gate(link: RoutingLink, gate: QueueManager, ends: tuple[Site, Site]) -> None:
    link.site_gate_collection.append(gate)
    for site in ends:
        known = site.site_gate_collection
        if site.identifier in gate.site_identifier_list and gate not in known:
            known.append(gate)
