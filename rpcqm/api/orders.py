"""Orders for messages of a queue: to move, copy or send them again, in groups."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field

from rpcqm.api import models, parameters
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.problems import bad_request
from rpcqm.api.searching import conditions_of, lookup_id_of
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import HERE, format_name
from rpcqm.operations.message_orders import Order
from rpcqm.operations.sent_again import FOR_EVER

_LookupIds = Annotated[list[models.LookupId], Field(min_length=1, max_length=1000)]
_Queue = Annotated[str, Field(max_length=512)]
_Time = models.Seconds | Literal["forever"]
assert FOR_EVER == "forever"


@dataclass(frozen=True)
class Choice(models.Strict):
    """Which messages are meant: those of `lookup_ids`, `all`, or those that a `filter` finds.

    Those that somebody holds stay. `after` and `until` are those of the answer to the same request
    before, which says that there are `more`.
    """

    lookup_ids: _LookupIds | None = None
    all: bool = False
    filter: parameters.Conditions | None = None
    after: models.LookupId | None = None
    until: models.LookupId | None = None


@dataclass(frozen=True, kw_only=True)
class Move(Choice):
    """Where messages go; without a word of which all that are there now."""

    to: models.Name


@dataclass(frozen=True, kw_only=True)
class Copy(Choice):
    """Where copies of messages go."""

    to: models.Name


@dataclass(frozen=True)
class Changes(models.Strict):
    """What messages have otherwise when they are sent again; members that are missing stay.

    An empty text takes the name of a queue or the correlation identifier away. `transactional`
    counts for queues elsewhere: one here says itself what it takes.
    """

    label: Annotated[str, Field(max_length=249)] | None = None
    body_base64: models.Base64 | None = None
    body_type: models.Number | None = None
    priority: Annotated[int, Field(ge=0, le=7)] | None = None
    ttbr: _Time | None = None
    ttrq: _Time | None = None
    correlation_id: Annotated[str, Field(max_length=64)] | None = None
    response_queue: _Queue | None = None
    admin_queue: _Queue | None = None
    acknowledgements: Annotated[list[models.Acknowledgement], Field(max_length=4)] | None = None
    application_tag: models.Number | None = None
    extension_base64: models.Base64 | None = None
    recoverable: bool | None = None
    journal: bool | None = None
    dead_letter: bool | None = None
    encrypt: bool | None = None
    transactional: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Resend(Choice):
    """Messages are sent again, `to` another queue or where each was for, with changes.

    They leave their queue in the same commit, unless `keep` says otherwise.
    """

    to: models.Name | None = None
    keep: bool = False
    changes: Changes | None = None


@dataclass(frozen=True)
class Outcome:
    """What has become of an order: how many `messages` it was done to.

    `order` is null for a move between a queue and its subqueues, which is done whole.
    `gone` are those that were not there any more, `staying` tells why others stay, `unread` how
    many say more than was read to choose among them. Until it has `ended`, `left` messages are to
    come: `POST /orders/{order}` with its `step` goes on. `more` were there than an order may have.
    """

    order: str | None
    step: int
    chosen: int
    messages: int
    gone: int
    staying: list[models.StayingLetters]
    unread: int
    left: int
    ended: bool
    more: bool
    after: str | None
    until: str | None


@dataclass(frozen=True)
class Step(models.Strict):
    """The group with which an order goes on: `step` of the answer before."""

    step: models.Number


async def move_messages(asked: Asked) -> Reply:
    """Move messages to a subqueue as they are, or send them to another queue in their place."""
    wanted: Move = asked.content
    if wanted.lookup_ids is not None and wanted.all:
        raise bad_request("one of lookup_ids, all and filter is wanted")
    to = format_name(wanted.to, HERE)
    stays = asked.operations.message_orders.moves_as_it_is(asked.queue, to)
    if stays and wanted.filter is None:
        return await _moved(asked, wanted, to)
    some = wanted.lookup_ids is not None or wanted.filter is not None
    return await _begun(asked, "move", wanted, {} if some else {"all": True})


async def _moved(asked: Asked, wanted: Move, to: FormatName) -> Reply:
    """Move messages as they are; what was moved before a refusal stays moved."""
    keys = None if wanted.lookup_ids is None else [lookup_id_of(each) for each in wanted.lookup_ids]
    moved = await settled(asked.operations.messages.move(asked.identity, asked.queue, to, keys))
    told: dict[str, object] = {"order": None, "step": 1, "chosen": moved, "messages": moved}
    told |= {"gone": 0, "staying": [], "unread": 0, "left": 0, "ended": True}
    told |= {"more": False, "after": None, "until": None}
    return Reply(200, told)


async def copy_messages(asked: Asked) -> Reply:
    """Send copies of messages to another queue; they stay."""
    return await _begun(asked, "copy", asked.content, {})


async def resend_messages(asked: Asked) -> Reply:
    """Send messages again, to where they were for or elsewhere, as they are or changed."""
    wanted: Resend = asked.content
    edits = {} if wanted.changes is None else _given(wanted.changes)
    return await _begun(asked, "resend", wanted, {"keep": wanted.keep, "edits": edits})


async def go_on_with_order(asked: Asked) -> Reply:
    """Carry out the next group of an order; a finished group is not repeated."""
    wanted: Step = asked.content
    orders, identifier = asked.operations.message_orders, asked.path["order"]
    return _reply(await settled(orders.go_on(asked.identity, identifier, wanted.step)))


async def stop_order(asked: Asked) -> Reply:
    """Leave the messages that an order has not reached where they are."""
    orders = asked.operations.message_orders
    return _reply(orders.stop(asked.identity, asked.path["order"]))


async def _begun(
    asked: Asked, doing: str, wanted: Move | Copy | Resend, more: Mapping[str, object]
) -> Reply:
    """The first group of an order."""
    request: dict[str, object] = {
        "doing": doing,
        "lookup_ids": wanted.lookup_ids,
        "all": wanted.all,
        "filter": None if wanted.filter is None else conditions_of(wanted.filter),
        "after": wanted.after,
        "until": wanted.until,
        **more,
    }
    to = None if wanted.to is None else format_name(wanted.to, HERE)
    begun = asked.operations.order_requests.begin(asked.identity, asked.queue, to, request)
    return _reply(await settled(begun))


def _given(changes: Changes) -> dict[str, object]:
    return {name: value for name, value in asdict(changes).items() if value is not None}


def _reply(order: Order) -> Reply:
    return Reply(200, order.told())
