"""Messages that meet conditions: of one queue, or of all that the caller may peek."""

from functools import partial

from rpcqm.api import parameters
from rpcqm.api.asked import Asked, Reply
from rpcqm.api.problems import bad_request
from rpcqm.api.telling import ToldMessages
from rpcqm.base.text import number_of_64_bits
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.filters.written import CONDITIONS
from rpcqm.operations.account_names import AccountNames
from rpcqm.operations.messages import Message
from rpcqm.operations.searching import Behind, Search, SearchPage
from rpcqm.operations.shapes import seen, shown_where, unread_where


def lookup_id_of(text: str) -> int:
    """A lookup identifier as it is told; raises Refusal."""
    key = number_of_64_bits(text)
    if key is None:
        raise bad_request("a lookup identifier is a number of 64 bits")
    return key


def conditions_of(wanted: parameters.Conditions) -> dict[str, str]:
    """The conditions of a request by their names."""
    given = {name: getattr(wanted, _MEMBERS.get(name, name)) for name in CONDITIONS}
    return {name: text for name, text in given.items() if text is not None}


_MEMBERS = {"class": "class_"}


async def search_queue(asked: Asked, conditions: dict[str, str]) -> Reply:
    """A page of the messages of a queue that meet conditions."""
    wanted: parameters.PageOfMessages = asked.parameters
    if wanted.wait:
        raise bad_request("a search waits for no message: leave out wait, or the conditions")
    after = None if wanted.after is None else lookup_id_of(wanted.after)
    told, search = _begun(asked, conditions, wanted.limit, wanted.decode)
    page = await asked.operations.searching.search(asked.identity, asked.queue, search, after)
    return _reply(told, page, None if page.next is None else page.next.key)


async def search_messages(asked: Asked) -> Reply:
    """Search all queues that the caller may peek, journals and subqueues among them."""
    wanted: parameters.Search = asked.parameters
    after = None if wanted.after is None else Behind.read(wanted.after)
    told, search = _begun(asked, conditions_of(wanted), wanted.limit, wanted.decode)
    page = await asked.operations.searching.search_all(asked.identity, search, after)
    return _reply(told, page, page.next)


def _begun(
    asked: Asked, conditions: dict[str, str], limit: int, decode: bool
) -> tuple[ToldMessages, Search]:
    matcher = asked.operations.searching.matcher(asked.identity, conditions)
    told = ToldMessages(partial(_told, decode=decode, names=names_for(asked)))
    return told, Search(matcher, limit, told.measure, asked.still)


def names_for(asked: Asked) -> AccountNames:
    """Names of senders, as far as the caller may know them."""
    return asked.operations.accounts.names(asked.identity)


def _told(
    message: Message, budget: DecodeBudget, decode: bool, names: AccountNames
) -> dict[str, object]:
    return seen(shown_where(message, decode, budget), names)


def _reply(told: ToldMessages, page: SearchPage, following: object | None) -> Reply:
    unread = list(map(unread_where, page.unread_first))
    octets = told.answer(
        following, looked_at=page.looked_at, unread=page.unread, unread_first=unread
    )
    return Reply(200, octets=octets)
