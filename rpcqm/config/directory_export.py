"""Writes what a directory has as a directory file, which `rpcqm.config.directory` reads."""

import base64
import json
from collections.abc import Iterator, Mapping
from uuid import UUID

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.directory_object import DirectoryObject, RoutingLink, User
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.user_certificates import unpack_certificates
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.config.directory_schema import PRIVACY

Row = Mapping[str, object]


def directory_file(contents: DirectoryContents) -> Iterator[str]:
    """The lines of a file; references to what is not there are left out."""
    if contents.enterprise is not None:
        enterprise = contents.enterprise
        yield "[enterprise]"
        yield from _lines({"name": enterprise.name, "identifier": enterprise.identifier})
    machines = {each.identifier: each.computer_name for each in contents.queue_managers}
    sites = {each.identifier: each.name for each in contents.sites}
    for site in contents.sites:
        gates = _named(machines, [gate.identifier for gate in site.site_gate_collection])
        row = {"name": site.name, "identifier": site.identifier, "foreign": site.foreign_site}
        yield from _table("site", {**row, "gates": gates})
    for link in contents.routing_links:
        yield from _table("routing_link", _link(link, sites, machines))
    for machine in contents.queue_managers:
        yield from _table("queue_manager", _machine(machine, sites, machines))
    for queue in contents.queues:
        yield from _table("queue", _queue(queue))
    for user in contents.users:
        yield from _table("user", _user(user))
    for several in contents.distribution_lists:
        row = {"name": several.name, "identifier": several.identifier}
        members = {"members": several.format_names, "full_path": several.full_path}
        yield from _table("distribution_list", {**row, **members})
    for alias in contents.queue_aliases:
        row = {"name": alias.name, "identifier": alias.identifier}
        more = {"format_name": alias.format_name, "full_path": alias.full_path}
        yield from _table("queue_alias", {**row, **more})


def _named(names: Mapping[UUID, str], identifiers: list[UUID]) -> list[str]:
    return [names[each] for each in identifiers if each in names]


def _link(link: RoutingLink, sites: Mapping[UUID, str], machines: Mapping[UUID, str]) -> Row:
    return {
        "identifier": link.identifier,
        "description": link.description,
        "sites": _named(sites, [link.site1_identifier, link.site2_identifier]),
        "cost": link.actual_cost,
        "gates": _named(machines, link.site_gate_identifier_list),
    }


def _machine(machine: QueueManager, sites: Mapping[UUID, str], machines: Mapping[UUID, str]) -> Row:
    said = _said(machine, quota="queue_manager_quota", journal_quota="journal_quota")
    return {
        "name": machine.computer_name,
        "identifier": machine.identifier,
        "qualified_name": machine.qualified_computer_name,
        "addresses": machine.addresses,
        "sites": _named(sites, machine.site_identifier_list),
        "routing_server": machine.routing_server,
        "foreign": machine.foreign_system,
        "in_routing_servers": _named(machines, machine.in_routing_server_identifier_list),
        "out_routing_servers": _named(machines, machine.out_routing_server_identifier_list),
        **said,
        "encryption_key": machine.public_encryption_key_list,
        "signing_key": machine.public_signing_key_list,
    }


def _said(element: DirectoryObject, **names: str) -> Row:
    """The attributes of which the directory says something."""
    return {key: getattr(element, n) for key, n in names.items() if n not in element.unsaid}


def _queue(queue: Queue) -> Row:
    return {
        "path": queue.pathname,
        "identifier": queue.identifier,
        "label": queue.label,
        "type": queue.type,
        "transactional": queue.transactional,
        "journal": queue.journaling,
        "quota": None if queue.quota == INFINITE else queue.quota,
        "journal_quota": None if queue.journal_quota == INFINITE else queue.journal_quota,
        "authenticate": queue.authentication,
        "privacy": next(name for name, level in PRIVACY.items() if level is queue.privacy_level),
        "base_priority": queue.base_priority,
        "full_path": queue.full_path,
    }


def _user(user: User) -> Row:
    sid = str(Sid.decode(user.security_identifier))
    encoded = [base64.b64encode(c).decode() for c in unpack_certificates(user.certificates)]
    return {"name": sid, "identifier": user.identifier, "sid": sid, "certificates": encoded}


def _table(name: str, row: Row) -> Iterator[str]:
    yield ""
    yield f"[[{name}]]"
    yield from _lines(row)


def _lines(row: Row) -> Iterator[str]:
    """Keys and values; what is empty is left out, but for members, which a list must have."""
    for key, value in row.items():
        if key == "members" or not _is_empty(value):
            yield f"{key} = {_value(value)}"


def _is_empty(value: object) -> bool:
    """Whether a file without the key says the same; 0 is a number."""
    if isinstance(value, UUID):
        return value.int == 0
    return value is None or value is False or (isinstance(value, str | bytes | list) and not value)


def _value(value: object) -> str:
    if isinstance(value, bytes):
        value = base64.b64encode(value).decode()
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    if isinstance(value, UUID):
        return f'"{value}"'
    # Texts of JSON are texts of TOML, but for one character.
    return json.dumps(value).replace("\x7f", "\\u007f")
