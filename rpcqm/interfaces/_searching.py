"""A page of a search for rpcqm_admin: JSON, both ways.

The question has `conditions` (texts by the names of rpcqm.codec.filters.written), `after`, which is
null or the `next` of the page before, `limit`, and whether to return messages `whole`. The answer
is that of `/api/v1`, or has `problem` with a sentence about a mistake in the question.
"""

import json
from collections.abc import Callable
from typing import Any

from rpcqm.adm.message import Message
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.text import cut, number_of_64_bits
from rpcqm.codec.names.format_name import FormatName
from rpcqm.operations.operations import Operations
from rpcqm.operations.searching import Behind, Search, SearchPage
from rpcqm.operations.shapes import seen, shown_where, summary_where, unread_where

ROOM = 1 << 20
"""Octets of an answer; one message may be larger."""
LOOKED_AT = 5_000
"""Messages that are examined for one answer, so that callers see the progress of a search."""
_MOST = 1_000


async def answer_search(
    operations: Operations, identity: Identity, name: FormatName | None, question: str
) -> bytes:
    """The answer to a question about a queue, or about all (None); raises MQError for refusals."""
    try:
        asked = _read(question)
        tell = shown_where if asked["whole"] else summary_where
        names = operations.accounts.names(identity)
        told = _Told(lambda message: seen(tell(message), names))
        matcher = operations.searching.matcher(identity, asked["conditions"])
        search = Search(matcher, asked["limit"], told.measure, room=ROOM, looked_at=LOOKED_AT)
        if name is None:
            after = None if asked["after"] is None else Behind.read(asked["after"])
            page = await operations.searching.search_all(identity, search, after)
            return told.answer(page, page.next)
        key = None if asked["after"] is None else _key(asked["after"])
        page = await operations.searching.search(identity, name, search, key)
        return told.answer(page, None if page.next is None else page.next.key)
    except MQError as error:
        if error.status is not HResult.MQ_ERROR_INVALID_PARAMETER or not error.detail:
            raise
        return json.dumps({"problem": error.detail}).encode()


def _read(question: str) -> dict[str, Any]:
    """The members of a question; raises MQError(MQ_ERROR_INVALID_PARAMETER)."""
    try:
        asked: dict[str, Any] = json.loads(question)
        after, conditions = asked["after"], asked["conditions"]
        texts = [*conditions, *conditions.values(), "" if after is None else after]
        limit = asked["limit"]
        if all(isinstance(each, str) for each in texts) and limit in range(1, _MOST + 1):
            return asked | {"whole": bool(asked["whole"])}
        raise ValueError(question)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "that is no search") from None


def _key(text: str) -> int:
    key = number_of_64_bits(text)
    if key is None:
        sentence = f"`{cut(text)}` is no lookup identifier, behind which a search could go on"
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, sentence)
    return key


class _Told:
    """Messages as JSON, each written once."""

    def __init__(self, tell: Callable[[Message], dict[str, object]]) -> None:
        self._tell = tell
        self._parts: list[str] = []

    def measure(self, message: Message) -> int:
        """Write another message; returns its octets in the answer."""
        part = json.dumps(self._tell(message), separators=(",", ":"))
        self._parts.append(part)
        return len(part)

    def answer(self, page: SearchPage, following: object | None) -> bytes:
        """The answer: all messages, the progress, and where the next page goes on."""
        rest = {
            "looked_at": page.looked_at,
            "unread": page.unread,
            "unread_first": list(map(unread_where, page.unread_first)),
            "next": None if following is None else str(following),
        }
        messages = ",".join(self._parts)
        return f'{{"messages":[{messages}],{json.dumps(rest)[1:]}'.encode()
