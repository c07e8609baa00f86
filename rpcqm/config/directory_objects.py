"""From the tables of a directory file to the elements that they describe."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, UUID, uuid5

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.directory_object import (
    DirectoryObject,
    DistributionList,
    Enterprise,
    QueueAlias,
    RoutingLink,
    Site,
    User,
)
from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.text import folded
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.security.user_certificates import digest_of, pack_certificates
from rpcqm.codec.types.mqvalues import INFINITE, FormatNameType, QueuePrivacyLevel
from rpcqm.config.directory_schema import TABLES
from rpcqm.config.values import ConfigurationError, Mistake, closest, shown, unknown

_NAMESPACE = uuid5(NAMESPACE_URL, "urn:rpcqm:directory")

_SETTINGS = {
    "quota": "queue_manager_quota",
    "journal_quota": "journal_quota",
    "encryption_key": "public_encryption_key_list",
    "signing_key": "public_signing_key_list",
}
"""Keys of a queue manager and their attributes; without a key, its own configuration decides."""

_NOT_IN_FILES: dict[type[DirectoryObject], frozenset[str]] = {
    QueueManager: frozenset({"create_time", "modify_time", "full_path"}),
    Queue: frozenset({"create_time", "modify_time", "multicast_address", "scope"}),
}
"""Attributes that a file cannot set, and that only each queue manager knows of itself."""

MOST_MISTAKES = 100
"""Mistakes of a directory file that are told.

