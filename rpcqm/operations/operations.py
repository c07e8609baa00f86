"""All of them together, over one queue manager."""

from rpcqm.base.admission import Admission
from rpcqm.base.ended_rights import OpenKind
from rpcqm.operations.accounts import AccountKeeper, AccountOperations
from rpcqm.operations.cluster import ClusterOperations
from rpcqm.operations.dead_letters import DeadLetterOperations
from rpcqm.operations.decoding import LongDecoding
from rpcqm.operations.events import Events
from rpcqm.operations.exports import ExportOperations
from rpcqm.operations.logons import LogonOperations
from rpcqm.operations.machine import MachineOperations, MakeBackup
from rpcqm.operations.message_orders import MessageOrders
from rpcqm.operations.messages import MessageOperations
from rpcqm.operations.metrics import MetricsOperations
from rpcqm.operations.opened import OpenedOperations
from rpcqm.operations.order_requests import OrderRequests
from rpcqm.operations.outgoing import OutgoingOperations
from rpcqm.operations.overview import OverviewOperations
from rpcqm.operations.permissions import PermissionOperations
from rpcqm.operations.queues import QueueOperations
from rpcqm.operations.routing import RoutingOperations
from rpcqm.operations.scheduling import Scheduling
from rpcqm.operations.searching import SearchOperations
from rpcqm.operations.sessions import SessionOperations
from rpcqm.operations.tokens import TokenKeeper, TokenOperations
from rpcqm.operations.traces import TraceOperations
from rpcqm.operations.triggers import TriggerOperations
from rpcqm.operations.waiting import WaitingOperations
from rpcqm.qm.engine import QueueManagerEngine


class Operations:
    """What can be done with a queue manager, by subject."""

    def __init__(
        self,
        engine: QueueManagerEngine,
        accounts: AccountKeeper,
        make_backup: MakeBackup,
        tokens: TokenKeeper,
        admission: Admission | None = None,
    ) -> None:
        self.accounts = AccountOperations(accounts)
        self.tokens = TokenOperations(tokens)
        self.machine = MachineOperations(engine, make_backup)
        self.overview = OverviewOperations(engine, self.machine.started, admission)
        self.logons = LogonOperations(engine.clock)
        self.ended = engine.ended
        self.ended.subscribe(OpenKind.ONE_TIME_LOGON, self.logons.end_all)
        self.metrics = MetricsOperations(engine, self.overview)
        self.queues = QueueOperations(engine)
        self.permissions = PermissionOperations(
            engine, self.queues, self.machine, self.accounts, self.tokens
        )
        self.opened = OpenedOperations(engine, self.queues, self.accounts)
        self.messages = MessageOperations(engine, self.queues)
        self.scheduling = Scheduling(engine, self.messages, accounts, tokens)
        self.message_orders = MessageOrders(engine, self.messages)
        self.waiting = WaitingOperations(engine, self.messages)
        self.exports = ExportOperations(engine, self.messages)
        self.searching = SearchOperations(engine, self.messages, accounts)
        self.order_requests = OrderRequests(self.message_orders, self.searching)
        self.outgoing = OutgoingOperations(engine)
        self.traces = TraceOperations(engine)
        self.sessions = SessionOperations(engine)
        self.routing = RoutingOperations(engine)
        self.dead_letters = DeadLetterOperations(engine)
        self.events = Events(engine, self.queues)
        self.decoding = LongDecoding()
        self.triggers = TriggerOperations(engine)
        self.cluster: ClusterOperations | None = None
        """This node of a cluster; None for a queue manager that is in none."""

    def pulse(self) -> tuple[object, ...]:
        """A value that is another one after anything has happened that pages show."""
        return (
            self.machine.pulse(),
            self.events.trail.last,
            self.sessions.pulse(),
            self.messages.pulse(),
        )
