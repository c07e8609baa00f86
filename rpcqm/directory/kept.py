"""The last contents of the directory on disk, so that a start needs no domain controller.

A line for the whole, then a line for each element, in JSON whose values name their types.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from rpcqm.adm.directory import DIRECTORY_ATTRIBUTES, KINDS, DirectoryContents
from rpcqm.adm.directory_object import (
    DirectoryObject,
    DistributionList,
    Enterprise,
    QueueAlias,
    RoutingLink,
    Site,
    User,
)
from rpcqm.adm.directory_records import decode_attributes, encode_attributes
from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import DecodeError
from rpcqm.base.files import private_draft

NAME = "directory.replica"
_VERSION = 1
_LEFT_OUT = frozenset({"security", "scope"})


class Kept(NamedTuple):
    """The contents, and the time of reading: seconds since 1970."""

    contents: DirectoryContents
    read_at: float
    domain: str


def write_kept(path: Path, kept: Kept) -> None:
    """Replace the file as a whole; raises OSError."""
    with private_draft(path) as file:
        head = {"version": _VERSION, "read_at": kept.read_at, "domain": kept.domain}
        file.write(json.dumps(head).encode() + b"\n")
        for line in _lines(kept.contents):
            file.write(line + b"\n")


def _lines(contents: DirectoryContents) -> Iterator[bytes]:
    for kind, attributes in DIRECTORY_ATTRIBUTES.items():
        for element in contents.of(kind):
            values = {n: getattr(element, n) for n in attributes if n not in _LEFT_OUT}
            values |= {"": kind.__name__, "unsaid": sorted(element.unsaid)}
            if isinstance(element, Queue) and element.queue_manager is not None:
                values["queue_manager"] = element.queue_manager.identifier
            if isinstance(element, Site):
                values["gates"] = [gate.identifier for gate in element.site_gate_collection]
            yield encode_attributes(values)


def read_kept(path: Path, domain: str) -> Kept | None:
    """The stored contents for this domain, or None; raises DecodeError and OSError."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        try:
            head = json.loads(file.readline())
            if head["version"] != _VERSION or head["domain"] != domain:
                return None
            return Kept(_contents(file), float(head["read_at"]), domain)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DecodeError(f"damaged file of a directory: {error!r}") from error


def _contents(lines: Iterator[bytes]) -> DirectoryContents:
    made, machines = DirectoryContents(), dict[UUID, QueueManager]()
    add = _adders(made)
    gates: list[tuple[Site, list[UUID]]] = []
    for line in lines:
        values: dict[str, Any] = decode_attributes(line)
        name, more = str(values.pop("")), values.pop("gates", None)
        machine = values.pop("queue_manager", None)
        values["unsaid"] = frozenset(values["unsaid"])
        element: DirectoryObject = KINDS[name](**values)
        if isinstance(element, Enterprise):
            made.enterprise = element
        else:
            add[type(element)](element)
        if isinstance(element, QueueManager):
            machines[element.identifier] = element
        elif isinstance(element, Queue):
            element.queue_manager = machines[machine]
            element.queue_type = QueueType.PUBLIC
        elif isinstance(element, Site):
            gates.append((element, more))
    _refer(made, machines, gates)
    return made


def _adders(made: DirectoryContents) -> dict[type[DirectoryObject], Callable[..., None]]:
    """The functions that add elements of each kind to the contents."""
    return {
        Site: made.sites.append,
        RoutingLink: made.routing_links.append,
        QueueManager: made.queue_managers.append,
        Queue: made.queues.append,
        User: made.users.append,
        DistributionList: made.distribution_lists.append,
        QueueAlias: made.queue_aliases.append,
    }


def _refer(
    made: DirectoryContents,
    machines: dict[UUID, QueueManager],
    gates: list[tuple[Site, list[UUID]]],
) -> None:
    sites = {site.identifier: site for site in made.sites}
    for site, identifiers in gates:
        site.site_gate_collection = [machines[each] for each in identifiers]
    for link in made.routing_links:
        link.site1_reference = sites[link.site1_identifier]
        link.site2_reference = sites[link.site2_identifier]
        link.site_gate_collection = [machines[each] for each in link.site_gate_identifier_list]
