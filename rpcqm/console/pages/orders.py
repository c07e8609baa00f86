"""Messages that are chosen over pages, and what is done to them after a page that asks.

The choice is kept by the queue manager, so that it outlives a look at another page; what a page
asks about is a copy of it, which is done once, and in parts between which somebody may stop.
"""

from collections.abc import Sequence
from functools import partial

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.metrics import stopwatch
from rpcqm.base.settling import settled
from rpcqm.codec.filters.written import CONDITIONS
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import (
    DEAD_LETTER_QUEUES,
    HERE,
    format_name,
    short_name,
    subqueue_name,
)
from rpcqm.console.asked import REFUSALS, Asked, Fields, Page, Redirect, Shown, whole_number
from rpcqm.console.fields import Field, field
from rpcqm.console.forms import link
from rpcqm.console.naming import Named, look, queue_in
from rpcqm.console.pages.asking import sure
from rpcqm.console.texts import text
from rpcqm.operations.message_orders import Doing, Order, Wanted
from rpcqm.operations.messages import Message
from rpcqm.operations.sent_again import UNCHANGED, edits_of

SHOWN = 20
"""Messages that are named on the page that asks; the others are counted."""
AT_ONCE = 1_000_000_000
"""Nanoseconds after which a request takes no further part of an order."""
PARTS_AT_ONCE = 5
"""Parts of an order that one request takes at most: so many thousand messages."""
_INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
_QUEUE, _ORDER, _SEARCH = "/console/queue", "/console/queue/order", "/console/search"
_REASONS_SHOWN = 5
_ORDERS = frozenset(each.value for each in Doing)
_PLACES = frozenset({"after", "before", "last"})
MATCH = "match-"
"""In front of the names of conditions in the form that chooses."""


def keys_of(fields: Fields, name: str = "key") -> list[int]:
    """The messages that a form names."""
    return [whole_number(name, each) for each in fields.all(name)]


# Choosing


def choice_of(asked: Asked, rows: Sequence[Message]) -> dict[str, object]:
    """What is chosen, on this page and in all; nothing if the choice has been forgotten."""
    try:
        identifier = asked.query.text("choice")
        order = asked.operations.message_orders.find(asked.identity, identifier)
    except MQError:
        return {"choice": "", "chosen": 0, "ticked": frozenset()}
    ticked = {each.lookup_identifier for each in rows}.intersection(order.keys)
    return {"choice": identifier, "chosen": order.chosen, "ticked": ticked}


async def show_choice(asked: Asked) -> Redirect:
    """Nothing is chosen by a link."""
    return Redirect(link(_QUEUE, queue=asked.query.text("queue")))


async def choose(asked: Asked) -> Redirect:
    """Keep what is ticked on a page, and go on: to another page, or to what is to be done."""
    then, queue = asked.form.text("then"), asked.form.text("queue")
    order = await _rechosen(asked, then)
    chosen = order.identifier if order is not None and order.chosen else ""
    if then not in _ORDERS:
        return Redirect(_page_of(asked.form, then, queue, chosen))
    if not chosen:
        raise MQError(_INVALID, text("queue.none_chosen"))
    return Redirect(link(f"{_QUEUE}/{then}", queue=queue, choice=chosen))


def _page_of(form: Fields, then: str, queue: str, chosen: str) -> str:
    """The page of messages that a button leads to: of the queue, or of what was found in it."""
    kept: dict[str, object] = {each: form.text(f"{MATCH}{each}") for each in CONDITIONS}
    where, _, key = then.partition(":")
    if where in _PLACES:
        kept[where] = whole_number(where, key)
    path = _SEARCH if any(kept[each] for each in CONDITIONS) else _QUEUE
    return link(path, queue=queue, choice=chosen, new=form.text("new"), **kept)


async def _rechosen(asked: Asked, then: str) -> Order | None:
    """The choice after the boxes of a page have been looked at; None where nothing is chosen."""
    form, orders = asked.form, asked.operations.message_orders
    name, identifier = queue_in(form), form.text("choice")
    if then == "all":
        return await choose_all(asked, name)
    if then == "none":
        return None
    ticked, shown = keys_of(form), keys_of(form, "shown")
    if identifier:
        return orders.rechoose(asked.identity, identifier, shown, ticked)
    return orders.choose(asked.identity, name, ticked) if ticked else None


async def choose_all(asked: Asked, name: FormatName) -> Order:
    """All messages of a queue, or all that meet the conditions of the page."""
    given = {each: asked.form.text(f"{MATCH}{each}") for each in CONDITIONS}
    conditions = {each: value for each, value in given.items() if value}
    if not conditions:
        return asked.operations.message_orders.choose_all(asked.identity, name)
    matcher = asked.operations.searching.matcher(asked.identity, conditions)
    return await asked.operations.order_requests.choose_matching(asked.identity, name, matcher)


# Asking


