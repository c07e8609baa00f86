"""One queue: its properties, its permissions in words, its messages; and one message."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rpcqm.base.errors import MQError
from rpcqm.base.units import duration_text
from rpcqm.codec.bodies.described import class_name
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import DEAD_LETTER_QUEUES
from rpcqm.codec.packet.types import SEQUENTIAL_MASK
from rpcqm.codec.security.permissions import permissions
from rpcqm.console.asked import REFUSALS, Asked, Download, Fields, Page, Shown, whole_number
from rpcqm.console.bodies import LONGEST_BODY, ShownBody, shown_body
from rpcqm.console.naming import Named, look, names_of_accounts, queue_in
from rpcqm.console.pages.orders import choice_of
from rpcqm.console.pages.permissions import in_words, shown_permissions
from rpcqm.console.paging import ROWS
from rpcqm.console.texts import text
from rpcqm.operations.codes import CLASSES
from rpcqm.operations.messages import Message
from rpcqm.operations.probing import probing
from rpcqm.operations.queues import QueueRights
from rpcqm.operations.shapes import properties

_SHOWN_APART = (
    "value_type",
    "value",
    "undecoded",
    "value_note",
    "body",
    "body_base64",
    "body_type",
    "body_size",
    "label",
    "class",
    "extension_base64",
    "extension",
    "headers",
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What somebody may do with a queue, in words, and what that one is denied."""

    who: str
    allowed: str
    denied: str


async def show(asked: Asked) -> Shown:
    """A queue with a page of its messages, as far as the caller may see them."""
    name, described, called = look(asked, asked.query)
    queue = asked.operations.queues.find(name)
    rights = asked.operations.queues.rights(asked.identity, queue)
    messages, may_peek = _messages(asked, name, called)
    is_dead_letters = called.shown in DEAD_LETTER_QUEUES
    return Shown(
        {
            "title": called.shown,
            "queue": described,
            "look": "" if "path_name" in described else _how_to_look(asked, called),
            "made": queue.create_time * 1000,
            "name": called,
            "owner_and_rights": _permissions(asked, name),
            "may_look": asked.identity.may_look,
            "may_permit": asked.operations.permissions.may_change(asked.identity, name),
            "may": rights,
            "denied": _denied(rights),
            "messages": messages.rows,
            "held": asked.operations.queues.held(queue) if may_peek else 0,
            "links": messages.links,
            **choice_of(asked, messages.rows),
            "first_new": asked.query.text("new"),
            "reasons": [_reason(each) for each in messages.rows] if is_dead_letters else [],
            "new": _new(asked, messages.rows) if is_dead_letters else (),
            "may_peek": may_peek,
            "subqueues": [f"{called.link};{each}" for each in _texts(described["subqueues"])],
            "journal": _journal(described, called),
            "journal_age": duration_text(int(str(described.get("journal_max_age") or 0))),
            "is_dead_letters": is_dead_letters,
            "now": asked.now,
        }
    )


def _how_to_look(asked: Asked, called: Named) -> str:
    """The command by which somebody else lets the caller see the properties."""
    names = shlex.quote(called.shown), shlex.quote(asked.identity.name)
    return text("denied.to_look", queue=names[0], account=names[1])


def _denied(rights: QueueRights) -> str:
    """In words what the caller may not do here, and others may."""
    told = {
        "queue.to_send": rights.send,
        "queue.to_take": rights.receive,
        "queue.to_change": rights.change,
        "queue.to_delete": rights.delete,
    }
    return ", ".join(text(key) for key, allowed in told.items() if allowed is False)


def _reason(message: Message) -> tuple[str, str]:
    """Why a message is a dead letter: the name of its class, and what that means."""
    name = class_name(message.attributes.message_class)
    return name, CLASSES.get(name, "")


def _new(asked: Asked, messages: Sequence[Message]) -> frozenset[int]:
    """Which of the messages nobody had looked at, as the overview has told by its link."""
    first = asked.query.number("new")
    keys = (each.lookup_identifier for each in messages)
    return frozenset(key for key in keys if first and key & SEQUENTIAL_MASK >= first)


def _journal(described: Mapping[str, object], called: Named) -> str:
    """The name of the journal, "" for a queue that has none, or whose messages are not told."""
    return "" if described["journal_messages"] is None else f"{called.link};JOURNAL"


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class Messages:
    """A page of messages, and others around it: their `rel`, where they begin, their words."""

    rows: list[Message]
    links: list[tuple[str, str, str]]


def _messages(asked: Asked, name: FormatName, called: Named) -> tuple[Messages, bool]:
    """A page of messages, and whether the caller may look at all."""
    try:
        with probing():
            return _page(asked, name, called), True
    except MQError as error:
        if error.status not in REFUSALS:
            raise
        return Messages([], []), False


