"""`rpcqm directory test`: each step on the way to a directory, with its time and its remedy."""

import asyncio
import calendar
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from rpcqm.config import Configuration
from rpcqm.directory.names import child_of
from rpcqm.directory.process import DirectoryError, DirectoryProcess
from rpcqm.directory.reading import DirectoryReader, Root, Settings
from rpcqm.directory.values import Entry, equals_filter
from rpcqm.service.directory_source import directory_settings

T = TypeVar("T")

SKEW = 300
"""Seconds by which Kerberos lets clocks differ."""
RIGHTS = ("allowedAttributesEffective", "allowedChildClassesEffective")

REMEDIES = {
    "locate": "Name controllers in `directory.servers`, or let DNS list _ldap._tcp.dc._msdcs of "
    "the domain.",
    "keytab": "Let `directory.keytab` be a file with the present keys of the machine's account, "
    "and `directory.principal` that account; see `klist -k`.",
    "connect": "See whether the controller's port is reached from here.",
    "tls": "Let `directory.ca_file` have the authority of the controller's certificate, and "
    "`directory.servers` the name in it.",
    "bind": "See whether the controller answers, its name is the one that Kerberos has, and the "
    "clocks agree; with TLS, whether `directory.ca_file` has its authority.",
    "root": "Another server than a domain controller may answer there.",
    "search": "Everybody who has logged on may read these objects, unless somebody has taken "
    "that away.",
}
"""What helps where a step fails."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step has shown; `failed` is what helps, "" if it succeeded."""

    name: str
    seconds: float
    text: str
    remedy: str = ""
    failed: bool = False


class Examination:
    """Goes all steps, and ends at the first one that fails."""

    def __init__(self, configuration: Configuration, process: DirectoryProcess) -> None:
        self._settings: Settings = directory_settings(configuration)
        self._name = configuration.name.upper()
        self._process = process
        self._reader = DirectoryReader(self._settings, process)

    async def steps(self) -> AsyncIterator[Step]:
        """One after the other."""
        for name, take in (
            ("locate", self._locate),
            ("connect", self._connect),
            ("clock", self._clock),
            ("search", self._search),
            ("own object", self._own),
        ):
            step = await _timed(name, take)
            yield step
            if step.failed:
                return

    async def _locate(self) -> tuple[str, str]:
        return ", ".join(await self._reader.servers()), ""

    async def _connect(self) -> tuple[str, str]:
        root = await self._reader.connect()
        who = self._settings.principal
        return f"{root.name}, {self._settings.security}, as {who}; {root.domain}", ""

    async def _clock(self) -> tuple[str, str]:
        digits = re.match(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)", self._root.time)
        if digits is None:
            return "the controller does not tell the time", ""
        there = calendar.timegm((*map(int, digits.groups()), 0, 0, 0))
        apart = abs(time.time() - there)
        remedy = "Let NTP keep both clocks right." if apart > SKEW else ""
        return f"the clocks are {apart:.0f} seconds apart", remedy

    @property
    def _root(self) -> Root:
        assert self._reader.root is not None
        return self._reader.root

    async def _search(self) -> tuple[str, str]:
        contents = await self._reader.read_all()
        text = (
            f"{len(contents.queue_managers)} queue managers, {len(contents.queues)} queues, "
            f"{len(contents.sites)} sites, {len(contents.routing_links)} links"
        )
        skipped = self._reader.objects.skipped
        if not skipped:
            return text, ""
        name, why = next(iter(skipped.items()))
        return f"{text}; {len(skipped)} left out", f"For example {name}: {why}."

    async def _own(self) -> tuple[str, str]:
        """The computer, the queue manager's object, and what may be done there."""
        computer = await self._computer()
        if computer is None:
            return f"no computer {self._name}$ is there", "Join the machine to the domain."
        own = await self._process.read(child_of(computer.name, "msmq"), ["objectGUID", *RIGHTS])
        if own is None:
            may = b"mSMQConfiguration" in computer.all(RIGHTS[1])
            text = f"{computer.name} has no queue manager; one may{'' if may else ' not'} be made"
            return text, "`rpcqm directory join` makes it."
        writes = b"mSMQQuota" in own.all(RIGHTS[0])
        makes = b"mSMQQueue" in own.all(RIGHTS[1])
        remedy = "" if writes and makes else "Only reading is possible; see docs/directory.md."
        text = f"{own.name}: may{'' if writes else ' not'} be changed"
        return f"{text}, queues may{'' if makes else ' not'} be made", remedy

    async def _computer(self) -> Entry | None:
        account = equals_filter("sAMAccountName", f"{self._name[:15]}$".encode())
        what, found = f"(&(objectCategory=computer){account})", list[Entry]()
        asked = ["dNSHostName", RIGHTS[1]]
        async for entries in self._process.search(self._root.domain, asked, what, "all"):
            found += entries
        return found[0] if found else None


async def _timed(name: str, take: Callable[[], Awaitable[tuple[str, str]]]) -> Step:
    began = time.monotonic()
    try:
        text, remedy = await take()
    except DirectoryError as error:
        step = error.step if error.step in REMEDIES else name
        remedy = REMEDIES.get(step, "")
        return Step(step, time.monotonic() - began, str(error), remedy, failed=True)
    return Step(name, time.monotonic() - began, text, remedy)


def with_process(
    configuration: Configuration, use: Callable[[DirectoryProcess], Awaitable[T]]
) -> T:
    """Use a process that asks the directory, to its end."""

    async def run() -> T:
        process = DirectoryProcess(configuration.directory.timeout)
        try:
            return await use(process)
        finally:
            await process.stop()

    return asyncio.run(run())
