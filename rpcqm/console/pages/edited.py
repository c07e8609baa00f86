"""A message that is changed and sent again: a form with what it has, and what differs in it."""

import base64

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.bodies.kinds import JSON, TEXT, XML
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import HERE, format_name, short_name
from rpcqm.codec.packet.types import NULL_IDENTIFIER
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.console.asked import Asked, Fields, Page, Redirect, Shown, whole_number
from rpcqm.console.bodies import shown_body
from rpcqm.console.fields import Field, check_choice, field
from rpcqm.console.forms import link
from rpcqm.console.naming import look, queue_in
from rpcqm.console.pages.asking import sure
from rpcqm.console.pages.orders import begun_with
from rpcqm.console.pages.queue import message_in
from rpcqm.console.pages.written import written_body
from rpcqm.console.texts import text
from rpcqm.operations.message_orders import Doing, Wanted
from rpcqm.operations.messages import Message
from rpcqm.operations.sent_again import edits_of

_INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
_WRITTEN = (TEXT, XML, JSON)
"""Kinds of bodies that can be changed as text."""
_PATH = "/console/message/edit"


def _named(name: FormatName | None) -> str:
    """A queue as people write it."""
    if name is None:
        return ""
    if isinstance(name.value, str) and not name.is_http and name.direct_name.host == HERE:
        return short_name(str(name.path_name))
    return str(name)


def _time(seconds: int) -> str:
    return "" if seconds == INFINITE else str(seconds)


def _had(message: Message) -> dict[str, str]:
    """What the fields of the form have before anybody changes them."""
    old = message.attributes
    correlation = old.correlation_identifier
    return {
        "label": old.label,
        "priority": str(old.priority),
        "ttbr": _time(old.time_to_be_received),
        "ttrq": _time(old.time_to_reach_queue),
        "correlation_id": "" if correlation == NULL_IDENTIFIER else str(correlation),
        "response_queue": _named(old.response_queue_format_name),
        "admin_queue": _named(old.administration_queue_format_name),
        "application_tag": str(old.application_tag),
    }


def _body(message: Message) -> tuple[str, str] | None:
    """The text of a body and its kind, if it can be changed as text; None if it cannot."""
    attributes = message.attributes
    if not attributes.body:
        return "", TEXT
    body = shown_body(attributes.body, attributes.body_type)
    if body.cut or body.reason or body.kind not in _WRITTEN:
        return None
    return body.text, body.kind


async def ask(asked: Asked) -> Shown:
    """The message as it is, in a form."""
    _, __, name = look(asked, asked.query)
    message = message_in(asked, asked.query)
    had, body = _had(message), _body(message)
    order = asked.operations.message_orders.choose(
        asked.identity, queue_in(asked.query), [message.lookup_identifier]
    )
    destination = _named(message.attributes.destination_queue_format_name)
    fields = [field("edit", "to", destination, hint=True), field("edit", "label", had["label"])]
    fields += _fields_of_body(body)
    fields += [
        field("edit", "priority", had["priority"], "choice", choices=tuple(map(str, range(8)))),
        field("edit", "ttbr", had["ttbr"], "number", hint=True),
        field("edit", "ttrq", had["ttrq"], "number", hint=True),
        field("edit", "correlation_id", had["correlation_id"]),
        field("edit", "response_queue", had["response_queue"]),
        field("edit", "admin_queue", had["admin_queue"]),
        field("edit", "application_tag", had["application_tag"], "number"),
        field("edit", "keep", True, "check"),
    ]
    notes = [] if body is not None else [text("edit.body_stays")]
    key = message.lookup_identifier
    return sure(
        text("edit.sure"),
        "edit.submit",
        link("/console/message", queue=name.link, id=key),
        {"queue": name.link, "id": key, "order": order.identifier},
        fields=fields,
        notes=[*notes, text("edit.kept")],
    )


def _fields_of_body(body: tuple[str, str] | None) -> list[Field]:
    if body is None:
        return []
    return [
        field("edit", "body", body[0], "text"),
        field("edit", "kind", body[1], "choice", choices=_WRITTEN),
    ]


async def act(asked: Asked) -> Redirect:
    """Send it again, with what is different in the form."""
    form, orders = asked.form, asked.operations.message_orders
    identifier = form.text("order")
    if not identifier:
        raise MQError(_INVALID, text("edit.no_order"))
    if orders.find(asked.identity, identifier).wanted is not None:
        return await begun_with(asked, identifier, Wanted(Doing.RESEND))  # it was sent before
    to = form.text("to").strip()
    target = format_name(to, HERE) if to else None
    edits = edits_of(_changes(form, message_in(asked, form)))
    wanted = Wanted(Doing.RESEND, target, edits, form.checked("keep"))
    return await begun_with(asked, identifier, wanted)


def _changes(form: Fields, message: Message) -> dict[str, object]:
    """What is different in the form; browsers end lines of a text in their own way."""
    had = _had(message)
    changes: dict[str, object] = {
        name: _value(name, form.text(name))
        for name in had
        if form.text(name) != "".join(had[name].splitlines())
    }
    body = _body(message)
    if body is None:
        return changes
    written, kind = form.text("body"), form.text("kind") or body[1]
    check_choice("edit", "kind", kind, _WRITTEN)
    if "\r\n" not in body[0]:
        written = written.replace("\r\n", "\n")
    if (written, kind) != body:
        changes |= _new_body(written, kind)
    return changes


def _new_body(written: str, kind: str) -> dict[str, object]:
    octets, body_type = written_body(kind, written)
    return {"body_base64": base64.b64encode(octets).decode("ascii"), "body_type": body_type}


def _value(name: str, written: str) -> object:
    if name in ("ttbr", "ttrq"):
        return whole_number(name, written.strip()) if written.strip() else "forever"
    if name in ("priority", "application_tag"):
        return whole_number(name, written.strip())
    return written if name == "label" else written.strip()


PAGES = (Page(_PATH, "edit.title", "ask.html", ask, act),)
