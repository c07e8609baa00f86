"""The shortcuts of RemoteRead and of qmcomm2, as `InterfacePolicy.shortcut` gives them."""

from functools import partial

from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.fast.doors.rpc_end import EndRecogniser
from rpcqm.fast.doors.rpc_receive import ReceiveRecogniser
from rpcqm.fast.doors.rpc_receive_answers import ReceiveTemplates
from rpcqm.fast.doors.rpc_send import SendRecogniser, SendTemplates
from rpcqm.fast.doors.rpc_start import StartRecogniser
from rpcqm.fast.first_messages import FirstMessages
from rpcqm.fast.formats.whole_packet import WholePackets
from rpcqm.fast.rehearsing import RehearsingComposer
from rpcqm.fast.turn import Turn
from rpcqm.interfaces._client_handles import ClientHandles
from rpcqm.interfaces._starting_reads import StartingReads
from rpcqm.interfaces.qmcomm2 import QmComm2
from rpcqm.interfaces.remote_read import RemoteRead
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.rpc.interface_registry import ServedOperation, Shortcut, ShortcutOf


def of_remote_read(turn: Turn, firsts: FirstMessages, reads: StartingReads) -> ShortcutOf:
    """The shortcuts of R_StartReceive and R_EndReceive; both syntaxes share the packets."""
    packets = WholePackets(reads.packets)

    def shortcut(operation: ServedOperation, syntax: TransferSyntax) -> Shortcut | None:
        assert isinstance(operation, Operation)
        if operation.name == RemoteRead.R_StartReceive.__name__:
            return StartRecogniser(turn, firsts, reads, packets, operation, syntax)
        if operation.name == RemoteRead.R_EndReceive.__name__:
            return EndRecogniser(turn, operation, syntax)
        return None

    return shortcut


def of_qmcomm2(turn: Turn, engine: QueueManagerEngine, handles: ClientHandles) -> ShortcutOf:
    """The shortcuts of rpc_ACSendMessageEx and rpc_ACReceiveMessageEx.

    Both syntaxes share the templates.
    """
    machine, clock = engine.queue_manager, engine.clock
    composer = RehearsingComposer(engine.composer, engine.store)
    sent = SendTemplates(machine, clock, composer, engine.arrivals)
    send = partial(SendRecogniser, sent, turn, handles)
    answers = ReceiveTemplates(clock)
    receive = partial(ReceiveRecogniser, answers, turn, engine.messages, handles)

    def shortcut(operation: ServedOperation, syntax: TransferSyntax) -> Shortcut | None:
        assert isinstance(operation, Operation)
        if operation.name == QmComm2.rpc_ACSendMessageEx.__name__:
            return send(operation, syntax)
        if operation.name == QmComm2.rpc_ACReceiveMessageEx.__name__:
            return receive(operation, syntax)
        return None

    return shortcut
