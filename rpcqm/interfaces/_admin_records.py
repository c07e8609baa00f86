"""Converts results of operations into records of rpcqm_admin."""

from rpcqm.codec.types.mqmq import CALPWSTR
from rpcqm.codec.types.rpcqm_admin import (
    ACCOUNT,
    PLACE,
    PUBLIC_QUEUE,
    QUEUE_STATUS,
    TOKEN,
    TRAIL_EVENT,
)
from rpcqm.operations.accounts import AccountView
from rpcqm.operations.queues import DirectoryPublicQueue
from rpcqm.operations.tokens import TokenView
from rpcqm.qm.message_lookup import MessageLocation
from rpcqm.qm.queue_status import QueueStatus
from rpcqm.qm.trail import TrailEvent


def token_record(token: TokenView) -> TOKEN:
    """A `TokenView` as TOKEN."""
    queues: list[str | None] = list(token.queues or ())
    return TOKEN(
        pwszName=token.name,
        pwszAccount=token.account,
        Rights=sum(right.bit for right in token.rights),
        fAllQueues=token.queues is None,
        Queues=CALPWSTR(cElems=len(queues), pElems=queues),
        Created=token.created,
        Expires=token.expires,
    )


def place_record(place: MessageLocation) -> PLACE:
    """A `MessageLocation` as PLACE."""
    return PLACE(
        LookupId=place.lookup_identifier,
        Arrived=place.arrived,
        State=place.whereabouts,
        pwszQueue=place.queue,
        pwszLabel=place.label,
    )


def public_queue_record(queue: DirectoryPublicQueue) -> PUBLIC_QUEUE:
    """A `DirectoryPublicQueue` as PUBLIC_QUEUE."""
    return PUBLIC_QUEUE(
        pwszPathName=queue.path_name,
        pwszFormatName=queue.format_name,
        pwszLabel=queue.label,
        fHere=queue.here,
        fFixed=queue.fixed,
    )


def event_record(event: TrailEvent) -> TRAIL_EVENT:
    """A `TrailEvent` as TRAIL_EVENT."""
    return TRAIL_EVENT(
        Time=event.time,
        LookupId=event.lookup_identifier,
        Happening=event.happening,
        pwszQueue=event.queue,
        pwszDetail=event.detail,
    )


def account_record(account: AccountView) -> ACCOUNT:
    """An `AccountView` as ACCOUNT."""
    groups: list[str | None] = list(account.groups)
    return ACCOUNT(
        pwszName=account.name,
        pwszSid=account.sid,
        Groups=CALPWSTR(cElems=len(groups), pElems=groups),
    )


def status_record(status: QueueStatus) -> QUEUE_STATUS:
    """A `QueueStatus` as QUEUE_STATUS."""
    return QUEUE_STATUS(
        pwszName=status.name,
        Messages=status.messages,
        Bytes=status.bytes,
        Entered=status.entered,
        Left=status.left,
        Oldest=status.oldest,
        OpenHandles=status.open_handles,
        WaitingReaders=status.waiting_readers,
        fOpenToAll=status.open_to_all,
    )
