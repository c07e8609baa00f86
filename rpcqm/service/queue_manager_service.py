"""A queue manager with its store, its accounts and its doors."""

import asyncio
import os
from collections.abc import Callable, Container
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm import config
from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.ended_rights import OpenKind
from rpcqm.base.log import get_logger
from rpcqm.base.loop_timers import timers_on_loop
from rpcqm.base.metrics import Metrics
from rpcqm.base.resolver import OPERATOR, Resolver
from rpcqm.base.settling import settled
from rpcqm.binary.connection.listener import BinaryListener
from rpcqm.binary.connection.peer_connection import BINARY_PORT
from rpcqm.client.ready import ENDPOINT_FILE, ReadyFile
from rpcqm.client.target import RemoteServer
from rpcqm.codec.interface import load
from rpcqm.config import Configuration, ConfigurationError
from rpcqm.config.console_files import read_console_files
from rpcqm.config.otel_files import check_otel
from rpcqm.config.schema import switches_on
from rpcqm.config.values import Mistake
from rpcqm.interfaces import (
    admin,
    bulk,
    cluster,
    qm2qm,
    qmcomm,
    qmcomm2,
    qmmgmt,
    remote_read,
    sending,
    trace,
)
from rpcqm.interfaces.cluster import ClusterInterface
from rpcqm.operations.cluster import ClusterOperations
from rpcqm.operations.operations import Operations
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.rpc.endpoint_mapper import EPM, EndpointMapper
from rpcqm.rpc.interface_registry import InterfacePolicy
from rpcqm.rpc.security.context import AuthenticationError, SecurityProviders
from rpcqm.rpc.server import RpcServer
from rpcqm.service import interfaces, reload
from rpcqm.service.accounts import Accounts
from rpcqm.service.addresses import own_addresses, qualified_name
from rpcqm.service.backups import Backups
from rpcqm.service.certificate_ends import certificate_ends
from rpcqm.service.connection_limits import admission_of, rpc_limits
from rpcqm.service.console import (
    CONSOLE_PORT,
    ConsoleDoor,
    instance_name,
)
from rpcqm.service.console_parts import ConsoleParts
from rpcqm.service.data_directory import open_store, open_store_in_cluster
from rpcqm.service.directory_source import DirectorySources
from rpcqm.service.domain_accounts import domain_accounts
from rpcqm.service.domain_people import follow_domain
from rpcqm.service.listeners import Listen, open_listener
from rpcqm.service.local_socket import LocalSocket
from rpcqm.service.named_files import versions
from rpcqm.service.recording import binary as recording_binary
from rpcqm.service.recording.rpc import Recorder
from rpcqm.service.reload import differing, in_force
from rpcqm.service.remote_queues import RemoteQueues
from rpcqm.service.remote_targets import RemoteTargets
from rpcqm.service.remote_traces import RemoteTraces
from rpcqm.service.speed import Speed, speed_of, with_shortcuts
from rpcqm.service.start_error import StartError
from rpcqm.service.tokens import tokens_of
from rpcqm.store.settings import MIB
from rpcqm.store.store import Store

if TYPE_CHECKING:
    from rpcqm.rpc.security.context import Credentials
    from rpcqm.service.cluster.node import ClusterNode
    from rpcqm.service.dcom import DcomDoor
    from rpcqm.service.srmp import SrmpDoor

REMOTE_READ_PORT = 2103
QM2QM_PORT = 2105
DCOM_PORT = 2107

_log = get_logger("service")


