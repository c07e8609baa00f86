"""MSMQQuery and MSMQQueueInfos: queries for public queues ([MC-MQAC] 3.13, 3.14)."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Self
from uuid import UUID

from rpcqm.adm.directory import AttributeFilter, FilterOperator, equals
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqacvalues import RELOPS
from rpcqm.dcom.automation import Automation
from rpcqm.dcom.com_object import ComCall
from rpcqm.mqac._message_properties import not_implemented
from rpcqm.mqac.arguments import integer, plain
from rpcqm.mqac.dates import seconds_of
from rpcqm.mqac.guids import guid_of
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.owned import LONGEST_GUID, LONGEST_MULTICAST_ADDRESS, Owned, bounded
from rpcqm.mqac.public_queues import PUBLIC, completed_queue
from rpcqm.mqac.queue_info import MSMQQueueInfo
from rpcqm.qm.properties import MAXIMUM_LABEL

Argument = Variant | None

_OF_A_QUEUE = 112
"""Octets that the identifier of a queue takes in a list."""

_OPERATORS = {
    RELOPS.REL_EQ: FilterOperator.EQUALS,
    RELOPS.REL_NEQ: FilterOperator.NOT_EQUALS,
    RELOPS.REL_LT: FilterOperator.LESS_THAN,
    RELOPS.REL_GT: FilterOperator.GREATER_THAN,
    RELOPS.REL_LE: FilterOperator.LESS_THAN_OR_EQUAL,
    RELOPS.REL_GE: FilterOperator.GREATER_THAN_OR_EQUAL,
}


class MSMQQuery(Automation):
    """Makes queries; it has no state of its own."""

    INTERFACES = ("IMSMQQuery4", "IMSMQQuery3", "IMSMQQuery2", "IMSMQQuery")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    get_Properties = not_implemented

    def LookupQueue_v2(
        self,
        call: ComCall,
        QueueGuid: Argument,
        ServiceTypeGuid: Argument,
        Label: Argument,
        CreateTime: Argument,
        ModifyTime: Argument,
        RelServiceType: Argument,
        RelLabel: Argument,
        RelCreateTime: Argument,
        RelModifyTime: Argument,
    ) -> "MSMQQueueInfos":
        """[MC-MQAC] 3.13.4.1.1 LookupQueue_v2 (Opnum 7)."""
        filters = _filters(
            (QueueGuid, ServiceTypeGuid, Label, CreateTime, ModifyTime),
            (None, RelServiceType, RelLabel, RelCreateTime, RelModifyTime),
        )
        return MSMQQueueInfos.of_filters(self._machine, call, filters)

    def LookupQueue(
        self,
        call: ComCall,
        QueueGuid: Argument,
        ServiceTypeGuid: Argument,
        Label: Argument,
        CreateTime: Argument,
        ModifyTime: Argument,
        RelServiceType: Argument,
        RelLabel: Argument,
        RelCreateTime: Argument,
        RelModifyTime: Argument,
        MulticastAddress: Argument,
        RelMulticastAddress: Argument,
    ) -> "MSMQQueueInfos":
        """As LookupQueue_v2, and by multicast address; "" finds queues without one (G279).

        Source: [MC-MQAC] 3.13.4.1.3 LookupQueue (Opnum 9).
        """
        filters = _filters(
            (QueueGuid, ServiceTypeGuid, Label, CreateTime, ModifyTime, MulticastAddress),
            (None, RelServiceType, RelLabel, RelCreateTime, RelModifyTime, RelMulticastAddress),
        )
        return MSMQQueueInfos.of_filters(self._machine, call, filters)


def _filters(values: Sequence[Argument], relations: Sequence[Argument]) -> list[AttributeFilter]:
    """The requested filters, in the order of the parameters."""
    filters = []
    for (attribute, read), value, relation in zip(_ATTRIBUTES, values, relations, strict=False):
        filters += _filter(attribute, value, relation, read)
    return filters


def _filter(
    attribute: str,
    argument: Argument,
    relation: Argument,
    read: Callable[[Variant], object],
) -> list[AttributeFilter]:
    """The filter for an attribute, if the client asks for one."""
    given = plain(argument)
    if given is None:
        return []
    number = integer(relation, RELOPS.REL_EQ)
    if number == RELOPS.REL_NOP:
        return []
    if number not in tuple(RELOPS):
        raise MQError(HResult.E_INVALIDARG, f"RELOPS {number}")
    return [AttributeFilter(attribute, _OPERATORS[RELOPS(number)], read(given))]


def _guid(given: Variant) -> UUID:
    identifier = guid_of(_text(given))
    if identifier is None:
        raise MQError(HResult.E_INVALIDARG, "no GUID")
    return identifier


def _text(given: Variant, most: int = LONGEST_GUID) -> str:
    if not isinstance(given.value, str | None):
        raise MQError(HResult.E_INVALIDARG, f"VARIANT of type {given.vt}")
    return bounded(given.value, most, HResult.E_INVALIDARG)


def _label(given: Variant) -> str:
    return _text(given, MAXIMUM_LABEL)


def _address(given: Variant) -> str | None:
    return _text(given, LONGEST_MULTICAST_ADDRESS) or None


def _time(given: Variant) -> int:
    if not isinstance(given.value, int | float) or not isfinite(given.value):
        raise MQError(HResult.E_INVALIDARG, f"VARIANT of type {given.vt}")
    return seconds_of(float(given.value))


_ATTRIBUTES: tuple[tuple[str, Callable[[Variant], object]], ...] = (
    ("identifier", _guid),
    ("type", _guid),
    ("label", _label),
    ("create_time", _time),
    ("modify_time", _time),
    ("multicast_address", _address),
)


class MSMQQueueInfos(Owned):
    """The public queues that a query finds; without `filters` a client's own, unusable one."""

    INTERFACES = ("IMSMQQueueInfos4", "IMSMQQueueInfos3", "IMSMQQueueInfos2", "IMSMQQueueInfos")

    def __init__(self, machine: Machine, filters: list[AttributeFilter] | None = None) -> None:
        self._machine = machine
        self._filters = filters
        self._cursor = 0
        self._found: list[UUID] = []

    @classmethod
    def of_filters(cls, machine: Machine, call: ComCall, filters: list[AttributeFilter]) -> Self:
        """The present result of a query."""
        made = cls(machine, filters)
        made._find(call, filters)
        return made

    def _find(self, call: ComCall, filters: list[AttributeFilter]) -> None:
        found = self._query(filters)
        self.keep(call, "found", _OF_A_QUEUE * len(found))
        self._found, self._cursor = found, 0

    get_Properties = not_implemented

    def Reset(self, call: ComCall) -> None:
        """Begin again, with the present contents of the directory.

        Source: [MC-MQAC] 3.14.4.1.1 Reset (Opnum 7).
        """
        self._find(call, self._initialized())

    def Next(self, call: ComCall) -> MSMQQueueInfo | None:
        """The next queue, NULL behind the last one; [MC-MQAC] 3.14.4.1.2 Next (Opnum 8)."""
        filters = self._initialized()
        while self._cursor < len(self._found):
            identifier = self._found[self._cursor]
            self._cursor += 1
            if self._is_there(filters, identifier):
                name = FormatName(PUBLIC, identifier)
                return MSMQQueueInfo.of_names(self._machine, call, (name,))
        return None

    def _initialized(self) -> list[AttributeFilter]:
        if self._filters is None:
            raise MQError(HResult.MQ_ERROR_UNINITIALIZED_OBJECT)
        return self._filters

    def _query(self, filters: list[AttributeFilter]) -> list[UUID]:
        """The identifiers of the queues found ([MS-MQDMPR] 3.1.7.1.21 to .23)."""
        directory = self._machine.directory
        found: list[UUID] = []
        attributes = ["identifier", *(each.attribute for each in filters)]
        status, handle = directory.read_directory_begin(Queue, (), attributes)
        if status is not DirectoryOperationResult.SUCCESS:
            raise MQError(HResult.MQ_ERROR_NO_DS)
        while True:
            queue = directory.read_directory_next(handle)[1]
            if not isinstance(queue, Queue):
                break
            if self._satisfies(queue, filters):
                found.append(queue.identifier)
        directory.read_directory_end(handle)
        return found

    def _is_there(self, filters: list[AttributeFilter], identifier: UUID) -> bool:
        """Whether the query still finds a queue: the directory may have changed meanwhile."""
        queue = self._machine.directory.read_directory(Queue, [equals("identifier", identifier)])[1]
        return queue is not None and self._satisfies(queue, filters)

    def _satisfies(self, queue: Queue, filters: list[AttributeFilter]) -> bool:
        """Whether a queue satisfies the filters; its own times may be here only (G291)."""
        queue = completed_queue(self._machine, queue)
        return all(each.matches(queue) for each in filters)
