"""Forms in which something is written: a message to send, a queue to make or to change."""

from collections.abc import Mapping

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.settling import settled
from rpcqm.base.text import visible
from rpcqm.base.units import amount, whole_duration
from rpcqm.codec.bodies.kinds import WRITERS, body_of
from rpcqm.codec.names.written import HERE, path_name
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.console.asked import Asked, Fields, Page, Redirect, Shown
from rpcqm.console.fields import Field, check_choice, field
from rpcqm.console.forms import link
from rpcqm.console.naming import look, named, queue_in
from rpcqm.console.texts import text
from rpcqm.operations.drafts import Draft
from rpcqm.operations.shapes import PRIVACY

_INVALID = HResult.MQ_ERROR_INVALID_PARAMETER


def _form(page: str, fields: list[Field], title: str, back: str, lead: str = "") -> Shown:
    words = text(f"{page}.submit")
    values = {"title": title, "fields": fields, "back": back, "words": words, "lead": lead}
    return Shown(values, "form.html")


# Sending


async def ask_send(asked: Asked) -> Shown:
    """An empty message."""
    called = asked.query.text("queue")
    priorities = tuple(map(str, range(8)))
    fields = [
        field("send", "label"),
        field("send", "kind", "text", "choice", choices=tuple(WRITERS)),
        field("send", "body", kind="text"),
        field("send", "priority", "3", "choice", choices=priorities),
        field("send", "ttbr", kind="number", hint=True),
        field("send", "recoverable", True, "check"),
        field("send", "dead_letter", True, "check"),
        field("send", "journal", False, "check"),
    ]
    lead = text("send.sure", name=called)
    return _form("send", fields, text("send.to", name=called), called, lead)


async def send(asked: Asked) -> Redirect:
    """Send what was written."""
    form = asked.form
    check_choice("send", "kind", form.text("kind"), WRITERS)
    body, body_type = written_body(form.text("kind"), form.text("body"))
    draft = Draft(
        body,
        form.text("label"),
        form.number("priority"),
        body_type,
        recoverable=form.checked("recoverable"),
        ttbr=form.number_or_none("ttbr"),
        journal=form.checked("journal"),
        dead_letter=form.checked("dead_letter"),
    )
    sent = asked.operations.messages.send_by_hand(asked.identity, queue_in(form), draft)
    (identifier,) = await settled(sent)
    said = text("send.done", identifier=identifier)
    return Redirect(link("/console/queue", queue=form.text("queue")), said)


def written_body(kind: str, written: str) -> tuple[bytes, int]:
    """The octets and the type of a body that somebody has written; raises MQError."""
    try:
        return body_of(kind, written.encode())
    except ValueError as error:
        raise MQError(_INVALID, str(error)) from None


# Queues


async def ask_create(asked: Asked) -> Shown:
    """A queue with the properties of most."""
    fields = [
        field("create", "name", required=True),
        field("change", "label"),
        field("create", "transactional", False, "check"),
        field("change", "journal", False, "check"),
        field("change", "quota", kind="number", hint=True),
    ]
    return _form("create", fields, text("create.title"), "")


async def create(asked: Asked) -> Redirect:
    """Make the queue; its owner is who asks."""
    form = asked.form
    path = path_name(form.text("name").strip(), HERE)
    if path.suffix:
        raise MQError(_INVALID, text("create.no_subqueue"))
    attributes: dict[str, object] = {
        "label": form.text("label"),
        "transactional": form.checked("transactional"),
        "journaling": form.checked("journal"),
    }
    if (quota := form.number_or_none("quota")) is not None:
        attributes["quota"] = quota
    created = asked.operations.queues.create(asked.identity, str(path), attributes)
    told = asked.operations.queues.shown(asked.identity, await settled(created))
    called = named(told)
    said = text("create.done", name=called.shown)
    return Redirect(link("/console/queue", queue=called.link), said)


async def ask_change(asked: Asked) -> Shown:
    """The properties as they are."""
    name, told, called = look(asked, asked.query)
    asked.operations.queues.may_change(asked.identity, name)
    quota = "" if told["quota"] is None else told["quota"]
    fields = [
        field("change", "label", told["label"]),
        field("change", "journal", told["journal"], "check"),
        field("change", "quota", quota, "number", hint=True),
        *_journal_fields(told),
        field("change", "authenticate", told["authenticate"], "check"),
        field("change", "privacy", told["privacy"], "choice", choices=tuple(PRIVACY)),
        field("change", "max_deliveries", told["max_deliveries"], "number", hint=True),
        field("change", "poison", told["poison"]),
    ]
    if asked.identity.is_administrator:
        fields.append(field("change", "trail", told["trail"], "check"))
    return _form("change", fields, text("change.of", name=called.shown), called.link)


