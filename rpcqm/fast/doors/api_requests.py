"""Programs' repeated requests, of which little has to be read again.

`Api` stays the only definition of what a request means. The parts that follow from its method, its
target and its headers alone are cached when these come a second time: the route, its parameters,
the properties of a message. The caller and its rights are not cached; neither are tokens, passwords
and tickets, nor anything that an operator can change (docs/request-templates.md).
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rpcqm.api.routes import BASE, Route
from rpcqm.base.identity import Identity
from rpcqm.fast.learned import Learned
from rpcqm.http.exchange import HttpRequest

HEADS = 256
"""Headers of requests of programs that are known again when they come again.

Bound `program.repeated_heads` [heads]: the one that was used longest ago is forgotten.
"""
OF_HEAD = 64
"""Targets that are known again with the same headers.

Bound `program.repeated_targets` [targets]: all of them are forgotten, and found again.
"""
LONGEST_HEAD, LONGEST_TARGET = 2048, 300
"""Characters of headers and of targets that are cached."""
_LEASES, _COMPLETE = f"{BASE}/leases/", "/complete"
_LEASE = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""A lease that is written in the path unchanged."""
_BEARER = "Bearer "
_BEHIND_BEARER = len(_BEARER)
OWN = frozenset({"authorization", "content-length"})
"""Headers that each request has of its own: these are not cached."""
_NEVER = OWN | {"cookie", "idempotency-key", "origin", "proxy-authorization", "traceparent"}
"""Headers whose requests are never cached: secrets, and headers that need a look each time."""

Shortcut = Callable[[Identity, bytes, str], Awaitable[bytes | None]]
"""Takes the caller, the body, and the lease in the target; returns the octets of a success, or None
to have the route's function carry the request out."""

_Head = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class CachedRequest:
    """The parts of a request that follow from its method, target and headers.

    `shortcut` is there for frequent routes, and has the effect of the route's function; its success
    has such a `status`.
    """

    route: Route
    names: Mapping[str, str]
    parameters: Any
    headers: Mapping[str, str]
    shortcut: Shortcut | None = None
    status: int = 200


@dataclass(slots=True)
class Recognised:
    """A repeated request: the cached part, and its own values."""

    cached: CachedRequest
    token: str
    lease: str


class RepeatedRequests:
    """The repeated requests of all programs, as long as settings stay the same."""

    def __init__(self) -> None:
        self.by_head: Learned[_Head, dict[str, CachedRequest]] = Learned(HEADS)

    def __len__(self) -> int:
        return len(self.by_head)

    def find(self, request: HttpRequest) -> Recognised | None:
        """The cached part of a request that was noted before."""
        given, token = _split(request)
        of_head = self.by_head.find(tuple(given.items()))
        if not of_head or not token.startswith(_BEARER):
            return None
        target, lease = request.target, ""
        cached = of_head.get(target)
        if cached is None:
            target, lease = _without_lease(target)
            cached = of_head.get(target)
        if cached is None or cached.route.method != request.method:
            return None
        return Recognised(cached, token[_BEHIND_BEARER:].strip(), lease)

    def note(self, request: HttpRequest, learn: Callable[[], CachedRequest | None]) -> None:
        """Note a request that has succeeded; when its head comes again, call `learn`."""
        given, token = _split(request)
        head, target = tuple(given.items()), _without_lease(request.target)[0]
        if not token.startswith(_BEARER) or not _may_be_kept(request, given, target):
            return
        of_head = self.by_head.find(head)
        if of_head is None:
            self.by_head.keep(head, {})
        elif (learned := learn()) is not None:
            if len(of_head) >= OF_HEAD:
                of_head.clear()
            of_head[target] = learned


def _split(request: HttpRequest) -> tuple[dict[str, str], str]:
    """The headers that repeat, and the one that names the caller.

    A request with a repeated header gets none: the careful path decides about it.
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
    """Whether a head is short, has each header once, and no header that differs each time."""
    return (
        len(target) <= LONGEST_TARGET
        and sum(map(len, given)) + sum(map(len, given.values())) <= LONGEST_HEAD
        and len(request.fields) == len(request.headers)
        and _NEVER.isdisjoint(map(str.lower, given))
    )


def _without_lease(target: str) -> tuple[str, str]:
    """A target without the lease that it completes, and that lease."""
    if target.startswith(_LEASES) and target.endswith(_COMPLETE):
        lease = target[len(_LEASES) : -len(_COMPLETE)]
        if _LEASE.fullmatch(lease):
            return _COMPLETE, lease
    return target, ""
