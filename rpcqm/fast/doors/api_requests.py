"""Requests that programs make again and again, of which little has to be read again.

`Api` stays the only definition of what a request means. What follows from its method, its target
and its headers alone is remembered when these come a second time: the route, its parameters, the
properties of a message. Who asks is not, nor what they may; neither are tokens, passwords and
tickets, nor anything that an operator can change (docs/request-templates.md).
"""

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rpcqm.api.routes import BASE, Route
from rpcqm.base.identity import Identity
from rpcqm.http.exchange import HttpRequest

HEADS, OF_HEAD = 256, 64
"""Headers that are remembered, and targets with each of them."""
LONGEST_HEAD, LONGEST_TARGET = 2048, 300
"""Characters of headers and of targets that are remembered."""
PATIENCE, LOOKED_AT = 64, 16
"""After so many requests in a row that were like none before, one of so many is looked at."""

_LEASES, _COMPLETE = f"{BASE}/leases/", "/complete"
_LEASE = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""One that is written in the path as it is."""
_BEARER = "Bearer "
_BEHIND_BEARER = len(_BEARER)
OWN = frozenset({"authorization", "content-length"})
"""Headers that each request has of its own: these are not remembered."""
_NEVER = OWN | {"cookie", "idempotency-key", "origin", "proxy-authorization", "traceparent"}
"""Headers with which none are: secrets, those that are looked at, and others each time."""

Quick = Callable[[Identity, bytes, str], Awaitable[bytes | None]]
"""Who asks, the body, and the lease that the target names → the octets of a success; None for what
is done as for other requests."""

_Head = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Known:
    """What follows from a request's method, target and headers.

    `quick` does what the route's function would do, where that is one of those that come often;
    its success has such a `status`.
    """

    route: Route
    names: Mapping[str, str]
    parameters: Any
    headers: Mapping[str, str]
    quick: Quick | None = None
    status: int = 200


@dataclass(slots=True)
class Again:
    """A request like one before: what is known of it, and what is its own."""

    known: Known
    token: str
    lease: str


class RepeatedRequests:
    """Those of all programs, as long as settings stay the same."""

    def __init__(self) -> None:
        self._heads: OrderedDict[_Head, dict[str, Known]] = OrderedDict()
        self._in_vain = 0

    def __len__(self) -> int:
        return len(self._heads)

    def find(self, request: HttpRequest) -> Again | None:
        """What is known of a request whose like was noted."""
        if self._in_vain >= PATIENCE:
            self._in_vain += 1
            if self._in_vain % LOOKED_AT:
                return None
        given, token = _split(request)
        of_head = self._heads.get(tuple(given.items()))
        if of_head and token.startswith(_BEARER):
            target, lease = request.target, ""
            known = of_head.get(target)
            if known is None:
                target, lease = _without_lease(target)
                known = of_head.get(target)
            if known is not None and known.route.method == request.method:
                self._in_vain = 0
                return Again(known, token[_BEHIND_BEARER:].strip(), lease)
        self._in_vain += 1
        return None

    def note(self, request: HttpRequest, learn: Callable[[], Known | None]) -> None:
        """Note a request that was found well; when its head comes again, `learn` what is known."""
        if self._in_vain > PATIENCE and self._in_vain % LOOKED_AT:
            return
        given, token = _split(request)
        head, target = tuple(given.items()), _without_lease(request.target)[0]
        if not token.startswith(_BEARER) or not _may_be_kept(request, given, target):
            return
        known = self._heads.get(head)
        if known is None:
            self._heads[head] = {}
            if len(self._heads) > HEADS:
                self._heads.popitem(last=False)
        elif (learned := learn()) is not None:
            if len(known) >= OF_HEAD:
                known.clear()
            known[target] = learned
            self._heads.move_to_end(head)


def _split(request: HttpRequest) -> tuple[dict[str, str], str]:
    """The headers that are the same again, and the one that tells who asks.

    Of a request that has a header twice none are: what that means is said elsewhere.
    """
    given = dict(request.headers)
    if len(given) < len(request.headers):
        return {}, ""
    token = given.pop("Authorization", None)
    if token is None:
        token = given.pop("authorization", "")
    if given.pop("Content-Length", None) is None:
        given.pop("content-length", None)
    return given, token


def _may_be_kept(request: HttpRequest, given: Mapping[str, str], target: str) -> bool:
    """Whether a head is short, has each header once, and none that is another one each time."""
    return (
        len(target) <= LONGEST_TARGET
        and sum(map(len, given)) + sum(map(len, given.values())) <= LONGEST_HEAD
        and len(request.fields) == len(request.headers)
        and _NEVER.isdisjoint(map(str.lower, given))
    )


def _without_lease(target: str) -> tuple[str, str]:
    """A target without the lease, if it names one that is completed; and that."""
    if target.startswith(_LEASES) and target.endswith(_COMPLETE):
        lease = target[len(_LEASES) : -len(_COMPLETE)]
        if _LEASE.fullmatch(lease):
            return _COMPLETE, lease
    return target, ""
