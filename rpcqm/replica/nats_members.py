"""What members of a cluster tell each other by NATS: the last words of each, in a key-value bucket.

Nothing rests on them but how far the log is trimmed: who finds a record trimmed joins anew.
"""

from nats.js import JetStreamContext
from nats.js.api import KeyValueConfig, StorageType
from nats.js.errors import BucketNotFoundError, KeyNotFoundError, NoKeysError
from nats.js.kv import KeyValue

MAXIMUM_REPORT = 4096
"""Octets of what one member tells."""
MAXIMUM_BYTES = 1 << 20
"""Of the bucket."""


class NatsMembers:
    """One bucket, which is made when somebody tells something first."""

    def __init__(self, context: JetStreamContext, bucket: str, replicas: int) -> None:
        self._context = context
        self._bucket = bucket
        self._replicas = replicas

    async def report(self, member: str, report: bytes) -> None:
        """Keep what a member tells; raises what the client library does."""
        bucket = await self._opened()
        if report:
            await bucket.put(member, report)
        else:
            await bucket.purge(member)

    async def reports(self) -> dict[str, bytes]:
        """What each has told last; raises what the client library does."""
        bucket = await self._opened()
        told = {}
        try:
            names = await bucket.keys()
        except NoKeysError:
            return {}
        for name in names:
            try:
                told[name] = (await bucket.get(name)).value or b""
            except KeyNotFoundError:  # it was removed meanwhile
                continue
        return told

    async def _opened(self) -> KeyValue:
        try:
            return await self._context.key_value(self._bucket)
        except BucketNotFoundError:
            return await self._context.create_key_value(
                KeyValueConfig(
                    self._bucket,
                    max_value_size=MAXIMUM_REPORT,
                    history=1,
                    max_bytes=MAXIMUM_BYTES,
                    storage=StorageType.FILE,
                    replicas=self._replicas,
                )
            )
