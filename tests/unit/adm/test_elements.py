"""Every attribute that [MS-MQDMPR] 3.1.1 gives an element is there, with its default."""

import re
from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.adm import enums
from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor, WaitingMessageReadOperation
from rpcqm.adm.directory_object import (
    NULL_GUID,
    DirectoryObject,
    Enterprise,
    RoutingLink,
    Site,
    User,
)
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.queue import (
    ConnectionHistoryEntry,
    DispatchEntry,
    IncomingTransactionalTransferInfo,
    OutgoingQueue,
    OutgoingTransferInfo,
    Queue,
)
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.transaction import Transaction, TransactionalOperation
from rpcqm.base.completion import Completion
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import PACKET_FIELDS, MessageAttributes, build_user_message
from rpcqm.codec.types.mqvalues import ConnectionStatus, QueueAccessType, QueueShareMode


def snake_case(name: str) -> str:
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


QUEUE_ATTRIBUTES = """Identifier Label CreateTime ModifyTime Type Pathname QualifiedPathname
    PrivateQueueNumber Journaling Quota JournalQuota Authentication PrivacyLevel Transactional
    MulticastAddress Security BasePriority FullPath DirectoryPath Scope Active TotalBytes
    QueueManager QueueType JournalQueueReference SubqueueCollection
    IncomingTransactionalTransferInfoCollection MessagePositionList
    OpenQueueDescriptorCollection"""


def descriptor() -> OpenQueueDescriptor:
    name = FormatName.parse(r"DIRECT=OS:.\q")
    return OpenQueueDescriptor(
        1, 2, QueueAccessType.PEEK_ACCESS, QueueShareMode.DENY_NONE, name, Queue()
    )


ELEMENTS: list[tuple[str, Any, str]] = [
    ("DirectoryObject", DirectoryObject(), "Identifier"),
    (
        "QueueManager",
        QueueManager(),
        """Identifier ComputerName QueueManagerVersion OperatingSystemVersion OperatingSystemType
        QualifiedComputerName CreateTime ModifyTime QueueManagerQuota JournalQuota ForeignSystem
        FullPath SiteIdentifierList OutRoutingServerIdentifierList
        InRoutingServerIdentifierList DirectoryServer RemoteAccessServer RoutingServer
        SupportingServer DirectoryServerType PublicEncryptionKeyList PublicSigningKeyList Security
        Clustered DirectoryServerList DirectoryIntegrated
        SrmpHttpSupport DirectoryOffline Throttled ConnectionActive
        HardenedSecurity QueueManagerState SystemDeadletterQueue
        SystemTransactionalDeadletterQueue SystemJournalQueue QueueCollection TransactionCollection
        EnterpriseReference DispatchCollection""",
    ),
    ("Queue", Queue(), QUEUE_ATTRIBUTES),
    (
        "OutgoingQueue",
        OutgoingQueue(),
        QUEUE_ATTRIBUTES
        + """ DestinationFormatName NextHops Multicast OutgoingTransferInfoReference State
        ConnectionHistory""",
    ),
    (
        "OutgoingTransferInfo",
        OutgoingTransferInfo(OutgoingQueue()),
        """OutgoingQueueReference EodFirstNonAck EodLastAck EodLastAckCount EodLastAckTime
        EodLastNonAck EodNextSeq EodNoAckCount EodNoReadCount EodResendCount EodResendInterval
        EodResendTime""",
    ),
    (
        "IncomingTransactionalTransferInfo",
        IncomingTransactionalTransferInfo(Queue()),
        """QueueReference FormatName SenderIdentifier SequenceIdentifier SequenceNumber
        LastAccessTime RejectCount""",
    ),
    (
        "Enterprise",
        Enterprise(),
        """Identifier Name WeakenedSecurity NonLDAPCapableQueueManagerNotification
        DefaultTimeToLive OldDirectory Security""",
    ),
    (
        "Site",
        Site(),
        """Identifier Name PrimarySiteController IntraSiteReplicationInterval
        InterSiteReplicationInterval FullPath ForeignSite PublicSigningKeyList
        MigratedFromMsmq10 Security SiteGateCollection""",
    ),
    (
        "RoutingLink",
        RoutingLink(),
        """Identifier Description FullPath ActualCost Site1Identifier Site2Identifier
        SiteGateIdentifierList Site1Reference Site2Reference SiteGateCollection""",
    ),
    (
        "WaitingMessageReadOperation",
        WaitingMessageReadOperation(descriptor(), True, None, None, lambda _: Completion()),
        "DestructiveRead Tag CursorReference",
    ),
    (
        "TransactionalOperation",
        TransactionalOperation(enums.OperationType.MOVE, Queue(), 7),
        "OperationType MessagePositionReference TargetQueueReference DequeueReason",
    ),
    (
        "Transaction",
        Transaction(uuid4()),
        "Identifier TransactionalOperationCollection",
    ),
    ("User", User(), "Identifier SecurityIdentifier CertificateDigestList Certificates"),
    (
        "OpenQueueDescriptor",
        descriptor(),
        """Handle ContextValue AccessType ShareMode QueueReference FormatName Multiple
        OpenQueueDescriptorCollection RemoteReadState CursorCollection
        WaitingMessageReadOperationCollection""",
    ),
    (
        "DispatchEntry",
        DispatchEntry(MessagePosition(Queue(), 1), None, 3),
        "MessagePositionReference ProtocolData Priority SendInProgress",
    ),
    (
        "Cursor",
        Cursor(1, descriptor()),
        "Handle OpenQueueDescriptorReference MessagePositionReference CursorState",
    ),
    (
        "MessagePosition",
        MessagePosition(Queue(), 1),
        "State Next Previous QueueReference",
    ),
]


