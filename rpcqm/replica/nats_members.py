"""Members' reports in NATS: the last one of each, in a key-value bucket.

Only trimming depends on them: a node that needs a trimmed record joins anew.
"""

from nats.js import JetStreamContext
from nats.js.api import KeyValueConfig, StorageType
from nats.js.errors import BucketNotFoundError, KeyNotFoundError, NoKeysError
from nats.js.kv import KeyValue

MAXIMUM_REPORT = 4096
"""Octets of one member's report."""
MAXIMUM_BYTES = 1 << 20
"""Octets of the bucket."""


class NatsMembers:
    """One bucket, created with the first report."""

    def __init__(self, context: JetStreamContext, bucket: str, replicas: int) -> None:
        self._context = context
        self._bucket = bucket
        self._replicas = replicas

    async def report(self, member: str, report: bytes) -> None:
        """Store a member's report; raises the client library's errors."""
        bucket = await self._opened()
        if report:
            await bucket.put(member, report)
        else:
            await bucket.purge(member)

    async def reports(self) -> dict[str, bytes]:
        """The last report of each member; raises the client library's errors."""
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
