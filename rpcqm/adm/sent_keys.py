"""Records of idempotency keys: the messages that were sent under a key (G353).

They are records of the family STREAM, under keys that begin with `SENT_KEY_PREFIX`.
"""

import struct
from typing import NamedTuple
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.types import MessageIdentifier

SENT_KEY_PREFIX = b"program key:"
SENT_KEY_SIZE = len(SENT_KEY_PREFIX) + 32
"""A digest follows the prefix: of the account, of what the request is about, and of its key."""

_HEAD = struct.Struct("<BQ32sHH")
"""version, time, digest of the request, octets of the owner's SID, number of identifiers"""
_IDENTIFIER = struct.Struct("<16sI")
_VERSION = 1


class SentKey(NamedTuple):
    """The outcome under a key: `time` is milliseconds since 1970, `owner` an account's SID.

    `digest` is that of the request, so that another request under the same key is noticed.
    """

    time: int
    owner: str
    digest: bytes
    identifiers: tuple[MessageIdentifier, ...]

    def encode(self) -> bytes:
        """The value of the record."""
        owner = self.owner.encode()
        count = len(self.identifiers)
        head = _HEAD.pack(_VERSION, self.time, self.digest, len(owner), count)
        each = [
            _IDENTIFIER.pack(one.queue_manager_guid.bytes_le, one.ordinal)
            for one in self.identifiers
        ]
        return head + owner + b"".join(each)

    @classmethod
    def decode(cls, value: bytes) -> "SentKey":
        """Read a record; raises DecodeError if it is damaged, or of a later version."""
        try:
            version, time, digest, length, count = _HEAD.unpack_from(value)
            owner = value[_HEAD.size : _HEAD.size + length].decode()
        except (struct.error, UnicodeDecodeError) as error:
            raise DecodeError(f"damaged record of a key: {error!r}") from error
        at = _HEAD.size + length
        if version != _VERSION or len(value) != at + count * _IDENTIFIER.size:
            raise DecodeError(f"a record of a key of version {version}, or of a wrong length", at)
        identifiers = tuple(
            MessageIdentifier(UUID(bytes_le=machine), ordinal)
            for machine, ordinal in _IDENTIFIER.iter_unpack(value[at:])
        )
        return cls(time, owner, digest, identifiers)