def _chosen(asked: Asked) -> Order:
    """What a page asks about: the choice as it is now, or the messages that a link names."""
    orders, identifier = asked.operations.message_orders, asked.query.text("choice")
    if identifier:
        return orders.copied(asked.identity, identifier)
    keys = keys_of(asked.query)
    if not keys:
        raise MQError(_INVALID, text("queue.none_chosen"))
    return orders.choose(asked.identity, queue_in(asked.query), keys)


def _sure(
    asked: Asked,
    page: str,
    name: Named,
    order: Order,
    fields: Sequence[Field] = (),
    question: str = "",
    notes: Sequence[str] = (),
) -> Shown:
    number = f"{order.chosen:,}"
    lines = [_line(asked, order, key) for key in order.keys[:SHOWN]]
    if order.chosen > SHOWN:
        lines.append(text("orders.others", number=f"{order.chosen - SHOWN:,}"))
    more = [text("orders.more")] if order.more else []
    more += [text("orders.unread", number=f"{order.unread:,}")] if order.unread else []
    return sure(
        question or text(f"{page}.sure", name=name.shown, number=number),
        f"{page}.submit",
        link(_QUEUE, queue=name.link, choice=asked.query.text("choice")),
        {"queue": name.link, "order": order.identifier},
        lines,
        fields,
        [*more, *notes],
    )


def _line(asked: Asked, order: Order, key: int) -> str:
    """A message that is meant, by its label; one that has gone by its number."""
    try:
        message = asked.operations.messages.look_up(asked.identity, order.source, key)
    except MQError as error:
        if error.status in REFUSALS:
            raise
        return text("orders.gone", number=key)
    label = message.attributes.label or text("message.no_label")
    return text("queue.meant", label=label, identifier=message.attributes.identifier)


async def ask_move(asked: Asked) -> Shown:
    """Which messages would be moved; to where is still to be said."""
    _, __, name = look(asked, asked.query)
    fields = [field("move", "to", hint=True), field("move", "other", hint=True)]
    notes = [text("move.kept"), text("orders.kept")]
    return _sure(asked, "move", name, _chosen(asked), fields, notes=notes)


async def ask_copy(asked: Asked) -> Shown:
    """Which messages would be copied."""
    _, __, name = look(asked, asked.query)
    fields = [field("copy", "other", required=True)]
    notes = [text("copy.kept"), text("orders.kept")]
    return _sure(asked, "copy", name, _chosen(asked), fields, notes=notes)


async def ask_remove(asked: Asked) -> Shown:
    """Which messages would be removed."""
    _, __, name = look(asked, asked.query)
    return _sure(asked, "remove", name, _chosen(asked))


async def ask_resend(asked: Asked) -> Shown:
    """Which messages would be sent again: those that were chosen, or all of the queue."""
    queue, _, name = look(asked, asked.query)
    fields = [field("resend", "to", hint=True), field("resend", "ttbr", "", "number", hint=True)]
    notes = [text("orders.kept")]
    dead = "" if name.shown in DEAD_LETTER_QUEUES else "_from"
    if asked.query.text("choice") or keys_of(asked.query):
        order = _chosen(asked)
        question = text(f"resend.sure{dead}", name=name.shown, number=f"{order.chosen:,}")
    else:
        order = asked.operations.message_orders.choose_all(asked.identity, queue)
        held = asked.operations.queues.held(asked.operations.queues.find(queue))
        question = text(f"resend.sure_all{dead}", name=name.shown, number=f"{order.chosen:,}")
        if held:
            notes.insert(0, text("queue.held_too", number=f"{held:,}"))
    if dead:
        fields.append(field("resend", "keep", False, "check"))
    return _sure(asked, "resend", name, order, fields, question, notes)


# Doing


async def do(doing: Doing, asked: Asked) -> Redirect:
    """Begin what was asked about, and go on for about a second."""
    form, name = asked.form, queue_in(asked.form)
    wanted = _wanted(asked, doing, name)
    identifier = form.text("order") or _named_in(asked, doing, name).identifier
    return await begun_with(asked, identifier, wanted)


async def begun_with(asked: Asked, identifier: str, wanted: Wanted) -> Redirect:
    """Begin an order; a form that is sent again is told how far the order is."""
    orders, begun = asked.operations.message_orders, stopwatch()
    order = orders.find(asked.identity, identifier)
    if order.wanted is not None:
        return _told(asked, order)
    order = await settled(orders.begin(asked.identity, identifier, wanted))
    return await gone_on(asked, order, begun)


def _named_in(asked: Asked, doing: Doing, name: FormatName) -> Order:
    """The messages that a form names which no page has made; all, if they are to be sent again."""
    keys, orders = keys_of(asked.form), asked.operations.message_orders
    if keys:
        return orders.choose(asked.identity, name, keys)
    if doing is not Doing.RESEND:
        raise MQError(_INVALID, text("queue.none_chosen"))
    return orders.choose_all(asked.identity, name)