Bound `file.directory_mistakes` [mistakes]: the others are not looked for.
"""

Row = dict[str, Any]
T = TypeVar("T")


class DirectoryObjectReader:
    """Reads one file; every mistake is kept with its line."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.split("\n")
        self._mistakes: list[Mistake] = []
        self._rows: dict[str, list[Row]] = {name: [] for name in TABLES}

    def read(self, document: Mapping[str, object]) -> DirectoryContents:
        """The contents; raises ConfigurationError with every mistake."""
        for name, value in document.items():
            if name not in TABLES:
                self._add(self._line(name, None), unknown("table", name, closest(name, TABLES)))
            else:
                self._read_table(name, value)
        self._check_unique()
        self._check_references()
        if self._mistakes:
            raise ConfigurationError(self._mistakes)
        return self._contents()

    # Tables

    def _read_table(self, name: str, value: object) -> None:
        rows = [value] if name == "enterprise" else value
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            header = f"[{name}]" if name == "enterprise" else f"[[{name}]]"
            self._add(self._line(name, None), f"`{name}` is a table; write {header}.")
            return
        for number, row in enumerate(rows):
            self._rows[name].append(self._read_row(name, number, row))

    def _read_row(self, name: str, number: int, row: Row) -> Row:
        entries, found = TABLES[name], Row(_number=number)
        for key, value in row.items():
            if key not in entries:
                close = closest(f"{name}.{key}", (f"{name}.{each}" for each in entries))
                mistake = unknown("setting", f"{name}.{key}", close)
                self._add(self._line(name, number, key), mistake)
                continue
            try:
                found[key] = entries[key].value(f"{name}.{key}", value)
            except ValueError as error:
                self._add(self._line(name, number, key), str(error))
        for key, entry in entries.items():
            if entry.required and key not in row:
                self._add(self._line(name, number), f"`{name}` lacks `{key}`, {entry.form}.")
        return found

    def _add(self, line: int, text: str) -> None:
        """Keep a mistake; stop at MOST_MISTAKES, because finding each line is slow."""
        self._mistakes.append(Mistake(f"{self._path}:{line}", text))
        if len(self._mistakes) >= MOST_MISTAKES:
            self._mistakes.append(Mistake(str(self._path), "has more mistakes, perhaps."))
            raise ConfigurationError(self._mistakes)

    def _line(self, name: str, number: int | None, key: str | None = None) -> int:
        """Where the header of the numbered table stands, or a key below it; from 1."""
        header = re.compile(rf"\s*(\[\[?\s*{re.escape(name)}\s*\]|{re.escape(name)}\s*=)")
        places = [at for at, line in enumerate(self._lines, 1) if header.match(line)]
        first = places[min(number or 0, len(places) - 1)] if places else 1
        if key is None:
            return first
        wanted = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        below = (at for at in range(first, len(self._lines)) if wanted.match(self._lines[at]))
        return next((at + 1 for at in below), first)

    # What rows say of each other

    def _check_unique(self) -> None:
        for table, key in (
            ("site", "name"),
            ("queue_manager", "name"),
            ("queue", "path"),
            ("user", "sid"),
            ("distribution_list", "name"),
            ("queue_alias", "name"),
            *((name, "identifier") for name in TABLES),
        ):
            seen: set[object] = set()
            for row in self._rows[table]:
                value = _comparable(row.get(key))
                if value is not None and value in seen:
                    line = self._line(table, row["_number"], key)
                    self._add(line, f"`{table}.{key}` is there twice: {shown(row[key])}.")
                seen.add(value)

    def _check_references(self) -> None:
        sites, machines = self._names("site"), self._names("queue_manager")
        for table, key, known, what in (
            ("site", "gates", machines, "queue manager"),
            ("routing_link", "gates", machines, "queue manager"),
            ("routing_link", "sites", sites, "site"),
            ("queue_manager", "sites", sites, "site"),
            ("queue_manager", "in_routing_servers", machines, "queue manager"),
            ("queue_manager", "out_routing_servers", machines, "queue manager"),
        ):
            for row in self._rows[table]:
                for name in row.get(key, ()):
                    if name.casefold() not in known:
                        self._refer(table, row, key, f"{what} {name!r}")
        for row in self._rows["queue"]:
            if "path" in row and row["path"].computer.casefold() not in machines:
                self._refer("queue", row, "path", f"queue manager {row['path'].computer!r}")
        self._check_members()

    def _check_members(self) -> None:
        lists = {row.get("identifier") for row in self._rows["distribution_list"]}
        queues = {row.get("identifier") for row in self._rows["queue"]}
        for row in self._rows["distribution_list"]:
            for text in row.get("members", ()):
                name = FormatName.parse(text)
                if name.type is FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC:
                    known = name.value in queues
                elif name.type is FormatNameType.QUEUE_FORMAT_TYPE_DL:
                    known = getattr(name.value, "guid", None) in lists
                else:
                    known = True
                if not known:
                    self._refer("distribution_list", row, "members", text)

    def _refer(self, table: str, row: Row, key: str, what: str) -> None:
        line = self._line(table, row["_number"], key)
        self._add(line, f"`{table}.{key}` names {what}, which is not in this file.")

    def _names(self, table: str) -> set[str]:
        return {row["name"].casefold() for row in self._rows[table] if "name" in row}

    # Elements

    def _contents(self) -> DirectoryContents:
        contents = DirectoryContents()
        for row in self._rows["enterprise"]:
            contents.enterprise = Enterprise(
                _identifier("enterprise", row),
                row["name"],
                default_time_to_live=row.get("default_time_to_live", 345_600),
                weakened_security=row.get("weakened_security", False),
                unsaid=frozenset({"default_time_to_live"} - row.keys()),
            )
        sites = {row["name"].casefold(): _site(row) for row in self._rows["site"]}
        machines = {row["name"].casefold(): _machine(row) for row in self._rows["queue_manager"]}
        contents.sites, contents.queue_managers = list(sites.values()), list(machines.values())
        for row in self._rows["site"]:
            gates = _chosen(machines, row, "gates")
            sites[row["name"].casefold()].site_gate_collection = list(gates)
        for row in self._rows["queue_manager"]:
            _connect(machines[row["name"].casefold()], row, sites, machines)
        contents.routing_links = [_link(row, sites, machines) for row in self._rows["routing_link"]]
        contents.queues = [_queue(row, machines) for row in self._rows["queue"]]
        contents.users = [_user(row) for row in self._rows["user"]]
        contents.distribution_lists = [
            DistributionList(row["identifier"], row["name"], row["members"], **_place(row))
            for row in self._rows["distribution_list"]
        ]
        contents.queue_aliases = [
            QueueAlias(
                _identifier("queue_alias", row), row["name"], row["format_name"], **_place(row)
            )
            for row in self._rows["queue_alias"]
        ]
        return contents


