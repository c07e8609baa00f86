"""How pages call queues: by a name that people read, and by one that leads back to the queue."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rpcqm.base.errors import MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import HERE, format_name, shown_name
from rpcqm.console.asked import REFUSALS, Asked, Fields
from rpcqm.console.texts import text
from rpcqm.operations.account_names import AccountNames
from rpcqm.operations.probing import probing

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+(;[A-Za-z0-9_.-]+)?")
"""Names that nobody takes for a format name or a system queue."""


@dataclass(frozen=True, slots=True)
class Named:
    """A queue: what people read, and what links and forms have."""

    shown: str
    link: str


def named(described: Mapping[str, object]) -> Named:
    """The names of a queue that `operations.queues.shown` describes."""
    name, path = str(described["name"]), str(described["path_name"])
    link = name if _PLAIN.fullmatch(name) else str(described["format_name"])
    shown = shown_name(path)
    return Named(name if shown == path else shown, link)


def queue_in(fields: Fields) -> FormatName:
    """The queue that a query or a form names; raises MQError for what is no name."""
    return format_name(fields.text("queue"), HERE)


def names_of_accounts(asked: Asked) -> AccountNames:
    """Names in place of security identifiers, as far as the caller may know them."""
    return asked.operations.accounts.names(asked.identity, text("queue.root"))


def look(asked: Asked, fields: Fields) -> tuple[FormatName, dict[str, object], Named]:
    """A queue that is named, as far as the caller may see it; without `path_name` see `_used`."""
    name, queues = queue_in(fields), asked.operations.queues
    try:
        with probing():
            queue = queues.look(asked.identity, name)
    except MQError as error:
        if error.status not in REFUSALS:
            raise
        if (described := _used(asked, name)) is not None:
            written = fields.text("queue")
            return name, described, Named(written, written)
        queue = queues.look(asked.identity, name)  # the log is told of this refusal
    described = asked.operations.queues.shown(asked.identity, queue)
    return name, described, named(described)


def _used(asked: Asked, name: FormatName) -> dict[str, object] | None:
    """Of a queue that the caller may only use, no more than that tells: not even its real name."""
    found = asked.operations.queues.used(asked.identity, name)
    if found is None:
        return None
    return {"messages": found[0], "bytes": found[1], "journal_messages": None, "subqueues": []}
