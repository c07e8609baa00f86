"""The parts of the queue manager that the coclasses use."""

from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock
from rpcqm.codec.names.format_name import FormatName
from rpcqm.dcom.client import OutboundCalls
from rpcqm.dcom.com_object import ComCall, ComObject
from rpcqm.dcom.held_octets import HeldOctets
from rpcqm.operations.management_orders import ManagementOrders
from rpcqm.operations.queue_changes import QueueOrders
from rpcqm.qm.access import AccessControl
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.composing import Composer
from rpcqm.qm.directory import Directory
from rpcqm.qm.management import Management
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.names import LocalNames
from rpcqm.qm.opening import Opening
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.protection import Protection
from rpcqm.qm.queues import QueueEvents
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.remote_management import RemoteManagement
from rpcqm.qm.remote_reading import OpenElsewhere
from rpcqm.qm.transactions import Transactions


def _never() -> bool:
    return False


@dataclass(eq=False, repr=False, kw_only=True)
class Machine:
    """The subjects of one queue manager, and the choices of its operator.

    `empty_is_nothing` says whether a read that finds no message answers a null pointer with S_OK,
    as Windows does, and not an error, as [MC-MQAC] says (G270). `open_elsewhere` opens queues of
    other queue managers, `manage_elsewhere` asks them for administrators; both are optional.
    """

    queue_manager: QueueManager
    clock: Clock
    names: LocalNames
    registry: QueueRegistry
    access: AccessControl
    directory: Directory
    readers: WaitingReaders
    queues: QueueEvents
    opening: Opening
    outgoing: Outgoing
    composer: Composer
    transactions: Transactions
    messages: MessageEvents
    arrivals: Arrivals
    management: Management
    protection: Protection
    empty_is_nothing: Callable[[], bool] = _never
    open_elsewhere: OpenElsewhere | None = None
    manage_elsewhere: RemoteManagement | None = None
    outbound: OutboundCalls | None = None

    def __post_init__(self) -> None:
        self.orders = QueueOrders(self.queues)
        self.management_orders = ManagementOrders(self.management)
        self.held = HeldOctets()
        self.openers: dict[int, str] = {}
        """The SIDs of the callers that have queues open through objects, by the handles (G286)."""
        self.closers: dict[int, Callable[[], None]] = {}
        """Close the MSMQQueue with a handle, whichever object asks for it (G294)."""
        self.queue_info: Callable[[ComCall, tuple[FormatName, ...]], ComObject]
        """Makes the MSMQQueueInfo of a format name, refreshed if possible; `coclasses` sets it."""
