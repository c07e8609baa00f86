"""Builds the queue manager: one object per subject, over one store and one clock."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from rpcqm.adm.enums import QueueManagerState
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock, Timers
from rpcqm.base.completion import Completion
from rpcqm.base.ended_rights import EndedRights, OpenKind
from rpcqm.base.errors import HResult
from rpcqm.base.open_connections import ConnectionSource
from rpcqm.qm.access import AccessControl
from rpcqm.qm.acknowledgement_queues import AcknowledgementQueues
from rpcqm.qm.acknowledgements import Acknowledgements
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.composing import Composer
from rpcqm.qm.dead_letters import DeadLetters
from rpcqm.qm.directory import Directory
from rpcqm.qm.dispatcher import SendDispatcher
from rpcqm.qm.failed_deliveries import FailedDeliveries
from rpcqm.qm.identity_conflicts import IdentityConflicts
from rpcqm.qm.initialization import Initialization
from rpcqm.qm.journal_bounds import JournalBounds
from rpcqm.qm.leases import Leases
from rpcqm.qm.management import Management
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.names import LocalNames
from rpcqm.qm.opening import Opening
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.outgoing_bounds import OutgoingBounds
from rpcqm.qm.positions import Positions
from rpcqm.qm.program_work import ProgramWork
from rpcqm.qm.protection import Protection
from rpcqm.qm.protocol_records import ProtocolRecords
from rpcqm.qm.queues import QueueEvents
from rpcqm.qm.quotas import Quotas
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.renaming import Renaming
from rpcqm.qm.sender_rights import SenderRights
from rpcqm.qm.sending_on import SendingOn
from rpcqm.qm.sent_keys import SentKeys
from rpcqm.qm.sessions import SessionSource
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.qm.standing_orders import Admission, StandingOrders
from rpcqm.qm.timers import TimeToBeReceivedTimer
from rpcqm.qm.token_scopes import scope_key
from rpcqm.qm.trail import Trail
from rpcqm.qm.transactions import Transactions
from rpcqm.qm.transfer import Transfer
from rpcqm.qm.trigger_rules import TriggerRules
from rpcqm.qm.watching import MessageWatch
from rpcqm.store.store import Store


class QueueManagerEngine:
    """The events of [MS-MQDMPR], by subject.

    Everything is called from one thread and returns at once: results that take time are
    Completions. `timers` must run on `clock`.
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
        self.settings: Final = replace(settings or QueueManagerSettings())
        """Shared by the subjects: change its fields, never put another one in its place."""
        settings = self.settings
        self.queue_manager = machine = QueueManager()
        self.loaded_hooks: list[Callable[[], None]] = []
        """Called when queues and messages are there again, before any message is removed."""
        self.online_hooks: list[Callable[[bool], None]] = []
        self.flow_hooks: list[Callable[[bool], None]] = []
        """Called when flow control begins, and when it ends."""
        self.maintenance_hooks: list[Callable[[bool], None]] = []
        """Called when maintenance begins, and when it ends."""
        self.hardened_hooks: list[Callable[[bool], None]] = []
        """Called when only HTTP may carry messages from now on, and when other protocols may."""
        self.stopped_hooks: list[Callable[[], None]] = []
        self.session_sources: list[SessionSource] = []
        """The protocols that have sessions with other queue managers."""
        self.connection_sources: list[ConnectionSource] = []
        """The servers that have connections."""
        self.names = LocalNames(settings)
        self.dispatcher = SendDispatcher(machine)
        store.tell_together(self.dispatcher.gathering)
        self.message_trace = MessageTrace(clock)
        self.protocol_records = ProtocolRecords(store)
        self.quotas = Quotas(store, clock, machine)
        self.admission = Admission(machine)
        self.standing_orders = StandingOrders(store, clock, machine)
        self.protection = Protection()
        self.access = AccessControl(store, machine, settings)
        self.readers = WaitingReaders(store, timers)
        self.trail = Trail(store, clock, timers, machine)
        self.expiry = TimeToBeReceivedTimer(store, clock, timers, machine)
        self.ended = EndedRights()
        """Ends things of accounts that are still open; the keeper of accounts calls it."""
        self.registry = QueueRegistry(store, machine, self.names, self.readers)
        self.positions = Positions(
            store, clock, self.registry, self.readers, self.expiry, self.trail
        )
        self.identity_conflicts = IdentityConflicts(clock, store.metrics)
        self.outgoing_bounds = OutgoingBounds(clock, timers, self.registry, settings)
        self.outgoing = Outgoing(store, clock, machine, self.registry, self.outgoing_bounds)
        self.directory = Directory(
            store, timers, machine, settings, self.access, self.names, self.registry, self.outgoing
        )
        self._build_queues()
        self._build_messages()

    def _build_queues(self) -> None:
        """Build the subjects that need the directory."""
        store, clock, machine, settings = self.store, self.clock, self.queue_manager, self.settings
        self.acknowledgement_queues = AcknowledgementQueues(
            store,
            clock,
            self.timers,
            machine,
            self.registry,
            self.protocol_records,
            self.outgoing,
            self.directory,
        )
        self.queues = QueueEvents(
            store,
            clock,
            settings,
            self.names,
            self.registry,
            self.access,
            self.directory,
            self.positions,
        )
        self.journal_bounds = JournalBounds(
            store, clock, self.timers, self.registry, self.access, self.positions
        )
        self.renaming = Renaming(store, clock, self.names, self.registry, self.access)
        self.opening = Opening(
            store,
            machine,
            self.registry,
            self.readers,
            self.positions,
            self.access,
            self.directory,
            self.outgoing,
            self.acknowledgement_queues,
            self.queues,
            clock,
        )
        self.management = Management(
            machine,
            self.registry,
            self.queues,
            self.outgoing,
            self.bring_online,
            self.take_offline,
            store.compact,
        )
        self.dead_letters = DeadLetters(store, machine, self.opening)
        self.initialization = Initialization(
            store,
            clock,
            machine,
            settings,
            self.names,
            self.registry,
            self.access,
            self.directory,
            self.positions,
        )

    def _build_messages(self) -> None:
        """Build the subjects that need open queues."""
        store, clock, machine, settings = self.store, self.clock, self.queue_manager, self.settings
        self.sender_rights = SenderRights(machine, self.registry, self.access)
        self.composer = Composer(store, clock, machine, self.directory, self.sender_rights)
        self.acknowledgements = Acknowledgements(
            store,
            machine,
            settings,
            self.registry,
            self.quotas,
            self.positions,
            self.access,
            self.opening,
            self.acknowledgement_queues,
            self.composer,
            self.sender_rights,
        )
        self.failed_deliveries = FailedDeliveries(
            store, self.registry, self.access, self.positions, self.queues
        )
        self.transactions = Transactions(
            store,
            clock,
            machine,
            self.registry,
            self.positions,
            self.composer,
            self.acknowledgements,
            self.failed_deliveries,
        )
        self.messages = MessageEvents(
            store,
            clock,
            self.registry,
            self.readers,
            self.quotas,
            self.positions,
            self.composer,
            self.protection,
            self.transactions,
            self.failed_deliveries,
            self.admission,
        )
        self.transfer = Transfer(
            store,
            machine,
            self.protocol_records,
            self.positions,
            self.outgoing,
            self.acknowledgements,
            self.message_trace,
        )
        self.queues.gives_up = self.transfer.give_up
        self.arrivals = Arrivals(
            clock,
            machine,
            self.registry,
            self.outgoing,
            self.directory,
            self.access,
            self.acknowledgements,
            self.messages,
            self.admission,
        )
        self._build_programs()

    def _build_programs(self) -> None:
        """Build the parts for programs beyond the events of MSMQ: leases, keys of requests,
        triggers."""
        self.leases = Leases(
            self.store,
            self.clock,
            self.timers,
            self.access,
            self.readers,
            self.opening,
            self.positions,
            self.failed_deliveries,
        )
        self.sent_keys = SentKeys(self.store, self.clock, self.timers)
        self.triggers = TriggerRules(self.store, self.clock, self._scope_key)
        self.renaming.hooks.append(self.triggers.queue_renamed)
        self.program_work = ProgramWork(
            self.store,
            self.opening,
            self.composer,
            self.transactions,
            self.messages,
            self.leases,
            self.sent_keys,
        )
        self.sending_on = SendingOn(self.store, self.positions, self.program_work)
        self._end_with_accounts()

    def _scope_key(self, text: str) -> str:
        """The key of a queue, whichever of its names is given; raises MQError for another text."""
        return scope_key(text, self.names, self.registry)

    def _end_with_accounts(self) -> None:
        """Subscribe everything that stays open for accounts to their ends."""
        ended = self.ended
        ended.subscribe(OpenKind.PERMISSION, self.access.forget)
        ended.subscribe(OpenKind.WAITING_READ, self.opening.end_waits)
        ended.subscribe(OpenKind.QUEUE, self.opening.close_all)
        ended.subscribe(OpenKind.LEASE, self.leases.end_all)
        ended.subscribe(OpenKind.TRANSACTION, self.transactions.abort_all)

    def use_aliases(self, aliases: Iterable[str]) -> None:
        """Take other further names of this machine than before; open queues stay open (G500)."""
        self.names.use_aliases(aliases)
        self.registry.changes += 1  # names may lead to other queues now

    def watch_messages(self, watch: MessageWatch) -> None:
        """Report the fate of messages to a watch from now on."""
        self.positions.watch = self.message_trace.watch = watch
        self.positions.deleted_hooks.append(watch.deleted)

    def queue_manager_started(self) -> None:
        """Initialize ([MS-MQDMPR] 3.1.3, 3.1.4.1), without the steps that need a domain.

        Transactions that a restart left open are aborted: the store has dropped what they sent,
        and what they received is available. The queue manager is Ready when this returns.
        """
        self.queue_manager.queue_manager_state = QueueManagerState.INITIALIZING
        self.initialization.load()
        self.trail.restore()  # in front of the removals that follow, which it has records of
        self.dead_letters.restore()
        self.triggers.load()
        self.outgoing.start()
        self.directory.start()
        self.transfer.recover()
        self.sent_keys.restore()
        for hook in self.loaded_hooks:
            hook()
        self.initialization.finish_purges(self.transfer.held)
        for queue in list(self.queue_manager.queue_collection.values()):
            self.registry.drop_if_unused(queue)
        self.acknowledgement_queues.start()
        self.expiry.look()
        self.quotas.restore_levels()
        self.journal_bounds.start()
        self.store.space.watch(self.control_flow)
        self.standing_orders.restore()
        self.queue_manager.connection_active = self.queue_manager.disconnected is None
        self.queue_manager.queue_manager_state = QueueManagerState.READY

    def queue_manager_stopped(self) -> None:
        """Stop ([MS-MQDMPR] 3.1.4.2): readers are answered, `stopped_hooks` are called.

        The store stays open, so that pending changes can be written.
        """
        self.queue_manager.queue_manager_state = QueueManagerState.STOPPING
        self.expiry.stop()
        self.journal_bounds.stop()
        self.directory.stop()
        self.trail.stop()
        self.acknowledgement_queues.stop()
        self.outgoing_bounds.stop()
        for queue in list(self.queue_manager.queue_collection.values()):
            self.readers.end_all_waits(queue, HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE)
        self.leases.stop()
        self.sent_keys.stop()
        for hook in self.stopped_hooks:
            hook()
        self.queue_manager.connection_active = False
        self.queue_manager.queue_manager_state = QueueManagerState.STOPPED

    def take_offline(self, by: str = "", reason: str = "") -> Completion[None]:
        """Use the network no more ([MS-MQDMPR] 3.1.4.12); `online_hooks` are called.

        That holds over restarts (G585); done when it is durable.
        """
        kept = self.standing_orders.disconnect(by, reason)
        self._set_connection_active(False)
        return kept

    def bring_online(self) -> Completion[None]:
        """Use the network again ([MS-MQDMPR] 3.1.4.13); `online_hooks` are called."""
        kept = self.standing_orders.connect()
        self._set_connection_active(True)
        return kept

    def _set_connection_active(self, active: bool) -> None:
        self.queue_manager.connection_active = active
        for hook in self.online_hooks:
            hook(active)

    def begin_maintenance(self, by: str = "", reason: str = "") -> Completion[None]:
        """Take no new message from anybody (G631); `maintenance_hooks` are called.

        That holds over restarts; done when it is durable.
        """
        kept = self.standing_orders.begin_maintenance(by, reason)
        for hook in self.maintenance_hooks:
            hook(True)
        return kept

    def end_maintenance(self) -> Completion[None]:
        """Take messages again; `maintenance_hooks` are called."""
        kept = self.standing_orders.end_maintenance()
        for hook in self.maintenance_hooks:
            hook(False)
        return kept

    def harden(self, hardened: bool) -> None:
        """Let HTTP alone carry messages, or other protocols again, as a start does (G533).

        `hardened_hooks` are called.
        """
        self.queue_manager.hardened_security = hardened
        self.outgoing.apply_hardened_security()
        for hook in self.hardened_hooks:
            hook(hardened)

    def control_flow(self, refusing: bool) -> None:
        """Begin or end flow control, as the store's disk gets short of room or has it again.

        Nothing else raises these two events (G138).
        """
        if refusing:
            self.begin_flow_control()
        else:
            self.end_flow_control()
        for hook in self.flow_hooks:
            hook(refusing)

    def begin_flow_control(self) -> None:
        """Take no new messages ([MS-MQDMPR] 3.1.7.2.5)."""
        self.queue_manager.throttled = True

    def end_flow_control(self) -> None:
        """Take new messages again ([MS-MQDMPR] 3.1.7.2.6)."""
        self.queue_manager.throttled = False