async def gone_on(asked: Asked, order: Order, begun: int) -> Redirect:
    """Go on with an order until it ends or its second is over; tell how far it is."""
    orders = asked.operations.message_orders
    for _ in range(PARTS_AT_ONCE - 1):
        if order.ended or order.busy or stopwatch() - begun >= AT_ONCE:
            break
        order = await settled(orders.go_on(asked.identity, order.identifier, order.step))
    return _told(asked, order)


def _told(asked: Asked, order: Order) -> Redirect:
    """How far an order is, or what has become of it."""
    if order.ended:
        return Redirect(link(_QUEUE, queue=asked.form.text("queue")), said(order))
    return Redirect(link(_ORDER, queue=asked.form.text("queue"), order=order.identifier))


def _wanted(asked: Asked, doing: Doing, name: FormatName) -> Wanted:
    form = asked.form
    if doing is Doing.REMOVE:
        return Wanted(doing)
    if doing is Doing.RESEND:
        ttbr = form.number_or_none("ttbr")
        edits = UNCHANGED if ttbr is None else edits_of({"ttbr": ttbr})
        to = form.text("to").strip()
        target = format_name(to, HERE) if to else None
        return Wanted(doing, target, edits, form.checked("keep"))
    other = form.text("other").strip()
    if doing is Doing.COPY or other:
        if form.text("to").strip():
            raise MQError(_INVALID, text("move.one_of_both"))
        if not other:
            raise MQError(_INVALID, text("copy.nowhere"))
        return Wanted(doing, format_name(other, HERE))
    target = subqueue_name(name, form.text("to").strip())
    _check_is_no_other_queue(asked, target)
    return Wanted(doing, target)


def _check_is_no_other_queue(asked: Asked, target: FormatName) -> None:
    """Refuse a new subqueue that is called as another queue is: that one was meant, perhaps."""
    queues, to = asked.operations.queues, asked.form.text("to").strip()
    if not to or queues.is_there(target):
        return
    if _may_use(asked, to):
        raise MQError(_INVALID, text("move.other_queue", name=to))


def _may_use(asked: Asked, name: str) -> bool:
    """Whether a queue of that name is here that the caller may know of."""
    try:
        return asked.operations.queues.used(asked.identity, format_name(name, HERE)) is not None
    except MQError:
        return False


# Telling


def said(order: Order) -> str:
    """What has become of an order: to how many it was done, and what holds for the others."""
    wanted = order.wanted
    assert wanted is not None
    to = "" if wanted.to is None else _called(wanted.to)
    page = wanted.doing.value
    parts = [text(f"{page}.done", number=f"{order.done:,}", to=to)]
    if order.gone:
        parts.append(text("orders.had_gone", number=f"{order.gone:,}"))
    for (code, detail), number in order.staying.most_common(_REASONS_SHOWN):
        parts.append(text("orders.stay", number=f"{number:,}", error=f"{detail} ({code})"))
    if order.stopped and order.left:
        parts.append(text("orders.left", number=f"{order.left:,}"))
    if order.more:
        parts.append(text("orders.more_left"))
    return " ".join(parts)


def _called(name: FormatName) -> str:
    if isinstance(name.value, str) and not name.is_http:
        return short_name(str(name.path_name))
    return str(name)


async def show_order(asked: Asked) -> Shown:
    """How far an order is that takes longer, with what goes on with it."""
    order = asked.operations.message_orders.find(asked.identity, asked.query.text("order"))
    if order.wanted is None:
        raise MQError(_INVALID, text("orders.not_begun"))
    name = asked.query.text("queue")
    return Shown(
        {
            "title": text("orders.title"),
            "order": order,
            "so_far": said(order),
            "queue": name,
            "back": link(_QUEUE, queue=name),
            "going": not order.ended,
        }
    )


async def go_on(asked: Asked) -> Redirect:
    """Carry out further parts, or stop."""
    orders, form = asked.operations.message_orders, asked.form
    identifier, step = form.text("order"), form.number("step")
    if form.text("stop"):
        order = orders.stop(asked.identity, identifier)
        return Redirect(link(_QUEUE, queue=form.text("queue")), said(order))
    begun = stopwatch()
    order = orders.find(asked.identity, identifier)
    if order.step == step:
        order = await settled(orders.go_on(asked.identity, identifier, step))
        return await gone_on(asked, order, begun)
    return _told(asked, order)


PAGES = (
    Page(f"{_QUEUE}/choose", "queue.title", "ask.html", show_choice, choose),
    Page(f"{_QUEUE}/move", "move.title", "ask.html", ask_move, partial(do, Doing.MOVE)),
    Page(f"{_QUEUE}/copy", "copy.title", "ask.html", ask_copy, partial(do, Doing.COPY)),
    Page(f"{_QUEUE}/resend", "resend.title", "ask.html", ask_resend, partial(do, Doing.RESEND)),
    Page(f"{_QUEUE}/remove", "remove.title", "ask.html", ask_remove, partial(do, Doing.REMOVE)),
    Page(_ORDER, "orders.title", "order.html", show_order, go_on),
)
