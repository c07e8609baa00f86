"""What is done to a queue or to some of its messages, after a page that says what will happen."""

from collections import Counter
from collections.abc import Sequence

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.settling import settled
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import HERE, format_name, short_name, subqueue_name
from rpcqm.console.asked import Asked, Download, Fields, Page, Redirect, Shown, whole_number
from rpcqm.console.fields import Field, field
from rpcqm.console.forms import link
from rpcqm.console.naming import Named, look, queue_in
from rpcqm.console.pages.asking import sure
from rpcqm.console.texts import text
from rpcqm.operations.dead_letters import Range
from rpcqm.operations.messages import Chosen

_REASONS_SHOWN = 5


def _keys(fields: Fields) -> list[int]:
    return [whole_number("key", each) for each in fields.all("key")]


def _sure(
    asked: Asked,
    page: str,
    name: Named,
    question: str,
    keys: Sequence[int] = (),
    fields: Sequence[Field] = (),
) -> Shown:
    """The page that asks whether it shall be done."""
    lines = [_line(asked, key) for key in keys]
    back = link("/console/queue", queue=name.link)
    return sure(question, f"{page}.submit", back, {"queue": name.link}, lines, keys, fields)


def _line(asked: Asked, key: int) -> str:
    """A message that is meant, by its label."""
    message = asked.operations.messages.look_up(asked.identity, queue_in(asked.query), key)
    label = message.attributes.label or text("message.no_label")
    return text("queue.meant", label=label, identifier=message.attributes.identifier)


def _amount(told: object) -> str:
    return text("unknown") if told is None else f"{told:,}"


def _asks_all(asked: Asked, key: str, queue: FormatName, told: object, shown: str) -> str:
    """A question about all messages of a queue; those that are held are out of reach."""
    if not isinstance(told, int):
        return text(key, name=shown, number=_amount(told))
    held = asked.operations.queues.held(asked.operations.queues.find(queue))
    question = text(key, name=shown, number=_amount(told - held))
    return f"{question} {text('queue.held_too', number=f'{held:,}')}" if held else question


def _chosen(fields: Fields) -> list[int]:
    keys = _keys(fields)
    if not keys:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("queue.none_chosen"))
    return keys


def _said(page: str, chosen: Chosen, to: str = "") -> str:
    """How many of the messages that were chosen it was done to, and why not to all."""
    said = text(f"{page}.done", number=f"{chosen.done:,}", to=to)
    if chosen.first is None:
        return said
    error = f"{chosen.first.status.name}: {chosen.first.status.meaning}"
    return f"{said} {text('queue.not_done', number=f'{chosen.failed:,}', error=error)}"


def _back(asked: Asked, said: str) -> Redirect:
    return Redirect(link("/console/queue", queue=asked.form.text("queue")), said)


async def ask_purge(asked: Asked) -> Shown:
    """How many messages a purge would remove."""
    queue, told, name = look(asked, asked.query)
    question = _asks_all(asked, "purge.sure", queue, told["messages"], name.shown)
    return _sure(asked, "purge", name, question)


async def purge(asked: Asked) -> Redirect:
    """Remove all messages."""
    removed = asked.operations.messages.purge(asked.identity, queue_in(asked.form))
    number = await settled(removed)
    return _back(asked, text("purge.done", number=f"{number:,}"))


async def ask_export(asked: Asked) -> Shown:
    """How many messages a file would have."""
    queue, told, name = look(asked, asked.query)
    asked.operations.messages.peek(asked.identity, queue)  # so that nobody asks in vain
    question = _asks_all(asked, "export.sure", queue, told["messages"], name.shown)
    return _sure(asked, "export", name, question)


async def export(asked: Asked) -> Download:
    """All messages in the format of `rpcqm queue export`; they stay."""
    queue, _, name = look(asked, asked.form)
    return Download(
        b"", f"{name.shown}.mq", stream=asked.operations.exports.export(asked.identity, queue)
    )


async def ask_delete(asked: Asked) -> Shown:
    """What goes with a queue."""
    _, told, name = look(asked, asked.query)
    question = text(
        "delete.sure",
        name=name.shown,
        number=_amount(told["messages"]),
        journal=_amount(told["journal_messages"]),
    )
    return _sure(asked, "delete", name, question, (), [field("delete", "repeat", required=True)])


async def delete(asked: Asked) -> Redirect:
    """Delete a queue, if its name has been written once more."""
    _, told, name = look(asked, asked.form)
    if asked.form.text("repeat").strip() != name.shown:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("delete.repeat_wrong"))
    await settled(asked.operations.queues.delete(asked.identity, queue_in(asked.form)))
    said = text("delete.done", name=name.shown, number=_amount(told["messages"]))
    return Redirect("/console/queues", said)


