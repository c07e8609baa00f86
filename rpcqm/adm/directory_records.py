"""Records of directory attributes: JSON in which every value names its type."""

import json
from collections.abc import Callable, Mapping
from enum import Enum
from uuid import UUID

from rpcqm.adm.enums import DirectoryServerType, OperatingSystemType, QueueScope, QueueType
from rpcqm.base.errors import DecodeError
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel

_ENUMS: dict[str, type[Enum]] = {
    kind.__name__: kind
    for kind in (DirectoryServerType, OperatingSystemType, QueuePrivacyLevel, QueueScope, QueueType)
}


def encode_attributes(values: Mapping[str, object]) -> bytes:
    """A record of attributes by name."""
    return json.dumps({name: _plain(value) for name, value in values.items()}).encode()


def decode_attributes(record: bytes) -> dict[str, object]:
    """The attributes of a record; DecodeError when it is damaged."""
    try:
        return {name: _value(plain) for name, plain in json.loads(record).items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DecodeError(f"damaged record of a directory object: {error!r}") from error


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, UUID):
        return {"guid": str(value)}
    if isinstance(value, Enum):
        return {type(value).__name__: value.value}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


_READERS: dict[str, Callable[..., object]] = {"bytes": bytes.fromhex, "guid": UUID, **_ENUMS}


def _value(plain: object) -> object:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if isinstance(plain, dict):
        ((kind, value),) = plain.items()
        return _READERS[kind](value)
    return plain