async def change(asked: Asked) -> Redirect:
    """Change what is different in the form."""
    form, operations, identity = asked.form, asked.operations.queues, asked.identity
    name, told, called = look(asked, form)
    operations.may_change(identity, name)
    changes = {key: value for key, value in _wanted(form).items() if told[key] != value}
    bounds = _journal_bounds(form, told)
    attributes = {_ATTRIBUTES[key]: _attribute(key, changes[key]) for key in changes}
    if attributes:
        await settled(operations.set_properties(identity, name, attributes))
    limit, subqueue = form.number("max_deliveries"), form.text("poison").strip()
    if (limit, subqueue) != (told["max_deliveries"], told["poison"]):
        await settled(operations.set_max_deliveries(identity, name, limit, subqueue))
    if bounds != (told["journal_max_age"], told["journal_max_messages"]):
        await settled(operations.set_journal_bounds(identity, name, *bounds))
    trail = form.checked("trail")
    if identity.is_administrator and trail != told["trail"]:
        await settled(operations.switch_trail(identity, name, trail))
    return Redirect(link("/console/queue", queue=called.link), text("change.done"))


_ATTRIBUTES = {
    "label": "label",
    "journal": "journaling",
    "quota": "quota",
    "journal_quota": "journal_quota",
    "authenticate": "authentication",
    "privacy": "privacy_level",
}
"""Fields of the form, and the attributes of `adm.Queue` that they change."""


def _journal_fields(told: Mapping[str, object]) -> list[Field]:
    quota = "" if told["journal_quota"] is None else told["journal_quota"]
    age, messages = told["journal_max_age"], told["journal_max_messages"]
    return [
        field("change", "journal_quota", quota, "number", hint=True),
        field("change", "journal_max_age", whole_duration(int(str(age))) if age else 0, hint=True),
        field("change", "journal_max_messages", messages, "number", hint=True),
    ]


def _journal_bounds(form: Fields, told: Mapping[str, object]) -> tuple[int, int]:
    """How old copies in the journal may become, and how many; what is left empty stays."""
    age = int(str(told["journal_max_age"]))
    if written := form.text("journal_max_age").strip():
        try:
            age = 0 if written == "0" else amount(written, "s")
        except ValueError as error:
            name = text("change.journal_max_age")
            raise MQError(_INVALID, f"{name}: `{visible(written)}` {error}") from None
    messages = int(str(told["journal_max_messages"]))
    return age, form.number("journal_max_messages", messages)


def _wanted(form: Fields) -> dict[str, object]:
    wanted: dict[str, object] = {
        "label": form.text("label"),
        "journal": form.checked("journal"),
        "quota": form.number_or_none("quota"),
        "authenticate": form.checked("authenticate"),
        "privacy": form.text("privacy"),
    }
    if form.text("journal_quota", "-").strip() != "-":  # a page before it had the field
        wanted["journal_quota"] = form.number_or_none("journal_quota")
    return wanted


def _attribute(key: str, value: object) -> object:
    if key in ("quota", "journal_quota"):
        return INFINITE if value is None else value
    if key != "privacy":
        return value
    check_choice("change", key, str(value), PRIVACY)
    return PRIVACY[str(value)]


# Renaming


async def ask_rename(asked: Asked) -> Shown:
    """The name as it is, and what leads nowhere then."""
    _, _, called = look(asked, asked.query)
    title = text("rename.of", name=called.shown)
    fields = [field("rename", "to", called.shown, required=True)]
    return _form("rename", fields, title, called.link, text("rename.lead", name=called.shown))


async def rename(asked: Asked) -> Redirect:
    """Give the queue another name; what is open goes on."""
    name, _, called = look(asked, asked.form)
    path = path_name(asked.form.text("to").strip(), HERE)
    queue = asked.operations.queues.find(name)
    await settled(asked.operations.queues.rename(asked.identity, name, str(path)))
    told = named(asked.operations.queues.shown(asked.identity, queue))
    said = text("rename.done", before=called.shown, name=told.shown)
    return Redirect(link("/console/queue", queue=told.link), said)


PAGES = (
    Page("/console/queue/send", "send.title", "form.html", ask_send, send),
    Page("/console/queues/new", "create.title", "form.html", ask_create, create),
    Page("/console/queue/change", "change.title", "form.html", ask_change, change),
    Page("/console/queue/rename", "rename.title", "form.html", ask_rename, rename),
)
