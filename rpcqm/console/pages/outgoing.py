"""Queues to other queue managers, their sessions, and what becomes of what they send."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from rpcqm.base.completion import Completion
from rpcqm.base.settling import settled
from rpcqm.base.told import told
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import format_name
from rpcqm.console.asked import Asked, Fields, Page, Redirect, Shown
from rpcqm.console.forms import link
from rpcqm.console.pages.asking import sure
from rpcqm.console.paging import paged
from rpcqm.console.texts import text
from rpcqm.operations.network_shapes import (
    described_connection,
    described_transfer,
)
from rpcqm.operations.shapes import described_outgoing

LIST, ONE = "/console/outgoing", "/console/outgoing/queue"
TABLES = ("queues", "sessions", "incoming")
ORDERS = ("pause", "resume", "resend")
PAUSED = "ONHOLD"


async def show(asked: Asked) -> Shown:
    """All of them, those with most messages first, and the sessions."""
    queues = asked.operations.outgoing.list(asked.identity)
    queues.sort(key=lambda queue: -queue.message_count)
    sessions = asked.operations.sessions
    shown = paged(asked, LIST, queues, "queues", TABLES)
    open_ones = paged(asked, LIST, sessions.all(asked.identity), "sessions", TABLES)
    incoming = paged(asked, LIST, sessions.incoming(asked.identity), "incoming", TABLES)
    names = asked.operations.traces.machine_names(
        asked.identity,
        [each.peer for each in open_ones.rows]
        + [str(each.info.sender_identifier) for each in incoming.rows],
    )
    return Shown(
        {
            "queues": [_row(asked, queue) for queue in shown.rows],
            "queues_paged": shown,
            "sessions": [told(each) | {"began": each.since} for each in open_ones.rows],
            "sessions_paged": open_ones,
            "incoming": incoming.rows,
            "incoming_paged": incoming,
            "names": names,
            "now": asked.now,
        }
    )


def _row(asked: Asked, queue: Any) -> dict[str, object]:
    told = described_outgoing(queue)
    oldest = queue.message_position_list.oldest()
    return told | {
        "words": state_in_words(str(told["state"])),
        "to": link(ONE, queue=told["format_name"]),
        "age": asked.now - oldest if oldest else None,
    }


def state_in_words(state: str) -> str:
    """What a state means to who looks after it."""
    return text(f"outgoing.state_{state.lower().replace(' ', '_')}")


async def show_one(asked: Asked) -> Shown:
    """One queue with its connections, and what may be done to it."""
    name = _named(asked.query)
    queue = asked.operations.outgoing.find(asked.identity, name)
    info = asked.operations.sessions.transfer(asked.identity, queue)
    told = described_transfer(queue, info)
    orders = ("resume",) if told["state"] == PAUSED else ("pause", "resend")
    may_order = asked.identity.is_administrator
    return Shown(
        {
            "title": told["format_name"],
            "queue": told,
            "words": state_in_words(str(told["state"])),
            "in_order": info.eod_next_seq.seq_no or told["last_acknowledged_time"],
            "acknowledged": (info.eod_last_ack_time or 0) * 1000,
            "connections": [
                (entry.connection_history_time * 1000, described_connection(entry))
                for entry in reversed(queue.connection_history)
            ],
            "orders": [
                (link(f"{LIST}/{each}", queue=told["format_name"]), text(f"outgoing.{each}"))
                for each in orders
                if may_order
            ],
        }
    )


def _named(fields: Fields) -> FormatName:
    return format_name(fields.text("queue"))


async def ask(order: str, asked: Asked) -> Shown | Redirect:
    """What an order would do to how many messages."""
    queue = asked.operations.outgoing.find(asked.identity, _named(asked.query))
    name = queue.destination_format_name
    if _is_in_vain(order, queue):
        return _in_vain(name)
    question = text(f"outgoing.{order}_sure", name=name, number=f"{queue.message_count:,}")
    return sure(question, f"outgoing.{order}", link(ONE, queue=name), {"queue": name})


def _is_in_vain(order: str, queue: Any) -> bool:
    """What is paused sends nothing, whatever else is ordered."""
    return order == "resend" and described_outgoing(queue)["state"] == PAUSED


def _in_vain(name: str) -> Redirect:
    return Redirect(link(ONE, queue=name), text("outgoing.resend_paused"))


async def do(order: str, asked: Asked) -> Redirect:
    """Carry out an order."""
    name = _named(asked.form)
    outgoing = asked.operations.outgoing
    known = asked.identity.is_administrator  # who is not is refused by the order, which tells of it
    if known and _is_in_vain(order, outgoing.find(asked.identity, name)):
        return _in_vain(str(name))
    orders: dict[str, Callable[[Any, FormatName], Completion[None]]] = {
        "pause": outgoing.pause,
        "resume": outgoing.resume,
        "resend": outgoing.resend,
    }
    await settled(orders[order](asked.identity, name))
    return Redirect(link(ONE, queue=str(name)), text(f"outgoing.{order}_done", name=str(name)))


def _page(order: str) -> Page:
    shown: Callable[[Asked], Awaitable[Shown | Redirect]] = partial(ask, order)
    done: Callable[[Asked], Awaitable[Redirect]] = partial(do, order)
    return Page(f"{LIST}/{order}", f"outgoing.{order}", "ask.html", shown, done)


PAGES = (
    Page(
        LIST, "outgoing.title", "outgoing.html", show, entry="outgoing.title", administrators=True
    ),
    Page(ONE, "outgoing.one", "outgoing_queue.html", show_one),
    *map(_page, ORDERS),
)
