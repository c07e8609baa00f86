"""MSMQManagement and its two children: administrators' view of a queue ([MC-MQAC] 3.3 to 3.5).

All three classes are one here: the interfaces of an object follow from its queue.
"""

from typing import Any
from uuid import UUID

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import SequenceInfo
from rpcqm.codec.properties import ManagementQueueProperty
from rpcqm.codec.property_values import (
    ManagementQueueForeign,
    ManagementQueueLocation,
    ManagementQueueState,
    ManagementQueueType,
    ManagementQueueXact,
)
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.dcom.com_object import ComCall
from rpcqm.mqac import told
from rpcqm.mqac.administration import ask, is_elsewhere, order
from rpcqm.mqac.arguments import plain, signed, text
from rpcqm.mqac.collection import MSMQCollection
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.owned import LONGEST_COMPUTER_NAME, Owned, bounded
from rpcqm.mqac.path_names import format_name_of_path
from rpcqm.qm.access import require_observer

_P = ManagementQueueProperty
OF_QUEUES = "IMSMQQueueManagement"
OF_OUTGOING_QUEUES = "IMSMQOutgoingQueueManagement"

FOREIGN_STATUS = (
    ManagementQueueForeign.MGMT_QUEUE_FOREIGN_TYPE,
    ManagementQueueForeign.MGMT_QUEUE_NOT_FOREIGN_TYPE,
    ManagementQueueForeign.MGMT_QUEUE_UNKNOWN_TYPE,
)
QUEUE_TYPE = (
    ManagementQueueType.MGMT_QUEUE_TYPE_PUBLIC,
    ManagementQueueType.MGMT_QUEUE_TYPE_PRIVATE,
    ManagementQueueType.MGMT_QUEUE_TYPE_MACHINE,
    ManagementQueueType.MGMT_QUEUE_TYPE_CONNECTOR,
    ManagementQueueType.MGMT_QUEUE_TYPE_MULTICAST,
)
XACT_STATUS = (
    ManagementQueueXact.MGMT_QUEUE_TRANSACTIONAL_TYPE,
    ManagementQueueXact.MGMT_QUEUE_NOT_TRANSACTIONAL_TYPE,
    ManagementQueueXact.MGMT_QUEUE_UNKNOWN_TYPE,
)
QUEUE_STATE = (
    ManagementQueueState.MGMT_QUEUE_STATE_LOCAL,
    ManagementQueueState.MGMT_QUEUE_STATE_DISCONNECTED,
    ManagementQueueState.MGMT_QUEUE_STATE_WAITING,
    ManagementQueueState.MGMT_QUEUE_STATE_NEED_VALIDATE,
    ManagementQueueState.MGMT_QUEUE_STATE_ONHOLD,
    ManagementQueueState.MGMT_QUEUE_STATE_NONACTIVE,
    ManagementQueueState.MGMT_QUEUE_STATE_CONNECTED,
    ManagementQueueState.MGMT_QUEUE_STATE_DISCONNECTING,
    ManagementQueueState.MGMT_QUEUE_STATE_LOCKED,
)
"""The texts of [MS-MQMQ] 2.3.12 in the order of the numbers that [MC-MQAC] has for them."""

_LOCATIONS = (
    ManagementQueueLocation.MGMT_QUEUE_LOCAL_LOCATION,
    ManagementQueueLocation.MGMT_QUEUE_REMOTE_LOCATION,
)
_SOURCE_INFO = (
    ("QueueFormatName", VARENUM.VT_BSTR),
    ("SenderID", VARENUM.VT_BSTR),
    ("SeqID", VARENUM.VT_UI8),
    ("SeqNo", VARENUM.VT_I4),
    ("LastAccessTime", VARENUM.VT_I4),
    ("RejectCount", VARENUM.VT_I4),
)
"""IncomingTransactionalTransferInfo ([MC-MQAC] 2.2.4.1), in the order of the property's arrays."""