@pytest.mark.parametrize(
    ("element", "names"),
    [
        pytest.param(
            element, names, id=name, marks=pytest.mark.conformance(f"MQDMPR-element-{name}")
        )
        for name, element, names in ELEMENTS
    ],
)
def test_an_element_has_all_its_attributes_and_no_room_for_others(element: Any, names: str) -> None:
    for name in names.split():
        getattr(element, snake_case(name))
    with pytest.raises(AttributeError):
        element.misspelled_attribute = 1


@pytest.mark.conformance("MQDMPR-element-QueueManager", "MQDMPR-element-Queue")
def test_defaults_of_the_specification() -> None:
    """Quotas are KB (G3)."""
    manager, queue = QueueManager(), Queue()
    assert manager.queue_manager_quota == 0x00100000
    assert manager.journal_quota == 0xFFFFFFFF
    assert not any(
        (
            manager.foreign_system,
            manager.remote_access_server,
            manager.supporting_server,
            manager.hardened_security,
            manager.directory_offline,
        )
    )
    assert manager.site_identifier_list == []
    assert manager.queue_manager_state is enums.QueueManagerState.STOPPED
    assert (queue.quota, queue.journal_quota) == (0xFFFFFFFF, 0xFFFFFFFF)
    assert queue.scope is enums.QueueScope.ENTERPRISE
    assert queue.type == NULL_GUID
    assert OutgoingQueue().state is enums.OutgoingQueueState.INACTIVE


def test_collections_are_not_shared_between_elements() -> None:
    first, second = QueueManager(), QueueManager()
    first.queue_collection[1] = Queue()
    first.site_identifier_list.append(uuid4())
    assert second.queue_collection == {}
    assert second.site_identifier_list == []


ENUMERATIONS: list[tuple[str, type[Any], str]] = [
    (
        "MQDMPR-element-DirectoryOperationResult",
        enums.DirectoryOperationResult,
        """Success GenericError DirectoryNotConnected ObjectNotFound AttributeNotFound EndOfData
        ObjectAlreadyExists""",
    ),
    (
        "MQDMPR-element-MessageSeekAction",
        enums.MessageSeekAction,
        "SeekFirst SeekPrevious SeekCurrent SeekNext SeekLast",
    ),
    (
        "MQDMPR-element-QueueAccessType",
        QueueAccessType,
        "ReceiveAccess SendAccess PeekAccess MoveAccess ReceiveAdminAccess PeekAdminAccess",
    ),
    ("MQDMPR-element-QueueShareMode", QueueShareMode, "DenyNone DenyReceive"),
    (
        "MQDMPR-element-OutgoingQueue",
        enums.OutgoingQueueState,
        """Connected Disconnected Disconnecting Inactive Locked NeedValidation Waiting OnHold""",
    ),
    (
        "MQDMPR-element-OutgoingQueue",
        ConnectionStatus,
        """InProcess EstablishPacketReceived Established UnknownFailure PingFailure
        SocketCreateFailure SocketBindFailure SocketConnectFailure TcpNotEnabled
        SocketSendFailure ConnectionNotReady DnsFailure CertificateValidationFailure
        ConnectionLimitReached ConnectionRefused RoutingDataNotAvailable LowResource""",
    ),
    ("MQDMPR-element-Queue", enums.QueueType, "Private Public System Connector"),
    ("MQDMPR-element-Cursor", enums.CursorState, "Unread Read WaitPeek WaitReceive"),
    (
        "MQDMPR-element-TransactionalOperation",
        enums.OperationType,
        "Enqueue Dequeue Move",
    ),
    (
        "MQDMPR-element-OpenQueueDescriptor",
        enums.RemoteReadState,
        "None Opened ReadyForRead",
    ),
    (
        "MQDMPR-element-QueueManager",
        enums.QueueManagerState,
        "Stopped Initializing Ready Stopping",
    ),
]