def _page(asked: Asked, name: FormatName, called: Named) -> Messages:
    """The messages behind a lookup identifier or in front of one, the first or the last ones."""
    messages, query = asked.operations.messages, asked.query
    after, before = query.number("after") or None, query.number("before") or None
    if before is not None or query.checked("last"):
        rows, earlier = messages.peek_before(asked.identity, name, before, ROWS)
        later = bool(rows) and before is not None
    else:
        page = messages.peek(asked.identity, name, after, ROWS)
        rows, earlier, later = page.messages, after is not None, page.next is not None
    around: list[tuple[str, str, str]] = []
    if earlier:
        around.append(("first", "here:", text("paging.first")))
    if earlier and rows:
        around.append(("prev", f"before:{rows[0].lookup_identifier}", text("paging.before")))
    if later:
        around.append(("next", f"after:{rows[-1].lookup_identifier}", text("paging.after")))
        around.append(("last", "last:1", text("paging.last")))
    return Messages(rows, around)


def _permissions(asked: Asked, name: FormatName) -> tuple[str, list[Allowed]] | None:
    """The owner, and who may do what; None where the caller may not know."""
    try:
        with probing():
            shown = shown_permissions(asked, name)
    except MQError:
        return None
    descriptor, names = shown.descriptor, shown.names
    rights = [
        Allowed(names.of(str(each.sid)), in_words(each.allowed), in_words(each.denied))
        for each in permissions(descriptor)
    ]
    owner = "" if descriptor.owner is None else names.of(str(descriptor.owner))
    return owner, rights


async def show_message(asked: Asked) -> Shown:
    """One message, which stays where it is."""
    name, __, called = look(asked, asked.query)
    queue = asked.operations.queues.find(name)
    message = message_in(asked, asked.query)
    told = properties(message)
    if told["sender"] is not None:
        told["sender"] = names_of_accounts(asked).of(str(told["sender"]))
    body = await _read_body(asked, message)
    times = {"sent": message.attributes.sent_time * 1000, "arrived": message.arrival_time}
    return Shown(
        {
            "title": message.attributes.label or str(message.attributes.identifier),
            "name": called,
            "key": message.lookup_identifier,
            "may": asked.operations.queues.rights(asked.identity, queue),
            "reason": _reason(message),
            "may_trace": asked.identity.may_look,
            "told": told,
            "facts": [
                (text(f"property.{key}"), times.get(key, _fact(value)))
                for key, value in told.items()
                if key not in _SHOWN_APART
            ],
            "body": body,
            "headers": _headers(told),
            "extension": _extension(message),
            "may_decode": len(message.attributes.body) > LONGEST_BODY
            and not asked.query.checked("decode"),
            "now": asked.now,
        }
    )


def _headers(told: Mapping[str, object]) -> list[tuple[str, str]]:
    """The headers that a framework has put into the extension."""
    found = told.get("headers")
    return (
        [(str(name), _fact(each)) for name, each in found.items()]
        if isinstance(found, dict)
        else []
    )


def _extension(message: Message) -> ShownBody | None:
    extension = message.attributes.extension
    return shown_body(extension, 0) if extension else None


async def _read_body(asked: Asked, message: Message) -> ShownBody:
    """The body; a long one is read where somebody wants that, and nobody else waits (G396)."""
    body, body_type = message.attributes.body, message.attributes.body_type
    if len(body) <= LONGEST_BODY or not asked.query.checked("decode"):
        return shown_body(body, body_type)
    return await asked.operations.decoding.run(partial(shown_body, body, body_type, True))


def _fact(value: object) -> str:
    if isinstance(value, bool):
        return text("yes") if value else text("no")
    if value is None or value in ([], ""):
        return text("none")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def message_in(asked: Asked, fields: Fields) -> Message:
    """The message that a query or a form names; raises MQError."""
    key = whole_number("id", fields.text("id"))
    return asked.operations.messages.look_up(asked.identity, queue_in(fields), key)


async def export_message(asked: Asked) -> Download:
    """One message as a packet, which another queue manager can import."""
    message = message_in(asked, asked.query)
    return Download(message.packet, f"message-{message.lookup_identifier}.packet")


async def export_body(asked: Asked) -> Download:
    """The body of one message, as it is."""
    message = message_in(asked, asked.query)
    return Download(message.attributes.body, f"message-{message.lookup_identifier}.body")


PAGES = (
    Page("/console/queue", "queue.title", "queue.html", show),
    Page("/console/message", "message.title", "message.html", show_message),
    Page("/console/message/export", "message.title", "", export_message),
    Page("/console/message/body", "message.title", "", export_body),
)
