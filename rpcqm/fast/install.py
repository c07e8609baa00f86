"""The only wiring of this room: each door of a queue manager is handed to an `Installation`.

Whoever assembles a queue manager makes one of its engine before that starts, and hands it each
door as soon as the door is made. An `install_...` method sets what careful code has for it: an
attribute that is None, or a callable. Careful code works the same when none of it is called.
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
    """What the doors of one queue manager share: its turn, runs and first messages.

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
        """Read, build and write messages over HTTP like ones before."""
        # Only now, because without a port nothing of it is loaded.
        from rpcqm.fast.doors.srmp import RepeatedPosts, RepeatedWriter

        posts = RepeatedPosts(self.clock, protocol, self.turn)
        protocol.receiver.read_envelope = posts.read
        protocol.receiver.packet_of = posts.build_packet
        own, turn = self.engine.queue_manager, self.turn
        protocol.posting.writer = lambda: RepeatedWriter(own, protocol, turn).write

    def install_com(self, calls: "ObjectCalls") -> None:
        """Read and answer the commonest calls of objects without the codecs."""
        # Only now, because unless objects are served nothing of it is loaded.
        from rpcqm.fast.doors.com import shorten

        calls.shorten = shorten

    def switch(self, on: bool) -> None:
        """Let requests that are like ones before be carried out in fewer steps, or none."""
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
        """What answers programs in the place of an `Api`, and asks it where it has to."""
        # Only now, because the interface for programs is loaded when somebody asks it.
        from rpcqm.fast.doors.api import RepeatedApi

        return RepeatedApi(api, self.engine, self.turn, self.first_messages)
