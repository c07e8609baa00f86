"""Answers programs' repeated requests as `Api` does, in fewer steps.

`Api` stays the only definition of what a request means, and `send_message`, `receive_messages` and
`complete_lease` of the effects of the most frequent ones: these carry out all unusual requests
(docs/request-templates.md).
"""

import functools
from collections.abc import Awaitable
from functools import partial

from rpcqm.api import messages, parameters, reading
from rpcqm.api.application import (
    Api,
    fields_of,
    find_route,
    query_of,
    response_of,
    with_new_name,
)
from rpcqm.api.asked import Asked, settled
from rpcqm.api.logging_on import show_token
from rpcqm.api.problems import Refusal
from rpcqm.api.routes import Route
from rpcqm.base.errors import MQError
from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.fast.doors.api_leases import RepeatedLeases, RepeatedReceive
from rpcqm.fast.doors.api_requests import (
    OWN,
    CachedRequest,
    Recognised,
    RepeatedRequests,
    Shortcut,
)
from rpcqm.fast.doors.api_sends import RepeatedSend, RepeatedSends
from rpcqm.fast.first_messages import FirstMessages
from rpcqm.fast.formats.received_json import ReceivedTexts, told_carefully
from rpcqm.fast.learned import Patience
from rpcqm.fast.turn import Turn
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.http.origins import REMEMBERED
from rpcqm.operations.audit import HTTP, ORIGIN, Origin
from rpcqm.operations.drafts import attributes_of, check_size
from rpcqm.qm.engine import QueueManagerEngine

PATIENCE, LOOKED_AT = 64, 16
"""After PATIENCE new requests in a row, one of LOOKED_AT is examined."""

_JSON = (("Content-Type", "application/json"),)


class RepeatedApi:
    """Answers in the place of an `Api`, to which it passes all new requests."""

    def __init__(
        self, api: Api, engine: QueueManagerEngine, turn: Turn, firsts: FirstMessages
    ) -> None:
        self._api, self._turn = api, turn
        self._patience = Patience(PATIENCE, LOOKED_AT)
        self._leases = RepeatedLeases(engine, firsts, turn)
        self._sends = RepeatedSends(engine, turn)
        self._texts = ReceivedTexts(engine.clock)
        self._answered = engine.leases.answered
        self._forget()

    def _forget(self) -> None:
        """Forget what is cached: other settings change the meaning of the same texts."""
        self._settings, self.requests = self._api.settings, RepeatedRequests()

    def answer(self, request: HttpRequest) -> Awaitable[HttpResponse]:
        """The answer to a request, whatever is wrong with it."""
        if not self._turn.is_on or not self._api.is_ready() or not self._patience.looks():
            return self._api.answer(request)
        if self._settings is not self._api.settings:
            self._forget()
        recognised = self.requests.find(request)
        if recognised is None:
            return self._answer_new(request)
        self._patience.found()
        return self._answer_recognised(request, recognised)

    async def _answer_new(self, request: HttpRequest) -> HttpResponse:
        """Let the API answer, and remember the request if it succeeded."""
        requests = self.requests
        response = await self._api.answer(request)
        if response.status < 300:
            requests.note(request, partial(self._learn, request))
        return response

    def _learn(self, request: HttpRequest) -> CachedRequest | None:
        """The part of a request that its head determines; None if each such request needs more."""
        target, _, query = request.target.partition("?")
        try:
            route, names = find_route(request.method, target)
        except Refusal:  # a request that everybody may make
            return None
        if route.content is not None or self._settings.trusted_proxy:
            return None
        parameters: object = reading.read_texts(route.parameters, query_of(query))
        asked = self._api.asked(request, ANONYMOUS, names, parameters, None, fields_of(request))
        shortcut, status = self._shortcut_of(asked, route)
        headers = {name: value for name, value in asked.headers.items() if name not in OWN}
        return CachedRequest(route, names, parameters, headers, shortcut, status)

    async def _answer_recognised(
        self, request: HttpRequest, recognised: Recognised
    ) -> HttpResponse:
        """Answer a repeated request, of which little has to be read."""
        cached, api = recognised.cached, self._api
        try:
            identity = show_token(request, recognised.token, api.accounts, self._settings)
            ORIGIN.set(_origin_at(request.peer))
            if cached.shortcut is not None:
                octets = await cached.shortcut(identity, request.body, recognised.lease)
                if octets is not None:
                    return HttpResponse(cached.status, octets, _JSON if octets else (), None, True)
            names = {"lease": recognised.lease} if recognised.lease else cached.names
            parts = (names, cached.parameters, None, cached.headers)
            asked = api.asked(request, identity, *parts)
            try:
                return response_of(await cached.route.function(asked))
            except MQError as error:
                return api.failure(with_new_name(asked, error))
        except Exception as error:
            return api.failure(error)

    # The most frequent requests

    def _shortcut_of(self, asked: Asked, route: Route) -> tuple[Shortcut | None, int]:
        """The callable for a frequent route, and the status of its success."""
        if route.function is messages.send_message:
            repeated = _repeated_send(asked)
            return None if repeated is None else partial(self._send, repeated), 201
        if route.function is messages.complete_lease:
            return self._complete, 204
        if route.function is messages.receive_messages:
            wanted: parameters.Receive = asked.parameters
            received = RepeatedReceive.of(asked.queue, wanted.lease * 1000)
            if received is not None and wanted.max == 1 and wanted.correlation_id is None:
                return partial(self._receive, received), 200
        return None, 200

    async def _send(self, again: RepeatedSend, identity: Identity, body: bytes, _: str) -> bytes:
        check_size(body, again.extension)
        (identifier,) = await settled(self._sends.send(identity, again, body))
        return messages.told_identifier(identifier)

    async def _receive(
        self, again: RepeatedReceive, identity: Identity, _: bytes, __: str
    ) -> bytes | None:
        taken = self._leases.receive(identity, again)
        if taken is None:
            return None
        told = self._texts.answer(taken, self._answered)
        if self._turn.shadow is not None:
            self._turn.shadow.compare_answer(told_carefully(taken), told)
        return told

    async def _complete(self, identity: Identity, _: bytes, lease: str) -> bytes:
        await settled(self._leases.complete(identity, lease))
        return b""


def _repeated_send(asked: Asked) -> RepeatedSend | None:
    """The part of a send that repeats, without the body; None if it always goes alone."""
    draft = messages.draft_of(asked, messages.properties_of(asked), b"")
    if draft.transactional or draft.dead_letter_queue is not None:
        return None
    return RepeatedSend.of(asked.destinations, attributes_of(draft))


@functools.lru_cache(REMEMBERED)
def _origin_at(address: str) -> Origin:
    return Origin(address, HTTP)
