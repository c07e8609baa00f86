"""What a directory is told of a queue manager and of its queues ([MS-MQDSSM] 3.1.6.1, 3.1.6.7)."""

from collections.abc import Iterable

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
    action: str, machine: QueueManager, settings: bool, dry_run: bool = False
) -> WriteOrder:
    """An order about a queue manager; `settings` is whether those of servers are written."""
    written = _machine_values(machine)
    copies = {name: written[of] for name, of in SETTINGS.items()}
    serves = machine.routing_server or machine.directory_server or machine.supporting_server
    return WriteOrder(
        action,
        machine.computer_name,
        machine.qualified_computer_name,
        values=written,
        settings=copies if serves and settings else {},
        sites=tuple(machine.site_identifier_list),
        routers={
            "mSMQOutRoutingServers": tuple(machine.out_routing_server_identifier_list),
            "mSMQInRoutingServers": tuple(machine.in_routing_server_identifier_list),
        },
        dry_run=dry_run,
    )


def _machine_values(machine: QueueManager) -> Values:
    found = values.write_values(machine, values.QUEUE_MANAGER)
    server = machine.directory_server_type if machine.directory_server else None
    bits = values.service_type(machine.routing_server, machine.remote_access_server, server)
    return found | {"mSMQServiceType": [values.write_integer(bits)]}