class QueueManagerService:
    """Everything that one process serves; `start` and `stop` are called once each.

    `ready` tells where it can be reached, once it has started.
    """

    ready: ReadyFile
    _accounts: Accounts
    _binary: BinaryListener
    _console: ConsoleDoor
    _engine: QueueManagerEngine
    _server: RpcServer
    _operations: Operations
    _resolver: Resolver
    _remote_targets: RemoteTargets
    _speed: Speed

    def __init__(
        self,
        configuration: Configuration,
        clock: Clock | None = None,
        capture: Path | None = None,
        node: "ClusterNode | None" = None,
    ) -> None:
        self._capture = capture
        self._node = node
        self._configuration = configuration
        self._clock = clock or SystemClock()
        self._ports: dict[str, int] = {}
        self._undo = AsyncExitStack()
        self._callers = remote_read.CallAdmission(_read_security(configuration.security))
        self._recorded: Callable[[SecurityProviders], SecurityProviders] = lambda each: each
        self._admission = admission_of(configuration.limits)
        self._metrics = Metrics()
        self._files = versions(configuration)
        self._srmp: SrmpDoor | None = None
        self._dcom: DcomDoor | None = None
        self._started = False

    async def start(self) -> None:
        """Open every door, then say so; StartError, with everything closed again, on failure."""
        try:
            await self._start()
        except ConfigurationError as error:
            await self.stop()
            raise StartError(str(error)) from error
        except AuthenticationError as error:
            await self.stop()
            keytab = self._configuration.security.keytab
            raise StartError(f"The keys in {keytab} cannot be used: {error}.") from error
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Answer whoever waits, close every door and the store, and withdraw the ready file."""
        self._started = False
        await self._undo.aclose()

    @property
    def pages(self) -> str:
        """Where browsers of this machine find the operator's pages; "" where they find none."""
        return self._operations.logons.home

    @property
    def templated(self) -> dict[str, int]:
        """How much templates have done so far (docs/request-templates.md)."""
        return self._metrics.of("templates")

    def reload(self, configuration: Configuration) -> tuple[list[str], list[str]]:
        """Take over what can change in a running queue manager, and read every file again.

        Returns the settings that were taken over, also those whose files have changed, and those
        that wait for the next start.
        Connections and open queues go on as they are. Raises ConfigurationError with every
        mistake, also of a file that is named; then nothing has changed.
        """
        context = read_console_files(configuration.console)
        read = reload.read(configuration, self._accounts, srmp=self._srmp is not None)
        self._read_accounts_again()
        old, self._configuration = self._configuration, in_force(self._configuration, configuration)
        taken = differing(old, self._configuration)
        _tell_switches(self._configuration, taken)
        self._take_switches(self._configuration)
        if self._directories.take(self._engine, read.directory) and "directory_file" not in taken:
            taken.insert(0, "directory_file")
        taken += [key for key in self._changed_files() if key not in taken]
        self._server.adjust(rpc_limits(configuration.limits), self._recorded(read.providers))
        self._remote_targets = read.remote_targets
        self._binary.adjust(configuration.binary, read.binary)
        if self._srmp is not None and read.srmp is not None:
            self._srmp.adjust(configuration, read.srmp)
        if self._dcom is not None:
            self._dcom.adjust(configuration)
        self._console.adjust(configuration, context)
        self._operations.overview.certificates = certificate_ends(self._configuration)
        return taken, [*differing(self._configuration, configuration), *self._doors_to_change()]

    def _changed_files(self) -> list[str]:
        """The settings whose files have other contents than before."""
        old, self._files = self._files, versions(self._configuration)
        return [key for key, digest in self._files.items() if old.get(key) != digest]

    def _doors_to_change(self) -> list[str]:
        """The binary door, if `hardened_security` wants it otherwise than it did at the start."""
        configuration = self._configuration
        wanted = not configuration.security.hardened_security and (
            configuration.binary_port is None or configuration.binary_port >= 0
        )
        return ["binary_port"] if wanted != ("binary" in self._ports) else []

    def _take_switches(self, configuration: Configuration) -> None:
        security, storage, engine = configuration.security, configuration.storage, self._engine
        settings = engine.settings
        settings.queue_quota = storage.quota_of_new_queues
        settings.send_insecure_nacks = security.send_insecure_nacks
        settings.workgroup_default_security = security.workgroup_default_security
        _take_outgoing_limits(settings, configuration.limits)
        engine.use_aliases(configuration.aliases)
        engine.queue_manager.supporting_server = security.supporting_server
        engine.queue_manager.queue_manager_quota = storage.quota
        if engine.queue_manager.hardened_security != security.hardened_security:
            engine.harden(security.hardened_security)
        self._callers.security = _read_security(security)
        if self._speed is not None:
            self._speed.switch(configuration.limits.request_templates)
        if engine.trail.days != storage.trail_days:
            engine.trail.keep(storage.trail_days)
        engine.store.space.keep_free(storage.reserve * MIB)
        engine.store.express.limit(storage.express_memory * MIB)

    def _read_accounts_again(self) -> None:
        try:
            self._accounts.read_again()
        except OSError as error:
            text = f"cannot be read: {error.strerror}."
            raise ConfigurationError([Mistake(str(self._accounts.user_file), text)]) from error
        except UnicodeDecodeError as error:
            text = "is not UTF-8 text."
            raise ConfigurationError([Mistake(str(self._accounts.user_file), text)]) from error

    async def _start(self) -> None:
        _tell_switches(self._configuration)
        self._remote_targets = reload.remote_targets(self._configuration)
        store, order = await self._open_store()
        accounts = self._accounts = Accounts(store, self._configuration.data_dir, clock=self._clock)
        accounts.domain = domain_accounts(self._configuration.directory, accounts.machine_sid)
        engine = self._engine = self._start_engine(store, accounts, order)
        self._directories.start(engine, self._undo)
        if self._configuration.otel.endpoint:
            self._start_traces(engine)
        backups = Backups(engine, accounts.user_file, lambda: self._configuration)
        tokens = tokens_of(engine, accounts)
        accounts.ended_hooks.append(engine.ended.tell)
        self._operations = Operations(engine, accounts, backups.make, tokens, self._admission)
        if accounts.domain is not None:
            section, people = self._configuration.directory, self._directories.people
            operations, undo = self._operations, self._undo
            follow_domain(engine, operations, accounts.domain, people, section.round, undo)
        self._operations.metrics.directory = self._directories.figures
        self._operations.overview.certificates = certificate_ends(self._configuration)
        self._operations.machine.backup_directory = lambda: (
            self._configuration.storage.backup_directory
        )
        self._operations.triggers.service_account = lambda: self._configuration.triggers.account
        recorder = None if self._capture is None else self._record(self._capture)
        if recorder is not None:
            self._recorded = recorder.providers
        server = self._server = RpcServer(
            providers=self._recorded(reload.make_providers(self._configuration, accounts)),
            limits=rpc_limits(self._configuration.limits),
            clock=self._clock,
            metrics=self._metrics,
            local_identity=accounts.local_identity,
            admission=self._admission,
        )
        if recorder is not None:
            server.make_connection = recorder.connection
        engine.ended.subscribe(OpenKind.HANDLE, server.end_handles)
        engine.ended.subscribe(OpenKind.ASSOCIATION, server.end_associations)
        engine.connection_sources.append(server)
        store.tell_together(server.gathering)
        server.dispatcher.before_close = store.carry_out_first
        self._undo.push_async_callback(server.stop)
        self._undo.callback(engine.queue_manager_stopped)
        self._register(server, engine, accounts)
        self._make_console()
        local = LocalSocket(self._configuration.data_dir)
        self._undo.callback(local.remove)
        binary = self._binary
        if recorder is not None:
            recording_binary.record(binary, recorder)
            if self._srmp is not None:
                # Only now, because aiohttp takes time to load.
                from rpcqm.service.recording import http as recording_http

                recording_http.record(self._srmp, recorder)
        self._undo.push_async_callback(binary.stop)
        if self._srmp is not None:
            self._undo.push_async_callback(self._srmp.stop)
        await self._open_listeners(server, local, binary)
        binary.start()
        if self._srmp is not None:
            self._srmp.start(self._configuration)
        self._operations.overview.history.start()
        self._undo.callback(self._operations.overview.history.stop)
        self.ready = ReadyFile(
            os.getpid(),
            engine.queue_manager.computer_name,
            engine.queue_manager.identifier,
            local.path,
            {each: (self._host_of(each), port) for each, port in self._ports.items()},
        )
        await settled(engine.protocol_records.write({}))  # all that the start has written is there
        self._publish()
        self._started = True

    async def _open_store(self) -> tuple[Store, str]:
        if self._node is not None:
            return await open_store_in_cluster(self._node, self._metrics, self._undo)
        return open_store(self._configuration, self._clock, self._metrics, self._undo)

    def _record(self, path: Path) -> Recorder:
        _log.warning("everything that is served is recorded, unsealed", capture=str(path))
        try:
            recorder = Recorder(path)
        except OSError as error:
            raise StartError(f"{path} cannot be written: {error.strerror}.") from error
        self._undo.callback(recorder.close)
        return recorder

    def _make_binary_listener(self, engine: QueueManagerEngine) -> None:
        """It has to hear of every removal, also of those that the start makes."""
        settings = self._configuration.binary
        try:
            self._binary = BinaryListener(
                engine, self._clock, settings, self._admission, self._resolver
            )
        except OSError as error:
            raise StartError(f"Cannot read {error.filename}: {error.strerror}.") from error
        except ValueError as error:
            raise StartError(f"The table [binary] of the configuration: {error}.") from error
        if self._speed is not None:
            self._speed.install_sessions(self._binary.protocol)

    def _make_srmp_door(self, engine: QueueManagerEngine) -> None:
        """Without a port nothing of it is loaded; it too has to hear of every removal."""
        from rpcqm.service.srmp import open_door

        configuration = self._configuration
        self._srmp = open_door(
            engine, self._clock, configuration, self._admission, self._metrics, self._resolver
        )
        if self._speed is not None:
            self._speed.install_srmp(self._srmp.protocol)

    def _make_dcom_door(
        self, server: RpcServer, engine: QueueManagerEngine, remote: RemoteQueues
    ) -> None:
        """Unless it is enabled nothing of it is loaded."""
        from rpcqm.service.dcom import DcomDoor
        from rpcqm.service.remote_management import LoopRemoteManagement

        self._dcom = DcomDoor(
            engine,
            server,
            self._configuration,
            self._log_on_at,
            open_elsewhere=remote.open_to_read,
            manage_elsewhere=LoopRemoteManagement(remote, self._remote_target),
        )
        if self._speed is not None:
            self._speed.install_com(self._dcom.calls)
        self._operations.overview.com_names = self._dcom.called_names.lacking
        self._undo.push_async_callback(self._dcom.stop)

    def _start_traces(self, engine: QueueManagerEngine) -> None:
        """Unless a collector is configured nothing of it is loaded."""
        section = self._configuration.otel
        mistakes = check_otel(section)
        if mistakes:
            raise ConfigurationError(mistakes)
        from rpcqm.service.traces import start_traces

        self._undo.push_async_callback(start_traces(engine, section, self._clock).stop)

    def _make_console(self) -> None:
        """What it serves is loaded when somebody asks it for the first time."""
        configuration, machine = self._configuration, self._engine.queue_manager
        parts = ConsoleParts(
            self._operations,
            self._accounts,
            self._clock,
            self._admission,
            self._metrics,
            configuration,
            instance_name(machine.computer_name, machine.identifier),
            self._is_ready,
            self._speed,
        )
        self._console = ConsoleDoor(parts)
        self._undo.push_async_callback(self._console.stop)

    def _is_ready(self) -> bool:
        if self._node is not None and self._node.is_refusing:
            return False
        return self._started and not self._engine.store.has_stopped

    def _start_engine(
        self, store: Store, accounts: Accounts, identity_order: str
    ) -> QueueManagerEngine:
        """What the start removes is acknowledged by the rights that its senders have now."""
        configuration = self._configuration
        serves_http = max(configuration.http_port, configuration.https_port) >= 0
        self._directories = DirectorySources(configuration)
        settings = QueueManagerSettings(
            computer_name=configuration.name,
            qualified_computer_name=qualified_name(configuration.name),
            addresses=own_addresses(),
            aliases=configuration.aliases,
            queue_manager_quota=configuration.storage.quota,
            queue_quota=configuration.storage.quota_of_new_queues,
            supporting_server=configuration.security.supporting_server,
            hardened_security=configuration.security.hardened_security,
            srmp_http_support=serves_http,
            send_insecure_nacks=configuration.security.send_insecure_nacks,
            workgroup_default_security=configuration.security.workgroup_default_security,
            queue_manager_version=version("rpcqm"),
            operating_system_version=" ".join(os.uname()[:3:2]),
            identity_order=identity_order,
        )
        self._directories.give(settings)
        _take_outgoing_limits(settings, configuration.limits)
        loop = asyncio.get_running_loop()
        timers = timers_on_loop(self._clock, loop)
        self._resolver = Resolver(timers, loop.call_soon_threadsafe)
        self._undo.callback(self._resolver.stop)
        engine = QueueManagerEngine(store, self._clock, timers, settings)
        self._directories.publish(engine, self._undo)
        engine.trail.days = configuration.storage.trail_days
        self._speed = speed_of(engine)
        if self._speed is not None:
            self._speed.switch(configuration.limits.request_templates)
        engine.sender_rights.account_of = accounts.identity_of_sid
        engine.sender_rights.signer_of = accounts.signer_of
        engine.loaded_hooks.append(partial(self._make_binary_listener, engine))
        if serves_http:
            engine.loaded_hooks.append(partial(self._make_srmp_door, engine))
        engine.queue_manager_started()
        return engine

    def _register(self, server: RpcServer, engine: QueueManagerEngine, accounts: Accounts) -> None:
        """Serve every interface; the doors that methods tell of are open when they are called."""
        admission = self._callers
        reading = interfaces.remote_read(engine, admission, lambda: self._ports.get("rpc", 0))
        ports = (lambda: self._ports.get("rpc", 0), lambda: self._ports.get("qm2qm", 0))
        remote = RemoteQueues(engine.queue_manager, self._remote_target)
        self._undo.push_async_callback(remote.stop)
        if self._configuration.dcom.enabled:
            self._make_dcom_door(server, engine, remote)
        self._operations.traces.elsewhere = RemoteTraces(
            remote, engine.clock, self._may_ask, self._remote_target
        )
        handles = interfaces.client_handles(engine, remote.open, admission)
        policy = with_shortcuts(self._speed, remote_read.POLICY, reading)
        server.register(load("remoteread"), reading, policy)
        comm = interfaces.qmcomm(engine, handles, *ports)
        server.register(load("qmcomm"), comm, qmcomm.POLICY)
        comm2 = interfaces.qmcomm2(engine, handles)
        policy = with_shortcuts(self._speed, qmcomm2.POLICY, comm2)
        server.register(load("qmcomm2"), comm2, policy)
        server.register(load("rpcqm_sending"), interfaces.sending(engine, handles), sending.POLICY)
        server.register(
            load("rpcqm_bulk"), interfaces.bulk(engine, self._operations, admission), bulk.POLICY
        )
        other_side = interfaces.qm2qm(engine, handles, *ports)
        server.register(load("qm2qm"), other_side, qm2qm.POLICY)
        server.register(load("qmmgmt"), interfaces.qmmgmt(engine, admission), qmmgmt.POLICY)
        server.register(
            load("rpcqm_trace"), interfaces.trace(self._operations, admission), trace.POLICY
        )
        server.register(load("rpcqm_admin"), admin.Admin(self._operations), admin.POLICY)
        if self._node is not None:
            orders = self._operations.cluster = ClusterOperations(self._node)
            self._operations.metrics.cluster = self._node.status
            server.register(load("rpcqm_cluster"), ClusterInterface(orders), cluster.POLICY)

    def _log_on_at(self, address: str) -> "Credentials | None":
        return self._remote_targets.at_address(address)

    def _may_ask(self, machine: str) -> bool:
        return self._engine.directory.lists(machine) or self._remote_targets.has_peer(machine)

    def _remote_target(self, machine: str, asker: str = "") -> RemoteServer:
        """Where a machine is that the SID `asker` has named, if the operator has not."""
        listed = self._engine.directory.lists(machine)
        known = not asker or listed or self._remote_targets.has_peer(machine)
        find = partial(self._resolver.addresses, senders=OPERATOR if known else (asker,))
        return replace(self._remote_targets(machine, listed), find=find)

    async def _open_listeners(
        self, server: RpcServer, local: LocalSocket, binary: BinaryListener
    ) -> None:
        """Listen; the endpoint mapper, which tells of the others, comes last."""
        await self._promoted()
        configuration = self._configuration
        offered = list(server.interfaces)
        mapper = [server.register(EPM, EndpointMapper(server), InterfacePolicy(of_process=True))]
        if self._dcom is not None:
            mapper += self._dcom.activators
        try:
            await server.listen_unix(local.path, offered)
        except OSError as error:
            raise StartError(f"Cannot listen on {local.path}: {error.strerror}.") from error

        async def rpc(host: str, port: int) -> int:
            return (await server.listen_tcp(host, port, offered)).port

        async def qm2qm(host: str, port: int) -> int:
            return (await server.listen_tcp(host, port, offered, advertised=False)).port

        async def epm(host: str, port: int) -> int:
            objects = self._dcom is not None
            bound = await server.listen_tcp(
                host, port, mapper, advertised=False, for_objects=objects
            )
            return bound.port

        await self._open("rpc", rpc, configuration.rpc_port, REMOTE_READ_PORT)
        await self._open("qm2qm", qm2qm, configuration.qm2qm_port, QM2QM_PORT)
        if not configuration.security.hardened_security:
            await self._open("binary", binary.listen, configuration.binary_port, BINARY_PORT)
        if self._srmp is not None:
            await self._open("http", self._srmp.listen_http, configuration.http_port, 0)
            await self._open("https", self._srmp.listen_https, configuration.https_port, 0)
        if self._dcom is not None:
            await self._open("dcom", self._dcom.listen, configuration.dcom_port, DCOM_PORT)
        await self._open("console", self._console.listen, configuration.console_port, CONSOLE_PORT)
        await self._open("epm", epm, configuration.epm_port, configuration.epm_port)

    async def _open(self, listener: str, listen: Listen, port: int | None, first: int) -> None:
        host = self._host_of(listener)
        host_option = "`console.host`" if listener == "console" else "--host"
        bound = await open_listener(listen, f"--{listener}-port", host, port, first, host_option)
        if bound is not None:
            self._ports[listener] = bound

    def _host_of(self, listener: str) -> str:
        configuration = self._configuration
        return configuration.console.host if listener == "console" else configuration.host

    async def _promoted(self) -> None:
        """All is there but the doors; in a cluster others may have to hear of that first."""
        if self._node is not None:
            await self._node.promoted()

    def _publish(self) -> None:
        """Write where we are: in the data directory for the commands, and where it was asked."""
        paths = [self._configuration.data_dir / ENDPOINT_FILE]
        if self._configuration.ready_file is not None:
            paths.append(self._configuration.ready_file)
        for path in paths:
            try:
                self.ready.write(path)
            except OSError as error:
                raise StartError(f"Cannot write {path}: {error.strerror}.") from error
            self._undo.callback(path.unlink, missing_ok=True)
        if self._node is not None:
            self._node.serves()


def _take_outgoing_limits(settings: QueueManagerSettings, limits: config.LimitsSection) -> None:
    settings.outgoing_queues = limits.outgoing_queues
    settings.outgoing_queues_per_account = limits.outgoing_queues_per_account
    settings.outgoing_queues_per_source = limits.outgoing_queues_per_source


def _tell_switches(configuration: Configuration, changed: Container[str] | None = None) -> None:
    """Log every switch that is on, or only those that have changed."""
    for setting in switches_on(configuration):
        if changed is None or setting.key in changed:
            _log.warning("a switch is on", setting=setting.key, opens=setting.about.opens)


def _read_security(security: config.SecuritySection) -> remote_read.RemoteReadSecurity:
    return remote_read.RemoteReadSecurity(
        allow_nonauthenticated_rpc=security.allow_nonauthenticated_rpc,
        new_remote_read_server_deny_workgroup_client=(
            security.new_remote_read_server_deny_workgroup_client
        ),
        new_remote_read_server_allow_none_security_client=(
            security.new_remote_read_server_allow_none_security_client
        ),
        debug_rpc=security.debug_rpc,
        allow_unprotected_rpc=security.allow_unprotected_rpc,
    )