async def ask_remove(asked: Asked) -> Shown:
    """Which messages would be removed."""
    _, __, name = look(asked, asked.query)
    keys = _chosen(asked.query)
    question = text("remove.sure", name=name.shown, number=f"{len(keys):,}")
    return _sure(asked, "remove", name, question, keys)


async def remove(asked: Asked) -> Redirect:
    """Remove the messages that were chosen, one after the other."""
    keys, name = _chosen(asked.form), queue_in(asked.form)
    removed = asked.operations.messages.remove(asked.identity, name, keys)
    return _back(asked, _said("remove", await settled(removed)))


async def ask_move(asked: Asked) -> Shown:
    """Which messages would be moved; to where is still to be said."""
    _, __, name = look(asked, asked.query)
    keys = _chosen(asked.query)
    question = text("move.sure", name=name.shown, number=f"{len(keys):,}")
    return _sure(asked, "move", name, question, keys, [field("move", "to", hint=True)])


async def move(asked: Asked) -> Redirect:
    """Move the messages that were chosen to a subqueue, or back."""
    keys, name = _chosen(asked.form), queue_in(asked.form)
    target = subqueue_name(name, asked.form.text("to").strip())
    _check_is_no_other_queue(asked, target)
    moved = asked.operations.messages.move_chosen(asked.identity, name, target, keys)
    return _back(asked, _said("move", await settled(moved), short_name(str(target.path_name))))


def _check_is_no_other_queue(asked: Asked, target: FormatName) -> None:
    """Refuse a new subqueue that is called as another queue is: that one was meant, perhaps."""
    queues, to = asked.operations.queues, asked.form.text("to").strip()
    if not to or queues.is_there(target):
        return
    if _may_use(asked, to):
        refusal = text("move.other", name=to, queue=asked.form.text("queue"))
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, refusal)


def _may_use(asked: Asked, name: str) -> bool:
    """Whether a queue of that name is here that the caller may know of."""
    try:
        return asked.operations.queues.used(asked.identity, format_name(name, HERE)) is not None
    except MQError:
        return False


async def ask_resend(asked: Asked) -> Shown:
    """Which dead letters would be sent again: those that were chosen, or all."""
    queue, told, name = look(asked, asked.query)
    keys = _keys(asked.query)
    if keys:
        question = text("resend.sure", name=name.shown, number=f"{len(keys):,}")
    else:
        question = _asks_all(asked, "resend.sure_all", queue, told["messages"], name.shown)
    fields = [field("resend", "to", hint=True), field("resend", "ttbr", "", "number", hint=True)]
    return _sure(asked, "resend", name, question, keys, fields)


async def resend(asked: Asked) -> Redirect:
    """Send them again, to where they were for or elsewhere; what cannot be sent stays."""
    keys, name = _keys(asked.form), queue_in(asked.form)
    to = asked.form.text("to").strip()
    target = format_name(to, HERE) if to else None
    ttbr = asked.form.number("ttbr") if asked.form.text("ttbr").strip() else None
    sent, staying = 0, Counter[str]()
    rest: Range | None = Range()
    while rest is not None:
        letters = asked.operations.dead_letters.resend_all(
            asked.identity, name, None, target, ttbr, keys or None, rest
        )
        outcome = await settled(letters)
        sent, rest = sent + outcome.messages, outcome.rest
        for each in outcome.reasons():
            staying[str(each["detail"])] += int(str(each["messages"]))
    return _back(asked, _resent(sent, staying))


def _resent(sent: int, staying: Counter[str]) -> str:
    """How many were sent again, and why others stay."""
    parts = [text("resend.done", number=f"{sent:,}")]
    parts += [
        text("resend.failed", number=f"{number:,}", error=reason)
        for reason, number in staying.most_common(_REASONS_SHOWN)
    ]
    return " ".join(parts)


PAGES = (
    Page("/console/queue/purge", "purge.title", "ask.html", ask_purge, purge),
    Page("/console/queue/export", "export.title", "ask.html", ask_export, export),
    Page("/console/queue/delete", "delete.title", "ask.html", ask_delete, delete),
    Page("/console/queue/remove", "remove.title", "ask.html", ask_remove, remove),
    Page("/console/queue/resend", "resend.title", "ask.html", ask_resend, resend),
    Page("/console/queue/move", "move.title", "ask.html", ask_move, move),
)
