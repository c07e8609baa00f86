"""The only wiring of this room: each door of a queue manager is handed to an `Installation`.

Whoever assembles a queue manager makes one of its engine before that starts, and hands it each door
as soon as the door is made. An `install_...` method sets an optional attribute of careful code,
which is None otherwise. Careful code works the same without.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from rpcqm.binary.connection.protocol import BinaryProtocol
from rpcqm.fast.arrival_runs import ArrivalRuns
from rpcqm.fast.doors import rpc_shortcuts
from rpcqm.fast.doors.session_arrivals import ArrivalBatches
from rpcqm.fast.doors.session_outgoing_runs import OutgoingRuns
from rpcqm.fast.first_messages import FirstMessages
from rpcqm.fast.observer import observer_of
from rpcqm.fast.turn import Turn
from rpcqm.interfaces.qmcomm2 import QmComm2
from rpcqm.interfaces.remote_read import RemoteRead
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.rpc.interface_registry import InterfacePolicy

if TYPE_CHECKING:
    from rpcqm.api.application import Api
    from rpcqm.dcom.orpc import ObjectCalls
    from rpcqm.fast.doors.api import RepeatedApi
    from rpcqm.srmp.connection.protocol import SrmpProtocol


class Installation:
    """The parts that the doors of one queue manager share: its turn, runs and first messages.

    `turn.is_on` switches everything off and on, also while the queue manager runs.
    """

    def __init__(self, engine: QueueManagerEngine) -> None:
        self.engine = engine
        self.store, self.clock = engine.store, engine.clock
        runs = ArrivalRuns(
            engine.store, engine.clock, engine.admission, engine.quotas, engine.positions
        )
        self.arrival_runs = runs
        self.turn = Turn(engine.store, engine.clock, runs, engine.positions)
        self.turn.shadow = observer_of(engine)
        self.first_messages = FirstMessages(engine.store, engine.positions)

    def install_sessions(self, protocol: BinaryProtocol) -> None:
        """Take and send messages of the binary protocol together."""
        self.batches = ArrivalBatches(self.engine, protocol, self.turn, self.arrival_runs)
        self.outgoing_runs = OutgoingRuns(self.engine, protocol, self.turn)
        protocol.take_together = self.batches.of
        protocol.sending.together = self.outgoing_runs

    def install_srmp(self, protocol: "SrmpProtocol") -> None:
        """Use templates for reading, building and writing messages over HTTP."""
        # here, because none of it is loaded without a port
        from rpcqm.fast.doors.srmp import RepeatedPosts, RepeatedWriter

        posts = RepeatedPosts(self.clock, protocol, self.turn)
        protocol.receiver.read_envelope = posts.read
        protocol.receiver.packet_of = posts.build_packet
        own, turn = self.engine.queue_manager, self.turn
        protocol.posting.writer = lambda: RepeatedWriter(own, protocol, turn).write

    def install_com(self, calls: "ObjectCalls") -> None:
        """Read and answer the commonest calls of objects without the codecs."""
        # here, because none of it is loaded unless objects are served
        from rpcqm.fast.doors.com import shorten

        calls.shorten = shorten

    def switch(self, on: bool) -> None:
        """Switch templates on or off."""
        self.turn.is_on = on

    def with_shortcuts(
        self, policy: InterfacePolicy, handlers: RemoteRead | QmComm2
    ) -> InterfacePolicy:
        """The policy of an interface with the shortcuts of its handlers."""
        if isinstance(handlers, RemoteRead):
            shortcut = rpc_shortcuts.of_remote_read(self.turn, self.first_messages, handlers.reads)
        else:
            shortcut = rpc_shortcuts.of_qmcomm2(self.turn, self.engine, handlers.handles)
        return replace(policy, shortcut=shortcut)

    def repeated_api(self, api: "Api") -> "RepeatedApi":
        """Answers programs in the place of an `Api`, which it asks where it has to."""
        # here, because it is loaded at a program's first request
        from rpcqm.fast.doors.api import RepeatedApi

        return RepeatedApi(api, self.engine, self.turn, self.first_messages)
