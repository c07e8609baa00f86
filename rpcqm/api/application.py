"""Leads an HTTP request to an operation, and makes an answer of its outcome."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from rpcqm.api import metrics, openapi, page, reading, routes
from rpcqm.api.asked import Asked, Reply
from rpcqm.api.logging_on import Accounts, log_on, log_on_again, origin_of
from rpcqm.api.problems import Refusal, bad_request, body_of, headers_of, refusal_of
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.look import ICON
from rpcqm.base.text import visible
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.http.origins import LONGEST_REMEMBERED, REMEMBERED, is_local_name
from rpcqm.operations.audit import HTTP, ORIGIN, Origin
from rpcqm.operations.metrics import MetricsSettings
from rpcqm.operations.operations import Operations

HEADERS = (
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
)
"""The headers of every answer."""

MOST_SEGMENTS = 8
"""Segments of a path: the longest route has five."""
MOST_PARAMETERS = 32


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """`hosts` are names beyond addresses and localhost; `longest_wait` is in seconds.

    Without `metrics` none are told. Logons by Kerberos over TLS must be `bound` to it.
    """

    hosts: frozenset[str] = frozenset()
    trusted_proxy: str = ""
    longest_wait: int = 60
    metrics: MetricsSettings | None = None
    bound: bool = True


class Api:
    """Answers requests of /api/v1, and those for the health of the process."""

    def __init__(
        self,
        operations: Operations,
        accounts: Accounts,
        settings: ApiSettings,
        version: str,
        is_ready: Callable[[], bool],
    ) -> None:
        self._operations = operations
        self.accounts = accounts
        self.settings = settings
        self._version = version
        self.is_ready = is_ready
        self._openapi = self._shown = b""
        """The description, for programs and for people, as octets once somebody has asked."""

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request, also to a malformed one."""
        told: list[tuple[str, str]] = []
        try:
            return response_of(await self._reply(request, told), told)
        except Exception as error:
            return self.failure(error, told)

    def failure(self, error: Exception, told: Sequence[tuple[str, str]] = ()) -> HttpResponse:
        """The answer to a request that failed; raises an internal error again."""
        if isinstance(error, MQError):
            error = refusal_of(error)
        if isinstance(error, Refusal):
            return _refused(error, told)
        if self.is_ready():
            raise error
        # The disk has failed, or the queue manager has stopped, while this was done.
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return _refused(Refusal(status, _UNAVAILABLE, _NOT_READY), told)

    async def _reply(self, request: HttpRequest, told: list[tuple[str, str]]) -> Reply:
        """What is asked for; `told` gets the headers of every answer to who asks."""
        self._check_host(request)
        target, _, query = request.target.partition("?")
        if target in _OPEN:
            return _only(request, "GET", self._open(target))
        if not self.is_ready():
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, _UNAVAILABLE, _NOT_READY)
        if target == _ICON:
            return _only(request, "GET", _icon())
        if target == metrics.PATH and self.settings.metrics is not None:
            return await self._metrics(request, self.settings.metrics, told)
        route, names = find_route(request.method, target)
        identity = self._log_on(request, told)
        address, _ = origin_of(request, self.settings.trusted_proxy)
        ORIGIN.set(Origin(address, HTTP))
        parameters: Any = reading.read_texts(route.parameters, query_of(query))
        content = None if route.content is None else _content(route, request)
        parts = (names, parameters, content, fields_of(request))
        asked = self.asked(request, identity, *parts)
        try:
            return await route.function(asked)
        except MQError as error:
            raise with_new_name(asked, error) from error

    def asked(
        self,
        request: HttpRequest,
        identity: Identity,
        names: Mapping[str, str],
        parameters: object,
        content: object,
        headers: Mapping[str, str],
    ) -> Asked:
        """A request with what was read of it, as the function of its route sees it."""
        again = functools.partial(log_on_again, request, self.accounts, self.settings, identity)
        wait = self.settings.longest_wait
        return Asked(
            self._operations,
            identity,
            wait,
            names,
            parameters,
            content,
            request.body,
            again,
            headers,
        )

    async def _metrics(
        self, request: HttpRequest, settings: MetricsSettings, told: list[tuple[str, str]]
    ) -> Reply:
        if request.method != "GET":
            raise _not_allowed("GET")
        identity = self._log_on(request, told)
        address, _ = origin_of(request, self.settings.trusted_proxy)
        accept = request.header("Accept") or ""
        return await metrics.show_metrics(self._operations, identity, address, accept, settings)

    def _log_on(self, request: HttpRequest, told: list[tuple[str, str]]) -> Identity:
        if request.twice and not _KINDS_ONCE.isdisjoint(request.twice):
            raise bad_request("a header is there twice")
        logged_on = log_on(request, self.accounts, self.settings)
        told.extend(logged_on.headers)
        return logged_on.identity

    def _open(self, target: str) -> Reply:
        """The resources open to all callers, also before there is a queue manager."""
        if target in _HEALTH:
            return self._health(target == _READY)
        if target == _OPENAPI:
            return Reply(octets=self._description())
        return self._page()

    def _health(self, ready: bool) -> Reply:
        """Whether the process answers, or does all its work; open to all callers."""
        why = None
        if ready:
            why = self._operations.machine.why_not_ready() if self.is_ready() else "not ready"
        if why is not None:
            told = f"{visible(why)}\n".encode()
            status = HTTPStatus.SERVICE_UNAVAILABLE
            return Reply(status, octets=told, content_type="text/plain; charset=utf-8")
        return Reply(octets=b"ok\n", content_type="text/plain")

    def _page(self) -> Reply:
        """The description for people."""
        if not self._shown:
            self._shown = page.page_of(openapi.document(self._version))
        told = self._shown
        policy = (("Content-Security-Policy", page.POLICY),)
        return Reply(200, octets=told, content_type="text/html; charset=utf-8", headers=policy)

    def _description(self) -> bytes:
        if not self._openapi:
            self._openapi = reading.write_json(openapi.document(self._version))
        return self._openapi

    def _check_host(self, request: HttpRequest) -> None:
        """Refuse other names of this address: pages of strangers use them (DNS rebinding)."""
        host = request.fields.get("host")
        if host is None or "host" in request.twice or not self._is_ours(host):
            raise Refusal(HTTPStatus.FORBIDDEN, _DENIED, "that is not the name of this host")
        origin = request.fields.get("origin")
        if origin is not None and not self._is_own_page(request, origin, host):
            raise Refusal(HTTPStatus.FORBIDDEN, _DENIED, _STRANGERS)

    def _is_ours(self, authority: str) -> bool:
        return is_local_name(authority, self.settings.hosts)

    def _is_own_page(self, request: HttpRequest, origin: str, host: str) -> bool:
        """Whether a page is of this port, or of the standard one of a name that a proxy has for it.

        Strangers have addresses, and other ports of every name, too (G325); browsers keep
        passwords and tickets at hand.
        """
        proxy = self.settings.trusted_proxy
        _, secure = origin_of(request, proxy)
        ours = {host.lower()}
        if proxy and request.peer == proxy:
            ours |= self.settings.hosts
        scheme, _, authority = origin.lower().partition("://")
        return scheme == ("https" if secure else "http") and authority in ours


