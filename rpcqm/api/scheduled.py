"""Messages that the queue manager holds back until their time."""

import datetime
from dataclasses import dataclass

from rpcqm.api import models
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.messages import decoded, draft_of
from rpcqm.api.problems import bad_request
from rpcqm.operations.scheduling import described


@dataclass(frozen=True)
class ScheduledDraft(models.MessageDraft):
    """A message to be sent at a time: a moment of ISO 8601 with a zone, like 2026-12-24T18:00Z."""

    not_before: str = ""


@dataclass(frozen=True)
class ScheduledId:
    """The identifier of what is held back; the message gets its own when it is sent."""

    id: str


@dataclass(frozen=True)
class ScheduledMessage:
    """A message that is held back; `trouble` is why it could not be sent at its time.

    `queue` is a format name, as the queue is called now; `queue_name` is what people call it.
    """

    id: str
    not_before: str | None
    made: str | None
    account: str
    queue: str
    queue_name: str
    label: str
    body_size: int
    trouble: str


@dataclass(frozen=True)
class ScheduledMessages:
    """Those of the caller, of all for administrators, the next one first."""

    scheduled: list[ScheduledMessage]


async def schedule_message(asked: Asked) -> Reply:
    """Hold a message back until its time; the right to send it is checked now, and then."""
    wanted: ScheduledDraft = asked.content
    draft = draft_of(asked, wanted, decoded(wanted.body_base64))
    held = asked.operations.scheduling.schedule(
        asked.identity, asked.destinations, draft, _moment(wanted.not_before)
    )
    return Reply(201, {"id": await settled(held)})


def _moment(text: str) -> int:
    try:
        at = datetime.datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError
        return int(at.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise bad_request("not_before: a moment with a zone, like 2026-12-24T18:00Z") from None


async def list_scheduled_messages(asked: Asked) -> Reply:
    """The messages that are held back."""
    held = asked.operations.scheduling.list(asked.identity)
    return Reply(200, {"scheduled": [described(each) for each in held]})


async def cancel_scheduled_message(asked: Asked) -> Reply:
    """Cancel one of them."""
    await settled(asked.operations.scheduling.cancel(asked.identity, asked.path["id"]))
    return Reply(204)
