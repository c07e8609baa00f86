"""The doors of COM objects: where they are activated, and where they are called."""

import socket
from collections.abc import Callable

from rpcqm.base.addresses import split_host
from rpcqm.base.ended_rights import OpenKind
from rpcqm.base.log import get_logger
from rpcqm.config import Configuration
from rpcqm.dcom.access import CallerCheck, Permissions
from rpcqm.dcom.activation import Activator, Coclasses
from rpcqm.dcom.bindings import Bindings
from rpcqm.dcom.called_names import CalledNames
from rpcqm.dcom.client import OutboundCalls
from rpcqm.dcom.exporter import ExporterLimits, ObjectExporter
from rpcqm.dcom.object_interfaces import supports
from rpcqm.dcom.orpc import TIMED, ObjectCalls
from rpcqm.dcom.ping_sets import PingSets
from rpcqm.dcom.remote_unknown import NAMES as OF_REMOTE_UNKNOWN
from rpcqm.dcom.remote_unknown import RemoteUnknown
from rpcqm.dcom.resolver import Resolver
from rpcqm.mqac.coclasses import coclasses
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.remote_management import RemoteManagement
from rpcqm.qm.remote_reading import OpenElsewhere
from rpcqm.rpc.interface_registry import RegisteredInterface, time_calls
from rpcqm.rpc.security.context import Credentials
from rpcqm.rpc.server import RpcServer
from rpcqm.service import interfaces

_ANY = ("0.0.0.0", "::")
_EPM_PORT = 135

_log = get_logger("service")


def _nobody(address: str) -> Credentials | None:
    return None


class DcomDoor:
    """Everything that serves COM objects; `classes` are those that clients can activate.

    `credentials` tells who we log on as at a client that wants events, None for nobody.
    `open_elsewhere` opens queues of other queue managers to read them, `manage_elsewhere` asks
    them for administrators.
    `objects` are the interfaces of the objects, `activators` those that the endpoint mapper's
    port serves besides its own.
    """

    def __init__(
        self,
        engine: QueueManagerEngine,
        server: RpcServer,
        configuration: Configuration,
        credentials: Callable[[str], Credentials | None] = _nobody,
        classes: Coclasses | None = None,
        open_elsewhere: OpenElsewhere | None = None,
        manage_elsewhere: RemoteManagement | None = None,
    ) -> None:
        self._server = server
        self._port = 0
        section = configuration.dcom
        self._empty_is_nothing = section.empty_is_nothing
        self.check = CallerCheck(
            Permissions.of(section.minimum_level, section.launch, section.access)
        )
        self.exporter = ObjectExporter(engine.clock, supports, _limits(configuration))
        engine.ended.subscribe(OpenKind.OBJECT, self.exporter.end_owned)
        self.pings = PingSets(self.exporter, engine.timers)
        self._bindings = Bindings(
            _names(engine.queue_manager.computer_name),
            _addresses(configuration.host, engine.settings.addresses),
            _advertised(configuration),
            lambda: self._port,
            lambda: server.providers.keys(),
        )
        self.calls = ObjectCalls(self.exporter, self._bindings, self.check, server.metrics)
        self._outbound = OutboundCalls(
            self.exporter, self._bindings.packed_resolver, credentials, engine.timers
        )
        if classes is None:
            machine = interfaces.machine(
                engine, open_elsewhere, lambda: self._empty_is_nothing, manage_elsewhere
            )
            machine.outbound, machine.held = self._outbound, self.exporter.held
            classes = coclasses(machine)
        unknown = RemoteUnknown(self.exporter, self._bindings)
        references = unknown.registered(self.check)
        self.objects: list[RegisteredInterface] = [
            *self.calls.registered(without=OF_REMOTE_UNKNOWN),
            *references,
        ]
        self.called_names = CalledNames(self._bindings)
        activator = Activator(classes, self.exporter, self._bindings, self.check, self.called_names)
        resolver = Resolver(self.exporter, self.pings, self._bindings, self.check)
        self.activators = [resolver.registered(), *activator.registered()]
        for each in (*references, *self.activators):
            time_calls(each, server.metrics, TIMED)
        if configuration.epm_port not in (0, _EPM_PORT):
            _log.info("clients of COM objects expect port 135", port=configuration.epm_port)

    async def listen(self, host: str, port: int) -> int:
        """Accept calls of objects, and return the port. Raises OSError."""
        bound = await self._server.listen_tcp(
            host, port, self.objects, advertised=False, for_objects=True
        )
        self._port = bound.port
        return bound.port

    def adjust(self, configuration: Configuration) -> None:
        """Go on with other settings; objects stay."""
        section = configuration.dcom
        self._empty_is_nothing = section.empty_is_nothing
        self.check.permissions = Permissions.of(
            section.minimum_level, section.launch, section.access
        )
        self._bindings.advertise(_advertised(configuration))
        self.exporter.limits = _limits(configuration)
        self.calls.waiting.most = section.waiting_calls_per_caller

    async def stop(self) -> None:
        """Take every object from its clients, and call theirs no more."""
        await self._outbound.close()
        self.pings.stop()
        self.exporter.close()


def _limits(configuration: Configuration) -> ExporterLimits:
    section = configuration.dcom
    return ExporterLimits(
        objects=section.objects,
        objects_per_caller=section.objects_per_caller,
        waiting_calls_per_caller=section.waiting_calls_per_caller,
        ping_sets_per_caller=section.ping_sets_per_caller,
        octets_per_caller=section.octets_per_caller,
    )


def _advertised(configuration: Configuration) -> list[str]:
    """What an operator adds to the bindings; a port in a further name is one of URLs (G500)."""
    aliases = map(split_host, configuration.aliases)
    return [*configuration.dcom.advertise, *(host for host, port in aliases if port is None)]


def _names(computer_name: str) -> list[str]:
    return [computer_name, socket.gethostname()]


def _addresses(host: str, own: tuple[str, ...]) -> tuple[str, ...]:
    """Where clients can reach a door that listens on `host`."""
    if host not in _ANY:
        return (host,)
    return tuple(each for each in own if (":" in each) == (":" in host))
