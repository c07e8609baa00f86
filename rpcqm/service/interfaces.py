"""The handlers of each interface, over the subjects of a queue manager that they use."""

from collections.abc import Callable

from rpcqm.interfaces._authentication import CallAdmission
from rpcqm.interfaces._client_handles import ClientHandles
from rpcqm.interfaces._message_packet import MessagePackets
from rpcqm.interfaces._remote_proxy import OpenRemote
from rpcqm.interfaces.bulk import Bulk
from rpcqm.interfaces.qm2qm import Qm2Qm
from rpcqm.interfaces.qmcomm import QmComm
from rpcqm.interfaces.qmcomm2 import QmComm2
from rpcqm.interfaces.qmmgmt import QmMgmt
from rpcqm.interfaces.remote_read import RemoteRead
from rpcqm.interfaces.sending import Sending
from rpcqm.interfaces.trace import Trace
from rpcqm.mqac.machine import Machine
from rpcqm.operations.operations import Operations
from rpcqm.qm.bulk import BulkEvents
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.remote_management import RemoteManagement
from rpcqm.qm.remote_reading import OpenElsewhere

Port = Callable[[], int]
"""Tells a TCP port, 0 where nothing listens."""


def remote_read(
    engine: QueueManagerEngine, admission: CallAdmission | None = None, server_port: Port = int
) -> RemoteRead:
    """The handlers of RemoteRead."""
    return RemoteRead(
        engine.queue_manager,
        engine.timers,
        engine.registry,
        engine.access,
        engine.readers,
        engine.queues,
        engine.opening,
        engine.transactions,
        engine.messages,
        message_packets(engine),
        admission or CallAdmission(),
        server_port,
    )


def message_packets(engine: QueueManagerEngine) -> MessagePackets:
    """Makes what remote readers get of messages."""
    return MessagePackets(engine.queue_manager, engine.acknowledgements, engine.settings.addresses)


def client_handles(
    engine: QueueManagerEngine,
    open_remote: OpenRemote | None = None,
    admission: CallAdmission | None = None,
) -> ClientHandles:
    """The handles that qmcomm, qmcomm2, qm2qm and rpcqm_sending share.

    `open_remote` takes over queues of other queue managers; without it there are none.
    """
    return ClientHandles(
        engine.queue_manager,
        engine.clock,
        engine.readers,
        engine.opening,
        engine.transactions,
        open_remote,
        admission,
    )


def qmcomm(
    engine: QueueManagerEngine,
    handles: ClientHandles,
    rpc_port: Port = int,
    qm2qm_port: Port = int,
) -> QmComm:
    """The handlers of qmcomm."""
    return QmComm(
        engine.queue_manager,
        engine.names,
        engine.registry,
        engine.access,
        engine.directory,
        engine.readers,
        engine.queues,
        engine.opening,
        engine.transactions,
        handles,
        rpc_port,
        qm2qm_port,
    )


def qmcomm2(engine: QueueManagerEngine, handles: ClientHandles) -> QmComm2:
    """The handlers of qmcomm2."""
    return QmComm2(
        engine.queue_manager,
        engine.clock,
        engine.readers,
        engine.composer,
        engine.transactions,
        engine.messages,
        engine.arrivals,
        handles,
    )


def qm2qm(
    engine: QueueManagerEngine,
    handles: ClientHandles,
    rpc_port: Port = int,
    qm2qm_port: Port = int,
) -> Qm2Qm:
    """The handlers of qm2qm."""
    return Qm2Qm(engine.queues, engine.readers, engine.messages, handles, rpc_port, qm2qm_port)


def qmmgmt(engine: QueueManagerEngine, admission: CallAdmission | None = None) -> QmMgmt:
    """The handlers of qmmgmt."""
    return QmMgmt(engine.management, admission)


def sending(engine: QueueManagerEngine, handles: ClientHandles) -> Sending:
    """The handlers of rpcqm_sending."""
    return Sending(engine.opening, handles)


def bulk(
    engine: QueueManagerEngine, operations: Operations, admission: CallAdmission | None = None
) -> Bulk:
    """The handlers of rpcqm_bulk."""
    events = BulkEvents(engine.store, engine.positions, engine.messages)
    packets = message_packets(engine)
    return Bulk(engine.opening, events, packets, operations, admission or CallAdmission())


def trace(operations: Operations, admission: CallAdmission) -> Trace:
    """The handlers of rpcqm_trace."""
    return Trace(operations.traces, admission)


def machine(
    engine: QueueManagerEngine,
    open_elsewhere: OpenElsewhere | None = None,
    empty_is_nothing: Callable[[], bool] = bool,
    manage_elsewhere: RemoteManagement | None = None,
) -> Machine:
    """What the COM objects use of a queue manager.

    `open_elsewhere` opens queues of other queue managers, `manage_elsewhere` asks them for
    administrators; without them there are none.
    """
    return Machine(
        queue_manager=engine.queue_manager,
        clock=engine.clock,
        names=engine.names,
        registry=engine.registry,
        access=engine.access,
        directory=engine.directory,
        readers=engine.readers,
        queues=engine.queues,
        opening=engine.opening,
        outgoing=engine.outgoing,
        composer=engine.composer,
        transactions=engine.transactions,
        messages=engine.messages,
        arrivals=engine.arrivals,
        protection=engine.protection,
        management=engine.management,
        open_elsewhere=open_elsewhere,
        manage_elsewhere=manage_elsewhere,
        empty_is_nothing=empty_is_nothing,
    )