@pytest.mark.parametrize(
    ("enumeration", "names"),
    [
        pytest.param(kind, names, id=kind.__name__, marks=pytest.mark.conformance(point))
        for point, kind, names in ENUMERATIONS
    ],
)
def test_an_enumeration_has_exactly_its_values(enumeration: type[Any], names: str) -> None:
    expected = [snake_case(name).upper() for name in names.split()]
    assert sorted(member.name for member in enumeration) == sorted(expected)


def test_access_types_and_share_modes_have_the_values_of_msmq() -> None:
    access = {member.name: member.value for member in QueueAccessType}
    assert access == {
        "RECEIVE_ACCESS": 1,
        "SEND_ACCESS": 2,
        "MOVE_ACCESS": 4,
        "PEEK_ACCESS": 0x20,
        "RECEIVE_ADMIN_ACCESS": 0x81,
        "PEEK_ADMIN_ACCESS": 0xA0,
    }
    assert QueueShareMode.DENY_RECEIVE.value == 1


@pytest.mark.conformance("MQDMPR-element-Message")
@pytest.mark.parametrize(
    "attribute",
    [
        *PACKET_FIELDS,
        *[
            "lookup_identifier",
            "allow_peek_when_locked",
            "application_deadletter_queue",
            "arrival_time",
            "transaction_status_queue_format_name",
        ],
    ],
)
def test_a_message_has_every_attribute(attribute: str) -> None:
    message = Message(build_user_message(MessageAttributes(body=b"x")))
    owner = message.attributes if attribute in PACKET_FIELDS else message
    getattr(owner, attribute)


@pytest.mark.conformance("MQDMPR-element-Message")
def test_a_message_is_its_packet() -> None:
    packet = build_user_message(
        MessageAttributes(
            body=b"body",
            label="L",
            priority=6,
            sent_time=1_000,
            time_to_be_received=5,
            time_to_reach_queue=9,
            delivery_guarantee=1,
            negative_journaling_requested=True,
        )
    )
    message = Message(packet)
    assert message.packet is packet
    assert message.attributes is message.attributes
    assert (message.attributes.body, message.attributes.label) == (b"body", "L")
    envelope = message.envelope
    assert envelope.packet_size == len(packet)
    assert (envelope.priority, envelope.sent_time) == (6, 1_000)
    assert (envelope.time_to_be_received, envelope.time_to_reach_queue) == (5, 9)
    assert envelope.recoverable
    assert not envelope.transactional


@pytest.mark.parametrize(
    ("attributes", "flags"),
    [
        ({}, 0),
        ({"transaction_identifier": 1}, 0x01),
        ({"negative_journaling_requested": True}, 0x02),
        ({"positive_journaling_requested": True}, 0x04),
        ({"administration_queue_format_name": FormatName.parse(r"DIRECT=OS:a\b")}, 0x08),
        ({"response_queue_format_name": FormatName.parse(r"DIRECT=OS:a\b")}, 0),
    ],
)
def test_a_position_keeps_what_a_removal_needs(attributes: dict[str, Any], flags: int) -> None:
    message = Message(build_user_message(MessageAttributes(**attributes)))
    assert message.position_flags(message.envelope) == flags
    open_message = Message(message.packet, allow_peek_when_locked=True)
    assert open_message.position_flags(message.envelope) == flags | 0x10


@pytest.mark.conformance("MQDMPR-element-MessagePosition")
def test_a_position_is_a_queue_and_an_identifier() -> None:
    queue = Queue()
    position = MessagePosition(queue, 7)
    assert position == MessagePosition(queue, 7)
    assert position != MessagePosition(Queue(), 7)
    assert len({position, MessagePosition(queue, 7), MessagePosition(queue, 8)}) == 2
    assert position.state is enums.PositionState.DELETED
    assert (position.next, position.previous) == (None, None)


def test_connection_history_is_a_list_of_entries() -> None:
    entry = ConnectionHistoryEntry(ConnectionStatus.DNS_FAILURE, 5, 0xC00E0099, ("a",))
    queue = OutgoingQueue(connection_history=[entry])
    assert queue.connection_history[0].status is ConnectionStatus.DNS_FAILURE
    assert queue.identifier == UUID(int=0)


def test_elements_that_refer_to_each_other_are_shown_briefly() -> None:
    manager = QueueManager(computer_name="PC")
    queue = Queue(pathname=r"PC\q", queue_manager=manager)
    manager.queue_collection[1] = queue
    outgoing = OutgoingQueue(destination_format_name=r"DIRECT=OS:a\b")
    assert repr(queue) == r"<Queue PC\q>"
    assert repr(outgoing) == r"<OutgoingQueue DIRECT=OS:a\b>"
    assert repr(manager).startswith("<QueueManager PC")
