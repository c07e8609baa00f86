"""What is done to a queue or to all of its messages, after a page that says what will happen."""

from collections.abc import Sequence

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.settling import settled
from rpcqm.codec.names.format_name import FormatName
from rpcqm.console.asked import Asked, Download, Page, Redirect, Shown
from rpcqm.console.fields import Field, field
from rpcqm.console.forms import link
from rpcqm.console.naming import Named, look, queue_in
from rpcqm.console.pages.asking import sure
from rpcqm.console.texts import text


def _sure(
    page: str,
    name: Named,
    question: str,
    fields: Sequence[Field] = (),
) -> Shown:
    """The page that asks whether it shall be done."""
    back = link("/console/queue", queue=name.link)
    return sure(question, f"{page}.submit", back, {"queue": name.link}, fields=fields)


def _amount(told: object) -> str:
    return text("unknown") if told is None else f"{told:,}"


def _asks_all(asked: Asked, key: str, queue: FormatName, told: object, shown: str) -> str:
    """A question about all messages of a queue; those that are held are out of reach."""
    if not isinstance(told, int):
        return text(key, name=shown, number=_amount(told))
    held = asked.operations.queues.held(asked.operations.queues.find(queue))
    question = text(key, name=shown, number=_amount(told - held))
    return f"{question} {text('queue.held_too', number=f'{held:,}')}" if held else question


def _back(asked: Asked, said: str) -> Redirect:
    return Redirect(link("/console/queue", queue=asked.form.text("queue")), said)


async def ask_purge(asked: Asked) -> Shown:
    """How many messages a purge would remove."""
    queue, told, name = look(asked, asked.query)
    question = _asks_all(asked, "purge.sure", queue, told["messages"], name.shown)
    return _sure("purge", name, question)


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
    return _sure("export", name, question)


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
    return _sure("delete", name, question, [field("delete", "repeat", required=True)])


async def delete(asked: Asked) -> Redirect:
    """Delete a queue, if its name has been written once more."""
    _, told, name = look(asked, asked.form)
    if asked.form.text("repeat").strip() != name.shown:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("delete.repeat_wrong"))
    await settled(asked.operations.queues.delete(asked.identity, queue_in(asked.form)))
    said = text("delete.done", name=name.shown, number=_amount(told["messages"]))
    return Redirect("/console/queues", said)


PAGES = (
    Page("/console/queue/purge", "purge.title", "ask.html", ask_purge, purge),
    Page("/console/queue/export", "export.title", "ask.html", ask_export, export),
    Page("/console/queue/delete", "delete.title", "ask.html", ask_delete, delete),
)
