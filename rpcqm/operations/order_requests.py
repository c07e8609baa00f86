"""Orders for messages as programs write them in JSON: which messages, what, and to where."""

from collections.abc import Mapping

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.settling import settling
from rpcqm.base.text import number_of_64_bits
from rpcqm.codec.filters.matching import Matcher
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.audit import refusals, start_ordered
from rpcqm.operations.dead_letters import EVERYWHERE, Range
from rpcqm.operations.message_orders import (
    MOST_CHOSEN,
    Doing,
    MessageOrders,
    Order,
    Wanted,
)
from rpcqm.operations.searching import Chosen, SearchOperations
from rpcqm.operations.sent_again import edits_of

_INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
_MEMBERS = frozenset({"doing", "lookup_ids", "all", "filter", "after", "until", "edits", "keep"})


class OrderRequests:
    """Chooses messages, and begins what is wanted of them.

    Members are `doing` (move, copy, resend, remove), one of `lookup_ids`, `all` and `filter`,
    `after` and `until` those of the order before for the last two, `edits` as `edits_of` reads
    them, and `keep`.
    """

    def __init__(self, orders: MessageOrders, searching: SearchOperations) -> None:
        self._orders, self._searching = orders, searching

    def begin(
        self,
        identity: Identity,
        source: FormatName,
        to: FormatName | None,
        request: Mapping[str, object],
        local: bool = False,
    ) -> Completion[Order]:
        """Carry out the first group of what a request asks for, which tells what follows.

        Times in its filter that have no zone are local ones if `local` says so. Raises MQError as
        `MessageOrders.begin` and what reads the members do; nothing is done then.
        """
        return start_ordered(self._begin(identity, source, to, request, local))

    async def _begin(
        self,
        identity: Identity,
        source: FormatName,
        to: FormatName | None,
        request: Mapping[str, object],
        local: bool,
    ) -> Order:
        wanted = _wanted(request, to)
        with refusals(identity, wanted.doing.action, str(source)):
            chosen = self._chosen(identity, source, request, wanted.access, local)
        order = chosen if isinstance(chosen, Order) else await chosen
        return await self._orders.begin(identity, order.identifier, wanted)

    def _chosen(
        self,
        identity: Identity,
        source: FormatName,
        request: Mapping[str, object],
        access: QueueAccessType,
        local: bool,
    ) -> Order | Completion[Order]:
        given, texts = request.get("lookup_ids"), request.get("filter")
        where = Range(_optional(request.get("after")), _optional(request.get("until")))
        ways = (given is not None, request.get("all") is True, bool(texts))
        if sum(ways) != 1:
            raise MQError(_INVALID, "one of lookup_ids, all and filter is wanted")
        if given is not None:
            if not isinstance(given, list | tuple):
                raise MQError(_INVALID, "lookup_ids takes a list")
            return self._orders.choose(identity, source, map(_key, given), access)
        if not texts:
            return self._orders.choose_all(identity, source, access, where)
        matcher = self._searching.matcher(identity, _texts(texts), local)
        return settling(self.choose_matching(identity, source, matcher, where))

    async def choose_matching(
        self,
        identity: Identity,
        source: FormatName,
        matcher: Matcher,
        where: Range = EVERYWHERE,
    ) -> Order:
        """Fix which messages of a range are meant by a filter; others are served meanwhile."""
        until = self._orders.newest if where.until is None else where.until
        chosen = Chosen(until, MOST_CHOSEN, where.after)
        await self._searching.choose(identity, source, matcher, chosen)
        return self._orders.choose_found(identity, source, chosen)


def _wanted(request: Mapping[str, object], to: FormatName | None) -> Wanted:
    unknown = next((name for name in request if name not in _MEMBERS), None)
    if unknown is not None:
        raise MQError(_INVALID, f"{unknown} is no member of an order")
    try:
        doing = Doing(str(request.get("doing")))
    except ValueError:
        raise MQError(_INVALID, f"doing is one of {', '.join(Doing)}") from None
    if to is None and doing in (Doing.MOVE, Doing.COPY):
        raise MQError(_INVALID, "the queue is missing to which messages go")
    edits = request.get("edits") or {}
    if not isinstance(edits, Mapping):
        raise MQError(_INVALID, "edits takes an object")
    if edits and doing is not Doing.RESEND:
        raise MQError(_INVALID, f"to {doing} messages changes nothing of them: send them again")
    return Wanted(doing, to, edits_of(edits), request.get("keep") is True)


def _key(value: object) -> int:
    """A lookup identifier, as a number or its digits."""
    is_number = isinstance(value, int | str) and not isinstance(value, bool)
    key = number_of_64_bits(str(value)) if is_number else None
    if key is None:
        raise MQError(_INVALID, "a lookup identifier is a number of 64 bits")
    return key


def _optional(value: object) -> int | None:
    return None if value is None else _key(value)


def _texts(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise MQError(_INVALID, "filter takes an object")
    return {str(name): str(text) for name, text in given.items()}
