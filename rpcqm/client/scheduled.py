"""Messages that a queue manager holds back until their time: its administration interface."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rpcqm.client.connection import Connections, require_value
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types import rpcqm_admin


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message that is held back; moments are texts of ISO 8601.

    `trouble` is why it could not be sent at its time; it is tried again.
    """

    id: str
    not_before: str
    made: str
    account: str
    queue: str
    label: str
    body_size: int
    trouble: str
    queue_name: str = ""


class ScheduledClient:
    """Messages that wait for their time at the queue manager of this machine."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def schedule(
        self,
        names: Sequence[FormatName],
        body: bytes,
        members: Mapping[str, object],
        not_before: int,
    ) -> str:
        """Hold a message back until `not_before` (milliseconds since 1970); returns its identifier.

        `members` are those of a message to be sent in `/api/v1`.
        """
        request = rpcqm_admin.R_ScheduleMessageRequest(
            pwszQueues=",".join(map(str, names)),
            pwszMessage=json.dumps(dict(members)),
            cbBody=len(body),
            pBody=body,
            NotBefore=not_before,
        )
        return require_value((await self._connections.call(request)).ppwszIdentifier)

    async def list(self) -> tuple[HeldMessage, ...]:
        """Those of the caller, or of all for administrators, the next one first."""
        response = await self._connections.call(rpcqm_admin.R_ListScheduledMessagesRequest())
        told = json.loads(require_value(response.ppwszMessages))
        return tuple(HeldMessage(**each) for each in told)

    async def cancel(self, identifier: str) -> None:
        """Never send one of them."""
        request = rpcqm_admin.R_CancelScheduledMessageRequest(pwszIdentifier=identifier)
        await self._connections.call(request)