_DENIED = HResult.MQ_ERROR_ACCESS_DENIED.name
_KINDS_ONCE = {"authorization", "idempotency-key"}
_ICON, _READY, _OPENAPI = "/favicon.ico", "/readyz", f"{routes.BASE}/openapi.json"
_HEALTH = frozenset({"/healthz", _READY})
_OPEN = _HEALTH | {_OPENAPI, routes.BASE, f"{routes.BASE}/"}
_STRANGERS = "pages of other hosts may not ask; a proxy that ends TLS must be console.trusted_proxy"
_UNAVAILABLE = HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE.name
_NOT_READY = "the queue manager starts or stops, or its disk has failed"


def _icon() -> Reply:
    """The icon beside the title of a page; open to all callers."""
    kept = (("Cache-Control", "max-age=86400"),)
    return Reply(octets=_icon_octets(), content_type="image/svg+xml", headers=kept)


@functools.cache
def _icon_octets() -> bytes:
    return ICON.read_bytes()


def _only(request: HttpRequest, method: str, reply: Reply) -> Reply:
    if request.method != method:
        raise _not_allowed(method)
    return reply


def _not_allowed(methods: str) -> Refusal:
    allow = (("Allow", methods),)
    code = HResult.MQ_ERROR_UNSUPPORTED_OPERATION.name
    return Refusal(HTTPStatus.METHOD_NOT_ALLOWED, code, f"only {methods}", allow)


