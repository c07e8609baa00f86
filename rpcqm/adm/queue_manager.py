"""The QueueManager element ([MS-MQDMPR] 3.1.1.1)."""

from dataclasses import dataclass, field
from uuid import UUID

from rpcqm.adm.directory_object import DirectoryObject, Enterprise
from rpcqm.adm.enums import DirectoryServerType, OperatingSystemType, QueueManagerState
from rpcqm.adm.queue import DispatchEntry, Queue
from rpcqm.adm.transaction import Transaction
from rpcqm.codec.types.mqvalues import INFINITE


@dataclass(frozen=True, slots=True)
class StandingOrder:
    """An order of an administrator that holds until it is taken back, also over restarts.

    `since` is milliseconds since 1970, 0 for an order stored by an older version; `by` is the name
    of an account.
    """

    since: int = 0
    by: str = ""
    reason: str = ""


@dataclass(slots=True, eq=False, repr=False)
class QueueManager(DirectoryObject):
    """The queue manager itself; there is one, LocalQueueManager.

    Quotas are KB (G3), times are seconds since 1970, security is a self-relative descriptor.
    """

    # Directory attributes
    computer_name: str = ""
    queue_manager_version: str = ""
    operating_system_version: str = ""
    operating_system_type: OperatingSystemType = OperatingSystemType.FOREIGN
    qualified_computer_name: str = ""
    create_time: int = 0
    modify_time: int = 0
    queue_manager_quota: int = 0x0010_0000
    journal_quota: int = INFINITE
    foreign_system: bool = False
    full_path: str = ""
    site_identifier_list: list[UUID] = field(default_factory=list)
    out_routing_server_identifier_list: list[UUID] = field(default_factory=list)
    in_routing_server_identifier_list: list[UUID] = field(default_factory=list)
    directory_server: bool = False
    remote_access_server: bool = False
    routing_server: bool = False
    supporting_server: bool = False
    directory_server_type: DirectoryServerType | None = None
    public_encryption_key_list: bytes = b""
    public_signing_key_list: bytes = b""
    security: bytes = b""
    clustered: bool = False

    # Local attributes; those marked persistent are in `records`
    directory_server_list: list[str] = field(default_factory=list)
    directory_integrated: bool = False
    srmp_http_support: bool = False
    directory_offline: bool = False
    throttled: bool = False
    connection_active: bool = False
    disconnected: StandingOrder | None = None
    """Ours: the order that took the queue manager off the network (G585)."""
    maintenance: StandingOrder | None = None
    """Ours: the order of maintenance, during which no new message is taken (G631)."""
    hardened_security: bool = False
    queue_manager_state: QueueManagerState = QueueManagerState.STOPPED
    system_deadletter_queue: Queue | None = None
    system_transactional_deadletter_queue: Queue | None = None
    system_journal_queue: Queue | None = None
    queue_collection: dict[int, Queue] = field(default_factory=dict)
    unusable_queues: dict[int, str] = field(default_factory=dict)
    """Ours: queues whose names are refused now, by queue id; only the store can read them (G494).
    """
    transaction_collection: dict[UUID, Transaction] = field(default_factory=dict)
    enterprise_reference: Enterprise | None = None
    dispatch_collection: dict[Queue, DispatchEntry] = field(default_factory=dict)

    # Ours: addresses from the static directory
    addresses: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<QueueManager {self.computer_name} {self.identifier}>"
