"""Enumerations of the abstract data model ([MS-MQDMPR] 3.1.1)."""

import enum


class PositionState(enum.IntEnum):
    """State of a MessagePosition ([MS-MQDMPR] 3.1.1.11).

    LEAVING is our own: the removal of the message is on its way to the disk, and nothing else
    may touch it meanwhile (G61).
    """

    AVAILABLE = 0
    LOCKED = 1
    PURGE_PENDING = 2
    LEAVING = 3
    DELETED = 4


class DirectoryOperationResult(enum.Enum):
    """Outcome of a directory operation ([MS-MQDMPR] 3.1.1.17)."""

    SUCCESS = "Success"
    GENERIC_ERROR = "GenericError"
    DIRECTORY_NOT_CONNECTED = "DirectoryNotConnected"
    OBJECT_NOT_FOUND = "ObjectNotFound"
    ATTRIBUTE_NOT_FOUND = "AttributeNotFound"
    END_OF_DATA = "EndOfData"
    OBJECT_ALREADY_EXISTS = "ObjectAlreadyExists"


class MessageSeekAction(enum.Enum):
    """Which message a lookup returns, relative to an identifier ([MS-MQDMPR] 3.1.1.17)."""

    SEEK_FIRST = "SeekFirst"
    SEEK_PREVIOUS = "SeekPrevious"
    SEEK_CURRENT = "SeekCurrent"
    SEEK_NEXT = "SeekNext"
    SEEK_LAST = "SeekLast"


class QueueType(enum.Enum):
    """Queue.QueueType ([MS-MQDMPR] 3.1.1.2)."""

    PRIVATE = "Private"
    PUBLIC = "Public"
    SYSTEM = "System"
    CONNECTOR = "Connector"


class QueueScope(enum.Enum):
    """Queue.Scope ([MS-MQDMPR] 3.1.1.2)."""

    SITE = "Site"
    ENTERPRISE = "Enterprise"


class OutgoingQueueState(enum.Enum):
    """OutgoingQueue.State ([MS-MQDMPR] 3.1.1.3)."""

    CONNECTED = "Connected"
    DISCONNECTED = "Disconnected"
    DISCONNECTING = "Disconnecting"
    INACTIVE = "Inactive"
    LOCKED = "Locked"
    NEED_VALIDATION = "NeedValidation"
    WAITING = "Waiting"
    ON_HOLD = "OnHold"


class OperatingSystemType(enum.Enum):
    """QueueManager.OperatingSystemType ([MS-MQDMPR] 3.1.1.1)."""

    FOREIGN = "Foreign"
    WIN95 = "Win95"
    WIN_CLIENT = "WinClient"
    WIN_SERVER = "WinServer"
    WIN_ENT = "WinEnt"
    OTHER = "Other"


class DirectoryServerType(enum.Enum):
    """QueueManager.DirectoryServerType ([MS-MQDMPR] 3.1.1.1)."""

    STANDALONE = "Standalone"
    BACKUP_SITE_CONTROLLER = "BackupSiteController"
    PRIMARY_SITE_CONTROLLER = "PrimarySiteController"
    PRIMARY_ENTERPRISE_CONTROLLER = "PrimaryEnterpriseController"


class QueueManagerState(enum.Enum):
    """QueueManager.QueueManagerState ([MS-MQDMPR] 3.1.1.1)."""

    STOPPED = "Stopped"
    INITIALIZING = "Initializing"
    READY = "Ready"
    STOPPING = "Stopping"


class OperationType(enum.Enum):
    """TransactionalOperation.OperationType ([MS-MQDMPR] 3.1.1.13)."""

    ENQUEUE = "Enqueue"
    DEQUEUE = "Dequeue"
    MOVE = "Move"


class RemoteReadState(enum.Enum):
    """OpenQueueDescriptor.RemoteReadState ([MS-MQDMPR] 3.1.1.16)."""

    NONE = "None"
    OPENED = "Opened"
    READY_FOR_READ = "ReadyForRead"


class CursorState(enum.Enum):
    """Cursor.CursorState ([MS-MQDMPR] 3.2.1.2)."""

    UNREAD = "Unread"
    READ = "Read"
    WAIT_PEEK = "WaitPeek"
    WAIT_RECEIVE = "WaitReceive"


class EnqueueStatus(enum.IntEnum):
    """Result of the Enqueue Message event ([MS-MQDMPR] 3.1.7.1.9)."""

    NO_ERROR = 0
    QUEUE_QUOTA_EXCEEDED = 1
    QUEUE_MANAGER_QUOTA_EXCEEDED = 2
    TIMED_OUT_IN_TRANSIT = 3


class SeekDirection(enum.Enum):
    """iSeekDirection of Seek Available Message Position ([MS-MQDMPR] 3.1.7.3.2)."""

    FORWARD = "Forward"
    BACKWARD = "Backward"
