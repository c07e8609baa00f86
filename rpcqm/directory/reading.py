"""Reads a directory: everything once, then the changes ([MS-MQDSSM] 3.1.3, 3.1.6.3 to .6)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rpcqm.adm.directory import DirectoryContents
from rpcqm.base.errors import DecodeError
from rpcqm.directory import names, searches
from rpcqm.directory.objects import Objects
from rpcqm.directory.process import DirectoryError, DirectoryProcess
from rpcqm.directory.values import Entry, read_guid

SEALED, LDAPS, STARTTLS = "sealed", "ldaps", "starttls"
MOST_LISTS = 1000
"""Groups that are read because queues are in them.

Bound `directory.lists` [groups]: lists beyond it are not known.
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """The place of a directory and the bounds of reading; times are seconds."""

    domain: str
    servers: tuple[str, ...] = ()
    site: str = ""
    security: str = SEALED
    ca_file: str = ""
    keytab: str = ""
    principal: str = ""
    search_bases: tuple[str, ...] = ()
    round: float = 60
    full_round: float = 300
    timeout: float = 5
    keep_for: float = 7 * 86_400
    most_objects: int = 50_000

    def words(self, server: str) -> dict[str, object]:
        """The order by which a process connects to a server."""
        return {
            "server": server,
            "security": self.security,
            "ca_file": self.ca_file,
            "keytab": self.keytab,
            "principal": self.principal,
            "timeout": self.timeout * 0.8,  # the library's error names the slow step
        }


@dataclass(frozen=True, slots=True)
class Root:
    """A controller's description of itself and of its forest."""

    name: str
    domain: str
    configuration: str
    root_domain: str
    sequence: int
    invocation: bytes
    time: str


def read_root(more: Mapping[str, Any]) -> Root:
    """The root DSE; DirectoryError if a part is missing."""

    found: dict[str, list[str]] = more.get("root") or {}

    def first(name: str) -> str:
        return (found.get(name) or [""])[0].encode("latin-1").decode("utf-8")

    try:
        domain, configuration = first("defaultnamingcontext"), first("configurationnamingcontext")
        root = Root(
            first("dnshostname"),
            domain,
            configuration,
            names.domain_of(first("rootdomainnamingcontext")),
            int(first("highestcommittedusn")),
            (found.get("invocationid") or [""])[0].encode("latin-1"),
            first("currenttime"),
        )
    except (ValueError, TypeError, AttributeError, LookupError, DecodeError) as error:
        raise DirectoryError(f"the controller's root DSE is damaged: {error}") from error
    if not domain or not configuration:
        raise DirectoryError("the controller's root DSE has no naming contexts")
    return root


