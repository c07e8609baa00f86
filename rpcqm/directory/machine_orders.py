"""Orders for the objects of a queue manager and its queues ([MS-MQDSSM] 3.1.6.1, 3.1.6.7)."""

from collections.abc import Iterable

from rpcqm.adm.directory_writer import PUBLISHED_OF_MACHINE
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.names.path_name import PathName
from rpcqm.directory import values
from rpcqm.directory.writing import Values, WriteOrder

SETTINGS = {
    "mSMQServices": "mSMQServiceType",
    "mSMQRoutingService": "mSMQRoutingServices",
    "mSMQDsService": "mSMQDsServices",
    "mSMQDependentClientService": "mSMQDependentClientServices",
}
"""Attributes of mSMQSettings, which are copies of those of mSMQConfiguration."""


def queue_order(
    action: str, machine: QueueManager, queue: Queue, attributes: Iterable[str], permissions: bool
) -> WriteOrder:
    """An order about a queue; its permissions go with it if they are written."""
    wanted = frozenset(attributes)
    return WriteOrder(
        action,
        machine.computer_name,
        machine.qualified_computer_name,
        PathName.parse(queue.pathname).queue,
        queue.identifier,
        values.write_values(queue, values.QUEUE, wanted),
        security=queue.security if permissions and "security" in wanted else b"",
    )


def machine_order(
    action: str,
    machine: QueueManager,
    settings: bool,
    dry_run: bool = False,
    attributes: Iterable[str] | None = None,
) -> WriteOrder:
    """An order for a queue manager, for all attributes unless some are listed.

    `settings` says whether those of servers are written. Whether it is a router, and for which
    sites, is decided in the directory: an existing object keeps that.
    """
    wanted = None if attributes is None else frozenset(attributes)
    flags = _flags(machine)
    written = values.write_values(machine, values.QUEUE_MANAGER, wanted)
    routers = {
        stored: tuple(getattr(machine, name))
        for name, stored in _ROUTERS.items()
        if wanted is None or name in wanted
    }
    copies = {name: flags[of] for name, of in SETTINGS.items()} if any(_serves(machine)) else {}
    return WriteOrder(
        action,
        machine.computer_name,
        machine.qualified_computer_name,
        values=written | (flags if wanted is None else {}),
        settings=copies if settings else None,
        sites=tuple(machine.site_identifier_list),
        routers=routers,
        own=_OWN | ({"mSMQSites"} if machine.site_identifier_list else frozenset()),
        dry_run=dry_run,
    )


_ROUTERS = {
    "out_routing_server_identifier_list": "mSMQOutRoutingServers",
    "in_routing_server_identifier_list": "mSMQInRoutingServers",
}
_OWN = frozenset(each.stored for each in values.QUEUE_MANAGER if each.name in PUBLISHED_OF_MACHINE)


def _serves(machine: QueueManager) -> tuple[bool, bool, bool]:
    return machine.routing_server, machine.directory_server, machine.supporting_server


def _flags(machine: QueueManager) -> Values:
    """The kind of server ([MS-MQDSSM] 3.1.6.1.1.5)."""
    names = ("routing_server", "directory_server", "supporting_server")
    server = machine.directory_server_type if machine.directory_server else None
    bits = values.service_type(machine.routing_server, machine.remote_access_server, server)
    found = values.write_values(machine, values.QUEUE_MANAGER, names)
    return found | {"mSMQServiceType": [values.write_integer(bits)]}
