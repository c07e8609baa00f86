"""Records of queues and of the queue manager: versioned JSON with the element's names."""

import json
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any
from uuid import UUID

from rpcqm.adm.enums import OutgoingQueueState, QueueScope, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import DecodeError
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel

VERSION = 1

QUEUE_ATTRIBUTES = (
    "identifier",
    "label",
    "create_time",
    "modify_time",
    "type",
    "pathname",
    "qualified_pathname",
    "private_queue_number",
    "journaling",
    "quota",
    "journal_quota",
    "authentication",
    "privacy_level",
    "transactional",
    "multicast_address",
    "security",
    "base_priority",
    "full_path",
    "directory_path",
    "scope",
    "queue_type",
)
OUTGOING_QUEUE_ATTRIBUTES = (
    "identifier",
    "label",
    "destination_format_name",
    "multicast",
    "base_priority",
    "state",
)
QUEUE_MANAGER_ATTRIBUTES = (
    "identifier",
    "create_time",
    "modify_time",
    "security",
    "directory_server_list",
    "directory_integrated",
    "srmp_http_support",
    "hardened_security",
)
"""Persistent attributes ([MS-MQDMPR] 3.1.1.1 to .3); SequentialID is a counter of the store.

Records of earlier versions have more attributes, which are not read.
"""

_BYTES = frozenset({"security"})
_ENUMS: dict[str, type[Enum]] = {
    "privacy_level": QueuePrivacyLevel,
    "scope": QueueScope,
    "queue_type": QueueType,
    "state": OutgoingQueueState,
}
_GUIDS = frozenset({"identifier", "type"})
_LEAST, _MOST = -(1 << 31), 1 << 32
"""Numbers of attributes are 32 bits, with a sign or without."""


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """A stored queue, and the queue ids of its journal and main queue (0: no such queue)."""

    queue: Queue
    journal_id: int = 0
    parent_id: int = 0
    subqueue_name: str = ""


def encode_queue(queue: Queue) -> bytes:
    """The record of a queue, a subqueue or an outgoing queue; a journal is in its queue's."""
    outgoing = isinstance(queue, OutgoingQueue)
    attributes = OUTGOING_QUEUE_ATTRIBUTES if outgoing else QUEUE_ATTRIBUTES
    record = _attributes(queue, attributes)
    record["kind"] = "outgoing" if outgoing else "queue"
    if queue.journal_queue_reference is not None:
        record["journal_id"] = queue.journal_queue_reference.queue_id
    if isinstance(queue, OutgoingQueue) and queue.origin:
        record["origin"] = queue.origin
    if queue.max_deliveries:
        record["max_deliveries"] = queue.max_deliveries
        record["poison_subqueue"] = queue.poison_subqueue
    for name in ("journal_max_age", "journal_max_messages"):
        if bound := getattr(queue, name):
            record[name] = bound
    if queue.former_names:
        record["former_names"] = list(queue.former_names)
    if queue.parent is not None:
        record["parent_id"] = queue.parent.queue_id
        record["subqueue_name"] = queue.subqueue_name
    return _dump(record)


def decode_queue(queue_id: int, data: bytes) -> QueueRecord:
    """Read a record; raises DecodeError when it is damaged or of a later version."""
    record = _load(data)
    try:
        outgoing = record["kind"] == "outgoing"
        queue = OutgoingQueue() if outgoing else Queue()
        attributes = OUTGOING_QUEUE_ATTRIBUTES if outgoing else QUEUE_ATTRIBUTES
        _restore(queue, attributes, record)
        queue.queue_id = queue_id
        if isinstance(queue, OutgoingQueue):
            queue.origin = str(record.get("origin", ""))
        queue.max_deliveries = _number(record, "max_deliveries")
        queue.poison_subqueue = str(record.get("poison_subqueue", queue.poison_subqueue))
        queue.journal_max_age = _number(record, "journal_max_age")
        queue.journal_max_messages = _number(record, "journal_max_messages")
        queue.former_names = tuple(map(str, record.get("former_names", ())))
        return QueueRecord(
            queue,
            _number(record, "journal_id"),
            _number(record, "parent_id"),
            str(record.get("subqueue_name", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DecodeError(f"damaged record of the queue {queue_id}: {error!r}") from error


def _number(record: dict[str, Any], name: str) -> int:
    """A number of a record that may lack it; raises TypeError, ValueError."""
    number: int = _checked(name, record.get(name, 0), int)
    return number


def encode_queue_manager(queue_manager: QueueManager) -> bytes:
    """The record of the queue manager itself."""
    return _dump(_attributes(queue_manager, QUEUE_MANAGER_ATTRIBUTES))


def decode_queue_manager(data: bytes, queue_manager: QueueManager) -> None:
    """Restore the persistent attributes; raises DecodeError as `decode_queue` does."""
    record = _load(data)
    try:
        _restore(queue_manager, QUEUE_MANAGER_ATTRIBUTES, record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DecodeError(f"damaged record of the queue manager: {error!r}") from error


def _dump(record: dict[str, object]) -> bytes:
    record["version"] = VERSION
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def _load(data: bytes) -> dict[str, Any]:
    try:
        record = json.loads(data.decode("utf-8", "surrogatepass"))
        version = record["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DecodeError(f"damaged record: {error!r}") from error
    if version != VERSION:
        raise DecodeError(f"a record of version {version}, which is not known here")
    return dict(record)


def _attributes(element: Queue | QueueManager, names: tuple[str, ...]) -> dict[str, object]:
    return {name: _plain(getattr(element, name)) for name in names}


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, UUID):
        return str(value)
    return value.value if isinstance(value, Enum) else value


def _restore(element: Queue | QueueManager, names: tuple[str, ...], record: dict[str, Any]) -> None:
    kinds = {field.name: field.type for field in fields(element)}
    for name in names:
        value = record[name]
        if name in _BYTES:
            value = bytes.fromhex(value)
        elif name in _GUIDS and value is not None:
            value = UUID(value)
        elif name in _ENUMS:
            value = _ENUMS[name](value)
        elif kinds[name] in (int, bool, str):
            value = _checked(name, value, kinds[name])
        setattr(element, name, value)


def _checked(name: str, value: Any, kind: Any) -> Any:
    """A value of a kind; raises TypeError, or ValueError for a number that is too large."""
    if type(value) is not kind:
        raise TypeError(f"{name} is {value!r}")
    if kind is int and not _LEAST <= value < _MOST:
        raise ValueError(f"{name} is {value}")
    return value