class DirectoryReader:
    """One directory, by any controller that answers; `objects` is the last state read."""

    def __init__(self, settings: Settings, process: DirectoryProcess) -> None:
        self._settings = settings
        self.process = process
        self.objects = Objects(settings.most_objects)
        self.server = ""
        self.root: Root | None = None
        self._since = 0
        self._turn = 0

    # Connecting

    async def servers(self) -> Sequence[str]:
        """The controllers of the configuration, else those that DNS lists."""
        settings = self._settings
        if settings.servers:
            return settings.servers
        more = await self.process.order(
            "locate", domain=settings.domain, site=settings.site, timeout=settings.timeout * 0.8
        )
        found = more.get("servers")
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise DirectoryError("the list of controllers is damaged", step="locate")
        return found

    async def connect(self) -> Root:
        """Bind to the next controller; raises DirectoryError."""
        found = await self.servers()
        if not found:
            raise DirectoryError("no controller is known", step="locate")
        self.server = found[self._turn % len(found)]
        self._turn += 1
        more = await self.process.order("connect", **self._settings.words(self.server))
        self._turn -= 1  # while it answers, it stays the same
        self.root = read_root(more)
        return self.root

    def give_up(self) -> None:
        """Let the next attempt be at the next controller."""
        self._turn += 1

    # Rounds

    async def read_all(self) -> DirectoryContents:
        """Read everything anew; raises DirectoryError, and nothing has changed then."""
        root = self._connected()
        objects = Objects(self._settings.most_objects, root.root_domain)
        await self._take(objects, root.configuration, searches.CONFIGURATION_FILTER, _CONFIGURATION)
        machines = "(objectClass=mSMQConfiguration)"
        for base in self._bases(root):
            await self._take(objects, base, machines, searches.DOMAIN_ATTRIBUTES)
        await self._take_named(
            objects, objects.computers_of_machines(), searches.COMPUTER_ATTRIBUTES
        )
        objects.make_machines()
        wanted: dict[str, str] = {}

        def together(entries: list[Entry]) -> None:
            wanted.update(objects.groups_of(entries))
            objects.make_queues()

        for base in self._bases(root):
            await self._take(objects, base, _REST, searches.DOMAIN_ATTRIBUTES, together)
        await self._read_lists(objects, wanted)
        self.objects, self._since = objects, root.sequence + 1
        return objects.contents()

    async def read_changes(self) -> DirectoryContents | None:
        """Read the changes, None without any; a replaced or restored controller is read whole."""
        before = self._connected()
        self.root = root = read_root(await self.process.order("refresh"))
        if root.invocation != before.invocation or root.sequence + 1 < self._since:
            return await self.read_all()
        if root.sequence + 1 == self._since:
            return None
        objects, since = self.objects, self._since
        configuration = searches.changed_filter(searches.CONFIGURATION_FILTER, since)
        await self._take(objects, root.configuration, configuration, _CONFIGURATION)
        wanted: dict[str, str] = {}
        for base in self._bases(root):
            changed = searches.changed_filter(searches.DOMAIN_FILTER, since)
            asked = searches.CHANGED_ATTRIBUTES
            await self._take(
                objects,
                base,
                changed,
                asked,
                lambda entries: wanted.update(objects.groups_of(entries)),
                only_known=True,
            )
        if objects.moved:
            return await self.read_all()
        self._since = root.sequence + 1
        return await self._changed(wanted)

    async def read_identifiers(self) -> DirectoryContents | None:
        """Drop the objects that are gone; None without any."""
        root, found = self._connected(), set[UUID]()
        places = [(root.configuration, searches.CONFIGURATION_FILTER)]
        places += [(base, searches.DOMAIN_FILTER) for base in self._bases(root)]
        lists = searches.named_filters(self.objects.lists)
        places += [(root.domain, what) for what in lists]
        for base, what in places:
            async for entries in self.process.search(base, searches.IDENTIFIERS, what, "all"):
                for entry in entries:
                    try:
                        found.add(read_guid(entry.first("objectGUID") or b""))
                    except DecodeError as error:
                        raise DirectoryError(f"{entry.name}: {error}") from error
                await asyncio.sleep(0)
        self.objects.keep_only(found)
        return await self._changed({})

    async def _changed(self, wanted: dict[str, str]) -> DirectoryContents | None:
        objects = self.objects
        if not objects.changed:
            return None
        missing = objects.computers_wanted()
        await self._take_named(objects, missing, searches.COMPUTER_ATTRIBUTES)
        objects.make_machines()
        objects.make_queues()
        await self._read_lists(objects, wanted)
        return objects.contents()

    def _connected(self) -> Root:
        if self.root is None:
            raise DirectoryError("no controller is connected")
        return self.root

    def _bases(self, root: Root) -> Sequence[str]:
        return self._settings.search_bases or (root.domain,)

    async def _take(
        self,
        objects: Objects,
        base: str,
        what: str,
        attributes: Sequence[str],
        each: Callable[[list[Entry]], object] = lambda _: None,
        only_known: bool = False,
    ) -> None:
        """Keep the objects that a search finds; `each` is called with every part of it."""
        async for entries in self.process.search(base, attributes, what, "all"):
            for entry in entries:
                if only_known and not objects.matters(entry):
                    continue
                objects.take(entry)
            each(entries)
            await asyncio.sleep(0)

    async def _take_named(
        self,
        objects: Objects,
        wanted: Sequence[str],
        attributes: Sequence[str],
        each: Callable[[list[Entry]], object] = lambda _: None,
    ) -> None:
        root = self._connected()
        for what in searches.named_filters(wanted):
            await self._take(objects, root.domain, what, attributes, each)

    async def _read_lists(self, objects: Objects, wanted: dict[str, str]) -> None:
        """Read the groups that contain queues, aliases or other such groups, up to a bound."""
        while missing := objects.lists_missing(wanted):
            before, above = len(objects.lists), dict[str, str]()
            if before + len(missing) > MOST_LISTS:
                break

            def groups(entries: list[Entry], above: dict[str, str] = above) -> None:
                above.update(objects.groups_of(entries))

            await self._take_named(objects, missing, searches.GROUP_ATTRIBUTES, groups)
            if len(objects.lists) == before:
                break
            wanted = above


_CONFIGURATION = searches.CONFIGURATION_ATTRIBUTES
_REST = (
    "(|(objectClass=mSMQQueue)(objectClass=msMQ-Custom-Recipient)"
    "(&(objectCategory=person)(mSMQDigests=*)))"
)
