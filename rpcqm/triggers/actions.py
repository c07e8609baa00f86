"""The actions of a rule for a message: a program, an HTTP request, a message to another queue."""

import os
import ssl
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote

from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError
from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.packet.base import MAXIMUM_PACKET_SIZE
from rpcqm.codec.trigger_rule import TriggerRule
from rpcqm.triggers.outcome import Outcome, done, failed, trouble
from rpcqm.triggers.programs import Order, run_program
from rpcqm.triggers.queue_access import Send, outgoing_of
from rpcqm.triggers.values import UnsafeValueError, arguments, octets_of

if TYPE_CHECKING:
    from rpcqm.http.client import HttpClient

PATH = "/usr/local/bin:/usr/bin:/bin"
_PASSED_ON = ("RPCQM_DATA_DIR", "RPCQM_CONFIG", "TZ")
"""Variables of the service that are passed on to its programs."""
_AWAY = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses of a server that could not take any request at this moment."""
_OF_THIS_MESSAGE = frozenset({HResult.MQ_ERROR_INVALID_PARAMETER})
"""Errors by which a queue refuses one message while it takes others."""
_NEARLY_TOO_LARGE = MAXIMUM_PACKET_SIZE - 4_096
"""Octets of a message that may leave no room for the headers added when it is sent on."""


class Actions:
    """Runs the actions of rules; `stop` closes the connections that are kept."""

    def __init__(self, clock: Clock, environment: Mapping[str, str] = os.environ) -> None:
        self._clock = clock
        self._environment = environment
        self._has_connected = False

    def missing(self, rule: TriggerRule) -> str:
        """The reason why a rule cannot work before any message is taken; "" without one."""
        if not rule.program or os.access(rule.program[0], os.X_OK):
            return ""
        return f"{rule.program[0]} is not there, or may not be run"

    async def act(self, rule: TriggerRule, message: ReceivedMessage, send: Send) -> Outcome:
        """Run the action of a rule for a message that meets its conditions."""
        if rule.program:
            return await self._run(rule, message)
        if rule.url:
            return await self._post(rule, message)
        return await self._send(rule, message, send)

    async def _run(self, rule: TriggerRule, message: ReceivedMessage) -> Outcome:
        try:
            words = arguments(rule.program, message, rule.queue)
        except UnsafeValueError as error:
            return failed(f"{rule.program[0]} was not run: {error}")
        environment = self._variables(rule, message)
        return await run_program(Order(words, octets_of(message), rule.time_limit, environment))

    def _variables(self, rule: TriggerRule, message: ReceivedMessage) -> dict[str, str]:
        """The environment of a program; senders write no part of it."""
        passed = {name: self._environment[name] for name in _PASSED_ON if name in self._environment}
        return passed | {
            "PATH": PATH,
            "LANG": "C.UTF-8",
            "RPCQM_TRIGGER": rule.name,
            "RPCQM_QUEUE": rule.queue,
            "RPCQM_LOOKUP_ID": str(message.lookup_identifier),
            "RPCQM_MESSAGE_ID": str(message.identifier),
        }

    @cached_property
    def _http(self) -> "HttpClient":
        from rpcqm.http.client import HttpClient  # only now: few rules need it

        self._has_connected = True
        return HttpClient(self._clock, ssl.create_default_context(), _no_proxy)

    async def _post(self, rule: TriggerRule, message: ReceivedMessage) -> Outcome:
        try:
            posted = await self._http.post(
                rule.url,
                "",
                headers_of(rule, message),
                octets_of(message),
                seconds=rule.time_limit,
            )
        except TimeoutError:
            return failed(f"{rule.url} has not answered within {rule.time_limit} s")
        except OSError as error:
            return trouble(f"{rule.address} cannot be reached: {error.strerror or error}")
        said = f"{rule.url} has answered {posted.status}"
        if posted.status in range(200, 300):
            return done(said)
        return trouble(said) if posted.status in _AWAY else failed(said)

    async def _send(self, rule: TriggerRule, message: ReceivedMessage, send: Send) -> Outcome:
        try:
            await send(rule.send_to, outgoing_of(message))
        except MQError as error:
            told = f"{rule.send_to} does not take it: {error}"
            return failed(told) if _is_of(message, error) else trouble(told)
        return done(f"it was sent to {rule.send_to}")

    async def stop(self) -> None:
        """Close the connections that are kept open."""
        if self._has_connected:
            await self._http.stop()


def _is_of(message: ReceivedMessage, error: MQError) -> bool:
    """Whether a queue refuses this message only, for example as too large with our headers."""
    if error.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES:
        return message.size > _NEARLY_TOO_LARGE
    return error.status in _OF_THIS_MESSAGE


def headers_of(rule: TriggerRule, message: ReceivedMessage) -> list[tuple[str, str]]:
    """The headers that describe a message in an HTTP request; texts are percent-encoded."""
    kind = "text/plain; charset=utf-8" if message.text is not None else "application/octet-stream"
    values = {
        "Rpcqm-Trigger": rule.name,
        "Rpcqm-Queue": rule.queue,
        "Rpcqm-Label": message.label,
        "Rpcqm-Id": str(message.identifier),
        "Rpcqm-Correlation-Id": str(message.correlation_identifier),
        "Rpcqm-Lookup-Id": str(message.lookup_identifier),
        "Rpcqm-Priority": str(message.priority),
        "Idempotency-Key": f"{message.identifier}",
    }
    told = [(name, quote(value, safe="{}-", errors="replace")) for name, value in values.items()]
    return [("Content-Type", kind), *told]


def _no_proxy(url: str) -> str:
    return ""