def with_new_name(asked: Asked, error: MQError) -> MQError:
    """An error of a request; for a renamed queue it has the present name."""
    if error.status is not HResult.MQ_ERROR_QUEUE_NOT_FOUND or "name" not in asked.path:
        return error
    try:
        now = asked.operations.queues.renamed_to(asked.identity, asked.queue)
    except MQError:  # a name of several queues
        return error
    return MQError(error.status, f"{asked.queue_text} was renamed to {now}") if now else error


def find_route(method: str, target: str) -> tuple[routes.Route, Mapping[str, str]]:
    """The route of a request with the names in its path; raises Refusal. Programs use few."""
    short = len(target) <= LONGEST_REMEMBERED
    return (_remembered_route if short else _find_route)(method, target)


def methods_of(target: str) -> str:
    """The methods that a target allows, as `Allow` names them; all methods for an unused path."""
    if target in _OPEN or target in (_ICON, metrics.PATH):
        return "GET"
    try:
        found = _routes_of(target)
    except Refusal:
        found = []
    return ", ".join([route.method for route, _ in found] or routes.METHODS)


def _routes_of(target: str) -> list[tuple[routes.Route, dict[str, str]]]:
    base = f"{routes.BASE}/"
    parts = target.removeprefix(base).split("/") if target.startswith(base) else []
    return routes.find(tuple(map(_decoded, parts))) if 0 < len(parts) <= MOST_SEGMENTS else []


def _find_route(method: str, target: str) -> tuple[routes.Route, Mapping[str, str]]:
    found = _routes_of(target)
    if not found:
        code = HResult.MQ_ERROR_UNSUPPORTED_OPERATION.name
        raise Refusal(HTTPStatus.NOT_FOUND, code, "there is nothing of that name")
    for route, names in found:
        if route.method == method:
            return route, names
    raise _not_allowed(", ".join(route.method for route, _ in found))


_remembered_route = functools.lru_cache(REMEMBERED)(_find_route)


def _decoded(text: str) -> str:
    """A part of a target, which has a character for each octet."""
    try:
        return reading.percent_decoded(text)
    except ValueError:
        raise bad_request("the path or the query is not percent-encoded UTF-8") from None


def query_of(text: str) -> dict[str, str]:
    """The parameters of a query, each at most once."""
    given: dict[str, str] = {}
    if not text:
        return given
    pairs = [pair for pair in text.split("&") if pair]
    if len(pairs) > MOST_PARAMETERS:
        raise bad_request("too many parameters")
    for pair in pairs:
        name, _, value = (_decoded(part.replace("+", " ")) for part in pair.partition("="))
        if name in given:
            raise bad_request("a parameter is there twice")
        given[name] = value
    return given


def _content(route: routes.Route, request: HttpRequest) -> object:
    kind = (request.header("Content-Type") or "application/json").partition(";")[0]
    if kind.strip().lower() != "application/json":
        raise bad_request("Content-Type: application/json is wanted")
    assert route.content is not None
    return reading.read_json(route.content, request.body)


def fields_of(request: HttpRequest) -> Mapping[str, str]:
    """Headers by their names in lower case, each at most once where we look at it.

    A second `traceparent` makes both none (G328).
    """
    if not request.twice:
        return request.fields
    if any(name.startswith("rpcqm-") for name in request.twice):
        raise bad_request("a header is there twice")
    given = dict(request.fields)
    if "traceparent" in request.twice:
        given["traceparent"] = ""
    return given


def _body(reply: Reply) -> bytes:
    return reading.write_json(reply.value) if reply.octets is None else reply.octets


def response_of(reply: Reply, told: Sequence[tuple[str, str]] = ()) -> HttpResponse:
    """A reply as it is sent, with headers that are told beside it."""
    headers = () if reply.status == HTTPStatus.NO_CONTENT else _typed(reply.content_type)
    if reply.headers or told:
        headers = (*headers, *reply.headers, *told)
    if reply.stream is not None:
        return HttpResponse(reply.status, b"", headers, reply.stream)
    body = b"" if reply.status == HTTPStatus.NO_CONTENT else _body(reply)
    return HttpResponse(reply.status, body, headers)


@functools.cache
def _typed(content_type: str) -> tuple[tuple[str, str], ...]:
    return (("Content-Type", content_type),)


def _refused(refusal: Refusal, told: Iterable[tuple[str, str]]) -> HttpResponse:
    headers = (*headers_of(refusal), *told)
    return HttpResponse(int(refusal.status), body_of(refusal), headers)
