"""The queue manager: one object per subject, over one store and one clock."""

from collections.abc import Callable

from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock, Timers
from rpcqm.qm.access import AccessControl
from rpcqm.qm.acknowledgements import Acknowledgements
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.composing import Composer
from rpcqm.qm.directory import Directory
from rpcqm.qm.dispatcher import Dispatcher
from rpcqm.qm.initialization import Initialization
from rpcqm.qm.journeys import Journeys
from rpcqm.qm.messages import Messages
from rpcqm.qm.names import LocalNames
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.positions import Positions
from rpcqm.qm.queues import Queues
from rpcqm.qm.quotas import Quotas
from rpcqm.qm.readers import Readers
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.qm.strangers import Strangers
from rpcqm.qm.streams import Streams
from rpcqm.qm.timers import TimeToBeReceivedTimer
from rpcqm.qm.trail import Trail
from rpcqm.qm.transactions import Transactions
from rpcqm.qm.transfer import Transfer
from rpcqm.store.store import Store


class QueueManagerEngine:
    """The events of [MS-MQDMPR], by subject.

    Everything is called from one thread, and nothing of it waits: what takes time is a
    Completion. `timers` must run on `clock`.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        timers: Timers,
        settings: QueueManagerSettings | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.timers = timers
        self.settings = settings or QueueManagerSettings()
        self.queue_manager = QueueManager()
        self.names = LocalNames(self.settings)
        self.loaded_hooks: list[Callable[[], None]] = []
        """Called when queues and messages are there again, before any message is removed."""
        self.online_hooks: list[Callable[[bool], None]] = []
        self.stopped_hooks: list[Callable[[], None]] = []
        self.initialization = Initialization(self)
        self.access = AccessControl(self)
        self.directory = Directory(self)
        self.quotas = Quotas(self)
        self.readers = Readers(self)
        self.expiry = TimeToBeReceivedTimer(self)
        self.trail = Trail(self)
        self.journeys = Journeys(clock)
        self.positions = Positions(self)
        self.streams = Streams(self)
        self.outgoing = Outgoing(self)
        self.dispatcher = Dispatcher(self.queue_manager)
        store.tell_together(self.dispatcher.gathering())
        self.strangers = Strangers(self)
        self.acknowledgements = Acknowledgements(self)
        self.composer = Composer(self)
        self.queues = Queues(self)
        self.messages = Messages(self)
        self.transfer = Transfer(self)
        self.arrivals = Arrivals(self)
        self.transactions = Transactions(self)

    def queue_manager_started(self) -> None:
        """Initialize ([MS-MQDMPR] 3.1.4.1); the queue manager is Ready when this returns."""
        self.initialization.start()
        self.trail.restore()

    def queue_manager_stopped(self) -> None:
        """Stop ([MS-MQDMPR] 3.1.4.2): readers are answered, `stopped_hooks` are called.

        The store stays open, so that what is pending can be written.
        """
        self.initialization.stop()

    def take_offline(self) -> None:
        """Use the network no more ([MS-MQDMPR] 3.1.4.12); `online_hooks` are called."""
        self._set_connection_active(False)

    def bring_online(self) -> None:
        """Use the network again ([MS-MQDMPR] 3.1.4.13); `online_hooks` are called."""
        self._set_connection_active(True)

    def _set_connection_active(self, active: bool) -> None:
        self.queue_manager.connection_active = active
        for hook in self.online_hooks:
            hook(active)

    def control_flow(self, refusing: bool) -> None:
        """Begin or end flow control, as the disk of the store gets short of room or has it again.

        Those two events are nobody's otherwise (G138).
        """
        if refusing:
            self.begin_flow_control()
        else:
            self.end_flow_control()

    def begin_flow_control(self) -> None:
        """Take no new messages ([MS-MQDMPR] 3.1.7.2.5)."""
        self.queue_manager.throttled = True

    def end_flow_control(self) -> None:
        """Take new messages again ([MS-MQDMPR] 3.1.7.2.6)."""
        self.queue_manager.throttled = False
