"""Searching messages: in one queue, or in all that somebody may peek at."""

from collections.abc import Mapping
from dataclasses import dataclass

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.bodies.described import class_name
from rpcqm.codec.filters.body_text import beginning
from rpcqm.codec.filters.written import CONDITIONS
from rpcqm.console.asked import Asked, Page, Shown, whole_number
from rpcqm.console.fields import Field
from rpcqm.console.forms import link
from rpcqm.console.naming import queue_in
from rpcqm.console.pages.orders import choice_of
from rpcqm.console.paging import ROWS
from rpcqm.console.texts import text
from rpcqm.operations.messages import Message
from rpcqm.operations.queues import QueueRights
from rpcqm.operations.searching import Behind, Search, SearchPage
from rpcqm.operations.shapes import queue_of

PATH = "/console/search"
_FIRST = ("label", "body", "since")
"""Conditions that most searches have; the others are asked for below them."""
_BEGINNING = 160
"""Characters of a body that a row has."""
_CHOICES = {"transactional": ("", "yes", "no")}


@dataclass(frozen=True, slots=True)
class Row:
    """A message that was found, its queue, the beginning of its body, and its class."""

    message: Message
    queue: str
    said: str
    kind: str


async def show(asked: Asked) -> Shown:
    """The form, and what was found by it."""
    query = asked.query
    given = {name: query.text(name) for name in CONDITIONS}
    conditions = {name: value for name, value in given.items() if value}
    queue = query.text("queue").strip()
    problem, page, rights = "", None, None
    if conditions.keys() - {"ignore_case"}:
        try:
            page, rights = await _search(asked, queue, conditions)
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_INVALID_PARAMETER or not error.detail:
                raise
            problem = _in_words(error.detail)
    return Shown(
        {
            "queue": queue,
            "first": [_field(name, given[name]) for name in _FIRST],
            "others": [_field(name, given[name]) for name in CONDITIONS if name not in _FIRST],
            "is_narrowed": any(name not in _FIRST for name in conditions),
            "problem": problem,
            "page": page,
            "rows": [] if page is None else list(map(_row, page.messages)),
            "unread": [] if page is None else list(map(_row, page.unread_first)),
            "may": rights,
            "conditions": conditions,
            "next": "" if page is None else _next(queue, conditions, page),
            "behind": None if page is None or page.next is None else page.next.key,
            **choice_of(asked, [] if page is None else page.messages),
            "now": asked.now,
        }
    )


async def _search(
    asked: Asked, queue: str, conditions: Mapping[str, str]
) -> tuple[SearchPage, QueueRights | None]:
    """A page of what was found, and what the caller may do with the queue if it is one."""
    searching, identity = asked.operations.searching, asked.identity
    wanted = Search(searching.matcher(identity, conditions), ROWS)
    after = asked.query.text("after")
    if not queue:
        behind = Behind.read(after) if after else None
        return await searching.search_all(identity, wanted, behind), None
    name = queue_in(asked.query)
    key = whole_number("after", after) if after else None
    page = await searching.search(identity, name, wanted, key)
    queues = asked.operations.queues
    return page, queues.rights(identity, queues.find(name))


def _field(name: str, value: str) -> Field:
    words, hint = text(f"search.{name}"), CONDITIONS[name].example
    if name == "ignore_case":
        return Field(name, words, bool(value), "check")
    if name in _CHOICES:
        return Field(name, words, value, "choice", choices=_CHOICES[name])
    return Field(name, words, value, hint=text("search.like", example=hint) if hint else "")


def _in_words(sentence: str) -> str:
    """A sentence about a condition, which is called as its field is."""
    name, colon, rest = sentence.partition(":")
    return f"{text(f'search.{name}')}{colon}{rest}" if name in CONDITIONS else sentence


def _row(message: Message) -> Row:
    attributes = message.attributes
    kind = class_name(attributes.message_class)
    return Row(
        message,
        queue=queue_of(message),
        said=beginning(attributes.body, attributes.body_type, _BEGINNING),
        kind="" if kind == "NORMAL" else kind,
    )


def _next(queue: str, conditions: Mapping[str, str], page: SearchPage) -> str:
    """The link that goes on with the search; "" at its end."""
    if page.next is None:
        return ""
    after = page.next.key if queue else str(page.next)
    return link(PATH, queue=queue, **conditions, after=after)


PAGES = (Page(PATH, "search.title", "search.html", show, entry="search.title"),)
