"""Joins a directory and leaves it, while the queue manager does not run.

The directory chooses the identifier of the queue manager's object, and it is the identifier of the
queue manager: so joining belongs before its first message.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from uuid import UUID

from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.records import decode_queue_manager
from rpcqm.config import Configuration
from rpcqm.directory import names
from rpcqm.directory.machine_orders import machine_order
from rpcqm.directory.process import WORKER, DirectoryProcess
from rpcqm.directory.reading import DirectoryReader, Settings
from rpcqm.directory.values import equals_filter, read_guid
from rpcqm.directory.writing import CREATE_MACHINE, DELETE_MACHINE, WriteOrder, carry_out
from rpcqm.qm.machine import JOIN_ORDER, QUEUE_MANAGER_KEY
from rpcqm.service.addresses import qualified_name
from rpcqm.store.backup import mark_as_restored
from rpcqm.store.database import DATABASE_NAME, Database, locked
from rpcqm.store.directory_mark import write_mark
from rpcqm.store.records import Family
from rpcqm.store.settings import StoreSettings

_USED = {
    Family.POSITION: "messages",
    Family.STAGED: "open transactions",
    Family.STREAM: "sessions with other queue managers",
    Family.HISTORY: "what it knows of messages from others",
}
"""What is in a data directory by which others know the identifier that it has."""


class MembershipError(Exception):
    """Why a queue manager does not join or leave, in sentences."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a data directory says of its queue manager."""

    identifier: UUID | None = None
    used: tuple[str, ...] = ()


def look_at(data_dir: Path) -> Kept:
    """What a data directory has that nobody has open; raises StoreError."""
    if not (data_dir / DATABASE_NAME).is_dir():
        return Kept()
    with locked(data_dir):
        pass
    database = Database(data_dir, StoreSettings(), read_only=True)
    try:
        record = database.get(Family.META, QUEUE_MANAGER_KEY)
        machine = QueueManager()
        if record is None:
            return Kept()
        decode_queue_manager(record, machine)
        used = (word for family, word in _USED.items() if any(database.items(family)))
        return Kept(machine.identifier, tuple(used))
    finally:
        database.close()


class Membership:
    """One connection to the directory, for one order of an operator."""

    def __init__(
        self,
        settings: Settings,
        machine: QueueManager,
        dry_run: bool = False,
        command: Sequence[str] = WORKER,
    ) -> None:
        self._process = DirectoryProcess(settings.timeout, command)
        self._reader = DirectoryReader(settings, self._process)
        self._machine = machine
        self._dry_run = dry_run

    async def stop(self) -> None:
        await self._process.stop()

    async def join(self, data_dir: Path, site: str, new_identifier: bool) -> DirectoryAnswer:
        """Make or take over the queue manager's object, and give the data its identifier.

        Raises MembershipError, DirectoryError and StoreError.
        """
        kept = look_at(data_dir)
        await self._connect()
        there = await self._carried_out(CREATE_MACHINE, dry_run=True)
        if site or there.identifier is None:
            self._machine.site_identifier_list = [await self._site(site)]
        if kept.identifier not in (None, there.identifier) and kept.used and not new_identifier:
            raise MembershipError(_refusal(data_dir, kept))
        answer = await self._carried_out(CREATE_MACHINE, self._dry_run)
        if not self._dry_run and answer.identifier != kept.identifier:
            self._take(data_dir, kept, answer.identifier)
        return answer

    def _take(self, data_dir: Path, kept: Kept, identifier: UUID | None) -> None:
        """Let the next start have the identifier of the object."""
        if kept.identifier is None:
            data_dir.mkdir(mode=0o711, parents=True, exist_ok=True)
        elif kept.used:
            mark_as_restored(data_dir)  # numbers of another queue manager begin anew
        write_mark(data_dir, f"{JOIN_ORDER}:{identifier}")

    async def leave(self, data_dir: Path) -> DirectoryAnswer:
        """Delete the queue manager's object, with the queues below it that are ours."""
        look_at(data_dir)  # nobody has it open
        await self._connect()
        return await self._carried_out(DELETE_MACHINE, self._dry_run)

    async def carry_out(self, order: WriteOrder) -> DirectoryAnswer:
        """Carry out any order over the connection; raises DirectoryError if there is none."""
        if self._reader.root is None:
            await self._connect()
        assert self._reader.root is not None
        return await carry_out(self._process, self._reader.root, order)

    async def _connect(self) -> None:
        await self._reader.connect()

    async def _carried_out(self, action: str, dry_run: bool) -> DirectoryAnswer:
        order = machine_order(action, self._machine, settings=True, dry_run=dry_run)
        answer = await self.carry_out(order)
        absent = DirectoryOperationResult.OBJECT_NOT_FOUND
        if answer.result not in (DirectoryOperationResult.SUCCESS, absent):
            raise MembershipError(answer.reason or answer.result.value)
        return answer

    async def _site(self, name: str) -> UUID:
        """The identifier of a site, or of the only one that there is."""
        root = self._reader.root
        assert root is not None
        wanted = equals_filter("cn", name.encode()) if name else ""
        found = [
            entry
            async for entries in self._process.search(
                f"CN=Sites,{root.configuration}",
                ("objectGUID", "cn"),
                f"(&(objectClass=site){wanted})",
                "all",
            )
            for entry in entries
        ]
        if len(found) != 1:
            known = ", ".join(sorted(names.value_of(names.parts_of(e.name)[0]) for e in found))
            raise MembershipError(
                f"There is no site {name}." if name else f"Say which site it is by --site: {known}."
            )
        return read_guid(found[0].first("objectGUID") or b"")


def machine_of(configuration: Configuration) -> QueueManager:
    """The queue manager that a configuration describes, as far as it decides that itself."""
    return QueueManager(
        computer_name=configuration.name,
        qualified_computer_name=qualified_name(configuration.name),
        queue_manager_quota=configuration.storage.quota,
        supporting_server=configuration.security.supporting_server,
        queue_manager_version=version("rpcqm"),
    )


def _refusal(data_dir: Path, kept: Kept) -> str:
    return (
        f"{data_dir} has {', '.join(kept.used)} of queue manager {kept.identifier}, and the "
        "directory gives another identifier: PRIVATE= names elsewhere would not find its queues "
        "any more, and others would take messages that they have for new ones. Join with "
        "--new-identifier if that may be, or with a new data directory."
    )