def _comparable(value: object) -> object:
    return folded(str(value)) if isinstance(value, str | PathName) else value


def _identifier(table: str, row: Row, *names: str) -> UUID:
    """The identifier given, else one that follows from names."""
    text = ":".join([table, *(names or (row["name"],))]).casefold()
    return row.get("identifier") or uuid5(_NAMESPACE, text)


def _place(row: Row) -> Row:
    """Where Active Directory has an object, as far as the file says it."""
    return {key: row.get(key, "") for key in ("full_path", "directory_path")}


def _chosen(elements: Mapping[str, T], row: Row, key: str) -> Iterator[T]:
    return (elements[name.casefold()] for name in row.get(key, ()))


def _site(row: Row) -> Site:
    return Site(_identifier("site", row), row["name"], foreign_site=row.get("foreign", False))


def _machine(row: Row) -> QueueManager:
    return QueueManager(
        row["identifier"],
        computer_name=row["name"],
        qualified_computer_name=row.get("qualified_name") or row["name"],
        addresses=row.get("addresses", []),
        routing_server=row.get("routing_server", False),
        foreign_system=row.get("foreign", False),
        queue_manager_quota=row.get("quota", QueueManager().queue_manager_quota),
        journal_quota=row.get("journal_quota", INFINITE),
        public_encryption_key_list=row.get("encryption_key", b""),
        public_signing_key_list=row.get("signing_key", b""),
        unsaid=_NOT_IN_FILES[QueueManager] | {_SETTINGS[key] for key in _SETTINGS.keys() - row},
    )


def _connect(
    machine: QueueManager, row: Row, sites: dict[str, Site], machines: dict[str, QueueManager]
) -> None:
    machine.site_identifier_list = [site.identifier for site in _chosen(sites, row, "sites")]
    machine.in_routing_server_identifier_list = [
        server.identifier for server in _chosen(machines, row, "in_routing_servers")
    ]
    machine.out_routing_server_identifier_list = [
        server.identifier for server in _chosen(machines, row, "out_routing_servers")
    ]


def _link(row: Row, sites: dict[str, Site], machines: dict[str, QueueManager]) -> RoutingLink:
    one, other = _chosen(sites, row, "sites")
    gates: list[DirectoryObject] = list(_chosen(machines, row, "gates"))
    return RoutingLink(
        _identifier("routing_link", row, *sorted(row["sites"])),
        description=row.get("description", ""),
        actual_cost=row["cost"],
        site1_identifier=one.identifier,
        site2_identifier=other.identifier,
        site_gate_identifier_list=[gate.identifier for gate in gates],
        site1_reference=one,
        site2_reference=other,
        site_gate_collection=gates,
    )


def _queue(row: Row, machines: dict[str, QueueManager]) -> Queue:
    path: PathName = row["path"]
    machine = machines[path.computer.casefold()]
    return Queue(
        row["identifier"],
        label=row.get("label", ""),
        type=row.get("type", UUID(int=0)),
        pathname=str(path),
        qualified_pathname=str(
            PathName(machine.qualified_computer_name, path.queue, QueueKind.PUBLIC)
        ),
        journaling=row.get("journal", False),
        quota=row.get("quota", INFINITE),
        journal_quota=row.get("journal_quota", INFINITE),
        authentication=row.get("authenticate", False),
        privacy_level=row.get("privacy", QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL),
        transactional=row.get("transactional", False),
        security=row.get("sddl", b""),
        base_priority=row.get("base_priority", 0),
        **_place(row),
        queue_type=QueueType.PUBLIC,
        queue_manager=machine,
        unsaid=_NOT_IN_FILES[Queue],
    )


def _user(row: Row) -> User:
    """Certificates are packed as MQUSERSIGNCERTS ([MS-MQMQ] 2.2.21, 2.2.22)."""
    certificates: list[bytes] = row.get("certificates", [])
    return User(
        _identifier("user", row),
        security_identifier=row["sid"],
        certificate_digest_list=[digest_of(each) for each in certificates],
        certificates=pack_certificates(certificates),
    )
