"""All queues: found by a part of their names, sorted, and a page at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rpcqm.codec.names.written import SYSTEM_QUEUES, format_name
from rpcqm.console.asked import Asked, Page, Shown
from rpcqm.console.naming import Named, named
from rpcqm.console.paging import paged

_Key = Callable[[Any], Any]


def _count(queue: Any) -> int:
    return int(queue.message_position_list.count)


def _bytes(queue: Any) -> int:
    return int(queue.message_position_list.bytes)


def _oldest(queue: Any) -> float:
    """Empty queues come behind all others."""
    return queue.message_position_list.oldest() or float("inf")


_KEYS: dict[str, tuple[_Key, bool]] = {
    "messages": (_count, True),
    "bytes": (_bytes, True),
    "oldest": (_oldest, False),
}
"""What is sorted by, and whether the largest comes first; by name they are sorted already."""


@dataclass(frozen=True, slots=True)
class Row:
    """A queue of the table; `oldest` is milliseconds since 1970, 0 for an empty one."""

    name: Named
    told: dict[str, object]
    oldest: int


async def show(asked: Asked) -> Shown:
    """The queues of applications, and those of the system, for administrators."""
    may_create = asked.operations.queues.may_create(asked.identity)
    if not asked.identity.may_look:
        return Shown({"rows": None, "may_create": may_create})
    find, sort = asked.query.text("find").strip(), asked.query.text("sort", "name")
    queues = asked.operations.queues.list(asked.identity)
    if find:
        wanted = find.casefold()
        queues = [each for each in queues if _has(each, wanted)]
    if sort in _KEYS:
        key, largest = _KEYS[sort]
        queues.sort(key=key, reverse=largest)
    shown = paged(asked, "/console/queues", queues, keep=("find", "sort"))
    return Shown(
        {
            "rows": [_row(asked, queue) for queue in shown.rows],
            "paged": shown,
            "may_create": may_create,
            "system": [_system(asked, name) for name in SYSTEM_QUEUES],
            "find": find,
            "sort": sort if sort in _KEYS else "name",
            "sorts": ("name", *_KEYS),
            "now": asked.now,
        }
    )


def _has(queue: Any, words: str) -> bool:
    return words in queue.pathname.casefold() or words in queue.label.casefold()


def _row(asked: Asked, queue: Any) -> Row:
    told = asked.operations.queues.shown(asked.identity, queue)
    return Row(named(told), told, queue.message_position_list.oldest())


def _system(asked: Asked, name: str) -> Row:
    queue = asked.operations.queues.look(asked.identity, format_name(name))
    told = asked.operations.queues.shown(asked.identity, queue)
    return Row(Named(name, name), told, queue.message_position_list.oldest())


PAGES = (Page("/console/queues", "queues.title", "queues.html", show, entry="queues.title"),)