_NUMBERS = {
    "EodLastAckTime": (_P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME, VARENUM.VT_I4),
    "EodLastAckCount": (_P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT, VARENUM.VT_UI4),
    "EodNoReadCount": (_P.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT, VARENUM.VT_UI4),
    "EodNoAckCount": (_P.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT, VARENUM.VT_UI4),
    "EodResendTime": (_P.PROPID_MGMT_QUEUE_EOD_RESEND_TIME, VARENUM.VT_I4),
    "EodResendInterval": (_P.PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL, VARENUM.VT_UI4),
    "EodResendCount": (_P.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT, VARENUM.VT_UI4),
}
_SEQUENCES = {
    "EodLastAck": _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK,
    "EodFirstNonAck": _P.PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK,
    "EodLastNonAck": _P.PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK,
    "EodNextSeq": _P.PROPID_MGMT_QUEUE_EOD_NEXT_SEQ,
}
"""OutgoingTransferInfo ([MC-MQAC] 2.2.4.2)."""


class MSMQManagement(Owned):
    """The state of an active queue, for administrators as by qmmgmt.

    `activated` is the interface of the class that a client has activated, "" for MSMQManagement.
    """

    INTERFACES = ("IMSMQManagement", OF_QUEUES, OF_OUTGOING_QUEUES)

    def __init__(self, machine: Machine, activated: str = "") -> None:
        self._machine = machine
        self._activated = activated
        self._computer_name = ""
        self._name: FormatName | None = None
        self._is_outgoing = False

    @property
    def interfaces(self) -> tuple[str, ...]:
        """IMSMQManagement, and before it the one that fits the queue after Init."""
        known = (self._activated,) if self._activated else ()
        if self._name is not None:
            known = (OF_OUTGOING_QUEUES if self._is_outgoing else OF_QUEUES,)
        return (*known, "IMSMQManagement")

    async def Init(
        self,
        call: ComCall,
        Machine: Variant | None,
        Pathname: Variant | None,
        FormatName: Variant | None,
    ) -> None:
        """[MC-MQAC] 3.3.4.1.1 Init (Opnum 7)."""
        require_observer(call.identity)
        path_name = self.keep_path_name(call, _text(Pathname))
        format_name = self.keep_format_name(call, _text(FormatName))
        if bool(path_name) == bool(format_name):
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "a path name or a format name")
        computer = bounded(_text(Machine), LONGEST_COMPUTER_NAME)
        name = self._named(path_name, format_name)
        if not is_elsewhere(self._machine, computer):
            self._require_active(name)
        location = await ask(
            self._machine, call.identity, computer, name, _P.PROPID_MGMT_QUEUE_LOCATION
        )
        is_outgoing = _is_elsewhere(location)
        self._computer_name, self._name, self._is_outgoing = computer, name, is_outgoing

    def _require_active(self, name: FormatName) -> None:
        if not self._machine.management.find(name).active:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_ACTIVE, str(name))

    def _named(self, path_name: str, format_name: str) -> FormatName:
        if path_name:
            return format_name_of_path(self._machine, path_name)
        return FormatName.parse(format_name)

    # Every queue

    def get_FormatName(self, call: ComCall) -> str:
        """[MC-MQAC] 3.3.4.1.2 FormatName (Opnum 8)."""
        return str(self._initialized(call))

    def get_Machine(self, call: ComCall) -> str:
        """[MC-MQAC] 3.3.4.1.3 Machine (Opnum 9)."""
        self._initialized(call)
        return self._computer_name or self._machine.queue_manager.computer_name

    async def get_MessageCount(self, call: ComCall) -> int:
        """[MC-MQAC] 3.3.4.1.4 MessageCount (Opnum 10)."""
        return await self._number(call, _P.PROPID_MGMT_QUEUE_MESSAGE_COUNT)

    async def get_ForeignStatus(self, call: ComCall) -> int:
        """[MC-MQAC] 3.3.4.1.5 ForeignStatus (Opnum 11)."""
        return await self._choice(call, _P.PROPID_MGMT_QUEUE_FOREIGN, FOREIGN_STATUS)

    async def get_QueueType(self, call: ComCall) -> int:
        """[MC-MQAC] 3.3.4.1.6 QueueType (Opnum 12)."""
        return await self._choice(call, _P.PROPID_MGMT_QUEUE_TYPE, QUEUE_TYPE)

    async def get_IsLocal(self, call: ComCall) -> bool:
        """[MC-MQAC] 3.3.4.1.7 IsLocal (Opnum 13)."""
        location = await self._property(call, _P.PROPID_MGMT_QUEUE_LOCATION)
        return not _is_elsewhere(location)

    async def get_TransactionalStatus(self, call: ComCall) -> int:
        """[MC-MQAC] 3.3.4.1.8 TransactionalStatus (Opnum 14)."""
        return await self._choice(call, _P.PROPID_MGMT_QUEUE_XACT, XACT_STATUS)

    async def get_BytesInQueue(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.3.4.1.9 BytesInQueue (Opnum 15)."""
        return await self._bytes(call, _P.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE)

    # Queues here

    async def get_JournalMessageCount(self, call: ComCall) -> int:
        """[MC-MQAC] 3.4.4.1.1 JournalMessageCount (Opnum 16)."""
        return await self._number(call, _P.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT)

    async def get_BytesInJournal(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.4.4.1.2 BytesInJournal (Opnum 17)."""
        return await self._bytes(call, _P.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL)

    async def EodGetReceiveInfo(self, call: ComCall) -> Variant:
        """One MSMQCollection for each sender; [MC-MQAC] 3.4.4.1.3 EodGetReceiveInfo (Opnum 18)."""
        rows = _rows(await self._property(call, _P.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO))
        infos: list[object] = [
            Variant(VARENUM.VT_DISPATCH, MSMQCollection(_source_info(row))) for row in rows
        ]
        return Variant(VARENUM.VT_ARRAY | VARENUM.VT_VARIANT, SafeArray(VARENUM.VT_VARIANT, infos))

    # Outgoing queues

    async def get_State(self, call: ComCall) -> int:
        """[MC-MQAC] 3.5.4.1.1 State (Opnum 16)."""
        return await self._choice(call, _P.PROPID_MGMT_QUEUE_STATE, QUEUE_STATE)

    async def get_NextHops(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.5.4.1.2 NextHops (Opnum 17)."""
        hops = told.texts(await self._property(call, _P.PROPID_MGMT_QUEUE_NEXTHOPS))
        return Variant(VARENUM.VT_ARRAY | VARENUM.VT_BSTR, SafeArray(VARENUM.VT_BSTR, hops))

    async def EodGetSendInfo(self, call: ComCall) -> MSMQCollection:
        """[MC-MQAC] 3.5.4.1.3 EodGetSendInfo (Opnum 18)."""
        elements = {
            name: _sequence(await self._property(call, identifier))
            for name, identifier in _SEQUENCES.items()
        }
        for name, (identifier, vt) in _NUMBERS.items():
            number = told.whole(await self._property(call, identifier), 32)
            elements[name] = Variant(vt, signed(number) if vt is VARENUM.VT_I4 else number)
        return MSMQCollection(elements)

    async def Resume(self, call: ComCall) -> None:
        """[MC-MQAC] 3.5.4.1.4 Resume (Opnum 19)."""
        await self._act(call, "RESUME")

    async def Pause(self, call: ComCall) -> None:
        """[MC-MQAC] 3.5.4.1.5 Pause (Opnum 20)."""
        await self._act(call, "PAUSE")

    async def EodResend(self, call: ComCall) -> None:
        """Resend the messages that wait for an order acknowledgement (G289).

        Source: [MC-MQAC] 3.5.4.1.6 EodResend (Opnum 21).
        """
        await self._act(call, "EOD_RESEND")

    # Questions and orders, [MC-MQAC] 3.3.6

    def _initialized(self, call: ComCall) -> FormatName:
        require_observer(call.identity)
        if self._name is None:
            raise MQError(HResult.MQ_ERROR_UNINITIALIZED_OBJECT)
        return self._name

    async def _property(self, call: ComCall, identifier: ManagementQueueProperty) -> Any:
        name = self._initialized(call)
        return await ask(self._machine, call.identity, self._computer_name, name, identifier)

    async def _number(self, call: ComCall, identifier: ManagementQueueProperty) -> int:
        return signed(told.whole(await self._property(call, identifier), 32))

    async def _bytes(self, call: ComCall, identifier: ManagementQueueProperty) -> Variant:
        return Variant(VARENUM.VT_UI8, told.whole(await self._property(call, identifier)))

    async def _choice(
        self, call: ComCall, identifier: ManagementQueueProperty, texts: tuple[str, ...]
    ) -> int:
        return texts.index(told.one_of(await self._property(call, identifier), texts))

    async def _act(self, call: ComCall, action: str) -> None:
        name = self._initialized(call)
        await order(self._machine, call, self._computer_name, name, action)


def _is_elsewhere(location: object) -> bool:
    remote = ManagementQueueLocation.MGMT_QUEUE_REMOTE_LOCATION
    return told.one_of(location, _LOCATIONS) == remote


def _text(argument: Variant | None) -> str:
    """A text; "" if it is not given, E_INVALIDARG for any other type."""
    given = plain(argument)
    if given is None:
        return ""
    if given.vt != VARENUM.VT_BSTR or not isinstance(given.value, str | bytes | None):
        raise MQError(HResult.E_INVALIDARG, f"VARIANT of type {given.vt}")
    return text(given.value)


def _rows(columns: object) -> list[tuple[object, ...]]:
    """The senders of a queue's messages; MQ_ERROR_INVALID_PARAMETER for any other table."""
    if columns is None:
        return []
    if not isinstance(columns, list | tuple) or len(columns) != len(_SOURCE_INFO):
        raise told.refuse(columns)
    values = [getattr(column, "value", None) for column in columns]
    lists = [each for each in values if isinstance(each, list | tuple)]
    if len(lists) < len(values) or len({len(each) for each in lists}) > 1:
        raise told.refuse(columns)
    rows = list(zip(*lists, strict=True))
    if not all(map(_is_source, rows)):
        raise told.refuse(columns)
    return rows


def _is_source(row: tuple[object, ...]) -> bool:
    name, sender, *numbers = row
    known = isinstance(name, str) and isinstance(sender, str | UUID)
    return known and all(type(each) is int for each in numbers)


def _source_info(row: tuple[object, ...]) -> dict[str, Variant]:
    return {
        name: Variant(vt, _element(vt, value))
        for (name, vt), value in zip(_SOURCE_INFO, row, strict=True)
    }


def _element(vt: VARENUM, value: object) -> object:
    if isinstance(value, UUID):
        return f"{{{value}}}".upper()
    return signed(value) if vt is VARENUM.VT_I4 and isinstance(value, int) else value


def _sequence(octets: bytes | None) -> Variant:
    """A SequenceInfoCollection ([MC-MQAC] 2.2.4.3); VT_NULL where the property has no value."""
    if octets is None:
        return Variant(VARENUM.VT_NULL)
    try:
        info = SequenceInfo.decode(octets)
    except (DecodeError, TypeError, ValueError):
        raise told.refuse(octets) from None
    elements = {
        "SeqID": Variant(VARENUM.VT_UI8, info.seq_id & 0xFFFF_FFFF_FFFF_FFFF),
        "SeqNo": Variant(VARENUM.VT_I4, signed(info.seq_no)),
        "PrevNo": Variant(VARENUM.VT_I4, signed(info.prev_no)),
    }
    return Variant(VARENUM.VT_DISPATCH, MSMQCollection(elements))
