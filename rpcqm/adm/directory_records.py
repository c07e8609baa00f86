"""How attributes of directory objects are kept: JSON in which every value tells its type."""

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any
from uuid import UUID

from rpcqm.adm.enums import (
    DirectoryServerType,
    OperatingSystemType,
    QueuePrivacyLevel,
    QueueScope,
    QueueType,
)
from rpcqm.base.errors import DecodeError

_ENUMS: dict[str, type[Enum]] = {
    kind.__name__: kind
    for kind in (DirectoryServerType, OperatingSystemType, QueuePrivacyLevel, QueueScope, QueueType)
}


def encode_attributes(values: Mapping[str, Any]) -> bytes:
    """A record of attributes by name."""
    return json.dumps({name: _plain(value) for name, value in values.items()}).encode()


def decode_attributes(record: bytes) -> dict[str, Any]:
    """The attributes of a record; DecodeError when it is damaged."""
    try:
        return {name: _value(plain) for name, plain in json.loads(record).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DecodeError(f"damaged record of a directory object: {error!r}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, UUID):
        return {"guid": str(value)}
    if isinstance(value, Enum):
        return {type(value).__name__: value.value}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


_READERS: dict[str, Callable[[Any], Any]] = {"bytes": bytes.fromhex, "guid": UUID, **_ENUMS}


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if isinstance(plain, dict):
        ((kind, value),) = plain.items()
        return _READERS[kind](value)
    return plain
