"""MSMQDestination: one queue or several as the destination of messages ([MC-MQAC] 3.12)."""

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.origin import COM, origin_of_peer
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName, format_names, parse_format_names
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.dcom.com_object import ComCall, Outcome
from rpcqm.mqac._message_properties import not_implemented
from rpcqm.mqac.arguments import integer
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.named_queues import NamedQueues, SendingTarget
from rpcqm.mqac.owned import LONGEST_DIRECTORY_PATH
from rpcqm.mqac.path_names import format_name_of_path

INVALID_HANDLE_VALUE = -1


class MSMQDestination(NamedQueues, SendingTarget):
    """Queues by a format name, a path name or a directory path, open for sending or closed."""

    INTERFACES = ("IMSMQDestination", "IMSMQPrivateDestination")

    def __init__(self, machine: Machine, names: tuple[FormatName, ...] = ()) -> None:
        self._machine = machine
        self._queue_format_name = format_names(names)
        self._descriptor: OpenQueueDescriptor | None = None
        self._is_opener = False
        self._directory_path = ""
        self._queue_path_name = ""

    @property
    def open_queue_descriptor(self) -> OpenQueueDescriptor | None:
        """DestinationOpenQueueDescriptor; None also once another object has closed it."""
        found = self._descriptor
        if found is None or self._machine.opening.descriptors.get(found.handle) is not found:
            return None
        return found

    def resolved_format_names(self) -> tuple[FormatName, ...]:
        """The queues of QueueFormatName, () while it is NULL; MQ_ERROR_ILLEGAL_FORMATNAME."""
        return parse_format_names(self._queue_format_name) if self._queue_format_name else ()

    def Open(self, call: ComCall) -> Outcome | None:
        """S_FALSE if it is open already; [MC-MQAC] 3.12.4.1.1 Open (Opnum 7)."""
        if self.open_queue_descriptor is not None:
            return Outcome(HResult.S_FALSE)
        self._open(call)
        return None

    def _open(self, call: ComCall) -> None:
        names = self.resolved_format_names()
        if not names:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, "no queue was named")
        descriptor = self._machine.opening.open_queue(
            names, QueueAccessType.SEND_ACCESS, identity=call.identity
        )
        descriptor.origin = origin_of_peer(call.peer, COM)
        self._descriptor, self._is_opener = descriptor, True
        self._machine.openers[descriptor.handle] = call.identity.sid

    def Close(self, call: ComCall) -> Outcome | None:
        """S_FALSE if it is closed; [MC-MQAC] 3.12.4.1.2 Close (Opnum 8)."""
        if self.open_queue_descriptor is None:
            return Outcome(HResult.S_FALSE)
        self._close()
        return None

    def _close(self) -> None:
        descriptor, self._descriptor = self.open_queue_descriptor, None
        if descriptor is None:
            return
        close = self._machine.closers.get(descriptor.handle)
        if close is not None:  # an MSMQQueue has opened it, and closes with it (G294)
            close()
            return
        self._machine.openers.pop(descriptor.handle, None)
        self._machine.opening.close_queue(descriptor)

    def released(self) -> None:
        if self._is_opener:
            self._close()

    def get_IsOpen(self, call: ComCall) -> bool:
        """[MC-MQAC] 3.12.4.1.3 IsOpen (Opnum 9)."""
        return self.open_queue_descriptor is not None

    # Names

    def get_ADsPath(self, call: ComCall) -> str:
        """[MC-MQAC] 3.12.4.1.6 ADsPath (Opnum 12)."""
        return self._directory_path

    def put_ADsPath(self, call: ComCall, bstrADsPath: str | bytes | None) -> None:
        """[MC-MQAC] 3.12.4.1.7 ADsPath (Opnum 13)."""
        most = LONGEST_DIRECTORY_PATH
        self._directory_path = self.keep_text(call, "directory path", bstrADsPath, most)
        name = self._machine.directory.find_directory_path(self._directory_path)
        self._rename(call, str(name), "", self._directory_path)

    def get_PathName(self, call: ComCall) -> str:
        """[MC-MQAC] 3.12.4.1.8 PathName (Opnum 14)."""
        return self._queue_path_name

    def put_PathName(self, call: ComCall, bstrPathName: str | bytes | None) -> None:
        """[MC-MQAC] 3.12.4.1.9 PathName (Opnum 15)."""
        self._queue_path_name = self.keep_path_name(call, bstrPathName)
        name = format_name_of_path(self._machine, self._queue_path_name)
        self._rename(call, str(name), self._queue_path_name, "")

    def get_FormatName(self, call: ComCall) -> str:
        """[MC-MQAC] 3.12.4.1.10 FormatName (Opnum 16)."""
        return self._queue_format_name

    def put_FormatName(self, call: ComCall, bstrFormatName: str | bytes | None) -> None:
        """Set the name unchanged: its queues are looked up at Open.

        Source: [MC-MQAC] 3.12.4.1.11 FormatName (Opnum 17).
        """
        self._rename(call, self.keep_format_name(call, bstrFormatName), "", "")

    def _rename(self, call: ComCall, format_name: str, path_name: str, directory_path: str) -> None:
        """Name other queues; an open descriptor is closed, and they are opened."""
        self._queue_format_name = format_name
        self._queue_path_name, self._directory_path = path_name, directory_path
        if self.open_queue_descriptor is not None:
            self._close()
            self._open(call)

    # Methods that only have names

    get_IADs = not_implemented
    putref_IADs = not_implemented
    get_Destinations = not_implemented
    putref_Destinations = not_implemented
    get_Properties = not_implemented

    # IMSMQPrivateDestination

    def get_Handle(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.12.4.2.1 Handle (Opnum 7)."""
        descriptor = self.open_queue_descriptor
        handle = INVALID_HANDLE_VALUE if descriptor is None else descriptor.handle
        return Variant(VARENUM.VT_I8, handle)

    def put_Handle(self, call: ComCall, varHandle: Variant) -> None:
        """Take over a queue that the same caller has open by that handle, or no queue (G286).

        A handle may be given as MSMQQueue.Handle returns it, a long that may be negative. Source:
        [MC-MQAC] 3.12.4.2.2 Handle (Opnum 8).
        """
        handle = integer(varHandle, INVALID_HANDLE_VALUE)
        if -0x8000_0000 <= handle < INVALID_HANDLE_VALUE:
            handle += 1 << 32
        self.released()
        self._queue_path_name = self._directory_path = ""
        self._descriptor, self._is_opener = None, False
        if self._machine.openers.get(handle) == call.identity.sid:
            self._descriptor = self._machine.opening.descriptors.get(handle)
