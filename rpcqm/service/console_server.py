"""What answers on the port of the interface for programs and of the pages, once somebody asks."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

from rpcqm.api.application import HEADERS, Api, ApiSettings, methods_of
from rpcqm.api.problems import explained
from rpcqm.api.routes import BASE, METHODS
from rpcqm.base.ended_rights import OpenKind
from rpcqm.base.identity import Identity, folded_name
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics
from rpcqm.codec.security.passwords import nt_hash
from rpcqm.config import Configuration
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.http.server import HttpServer
from rpcqm.operations.logons import GuessedTooOftenError
from rpcqm.operations.metrics import MetricsSettings
from rpcqm.operations.operations import Operations
from rpcqm.rpc.security.context import AuthenticationError
from rpcqm.service.accounts import Accounts
from rpcqm.service.console_parts import ConsoleParts
from rpcqm.service.http_limits import http_limits
from rpcqm.service.tokens import public_part

if TYPE_CHECKING:
    from rpcqm.console.application import Console, ConsoleSettings
    from rpcqm.console.sessions import Standing
    from rpcqm.rpc.security.negotiation import HttpNegotiation

PAGES = "/console"
"""Below this path are pages; `/` is one, too."""
_BELOW_PAGES, _BELOW_API = f"{PAGES}/", f"{BASE}/"

_NEGOTIATE = "negotiate:"
"""Under which name wrong tokens of Kerberos count; no account can have it."""
_WRONG_PASSWORD = "a wrong password, or an unknown account"
_WRONG_TOKEN = "a wrong token, or one that is over"

_log = get_logger("service")


class ConsoleServer:
    """Answers on a socket that is bound."""

    def __init__(self, parts: ConsoleParts, listening: socket.socket) -> None:
        self._parts = parts
        self._console: Console | None = None
        self._log_ons = LogOns(parts.accounts, parts.operations, parts.metrics)
        self._log_ons.negotiation = negotiation_of(parts)
        self._api = Api(
            parts.operations,
            self._log_ons,
            api_settings(parts.configuration),
            version("rpcqm"),
            parts.is_ready,
        )
        self._of_programs = (
            self._api if parts.speed is None else parts.speed.repeated_api(self._api)
        ).answer
        self._server = HttpServer(
            self._answer,
            parts.clock,
            parts.admission,
            http_limits(parts.configuration.limits),
            parts.metrics,
            methods=METHODS,
            allowed=_allowed,
            headers=HEADERS,
            explain=explained,
            cancels=True,
            name="console",
            of_process=frozenset({"/healthz", "/readyz"}),
        )
        parts.operations.opened.sources.append(self._server)
        parts.operations.ended.subscribe(OpenKind.SESSION, self._end_sessions)
        self._server.listen_on(listening, parts.context)

    def _answer(self, request: HttpRequest) -> Awaitable[HttpResponse]:
        if request.target.startswith(_BELOW_API):
            return self._of_programs(request)
        path = request.target.partition("?")[0]
        if _is_page(path) and self._parts.is_ready():
            return self._page(request)
        return self._of_programs(request)

    async def _page(self, request: HttpRequest) -> HttpResponse:
        return await (await self._pages()).answer(request)

    async def _pages(self) -> "Console":
        """The pages, which are loaded when somebody asks for one, in a thread."""
        if self._console is None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, import_module, "rpcqm.console.application")
            from rpcqm.console.application import Console
        if self._console is None:  # another request may have waited for the same
            operations = self._parts.operations
            settings = console_settings(self._parts)
            self._console = Console(operations, self._log_ons, self._parts.clock, settings)
        return self._console

    def _end_sessions(self, sid: str) -> None:
        if self._console is not None:
            self._console.end_sessions(sid)

    def adjust(self, parts: ConsoleParts) -> None:
        """Go on with other settings, and with another certificate for new connections."""
        self._api.settings = api_settings(parts.configuration)
        self._log_ons.negotiation = negotiation_of(parts)
        if self._console is not None:
            self._console.adjust(console_settings(parts))
        self._server.adjust(http_limits(parts.configuration.limits), parts.context)

    async def stop(self) -> None:
        """Answer what is in flight, and close all connections."""
        await self._server.stop()


def _is_page(path: str) -> bool:
    return path in ("/", PAGES) or path.startswith(_BELOW_PAGES)


def _allowed(path: str) -> str:
    return "GET, POST" if _is_page(path) else methods_of(path)


class LogOns:
    """Checks passwords and tokens; guesses count together with those over RPC."""

    def __init__(self, accounts: Accounts, operations: Operations, metrics: Metrics) -> None:
        self._accounts, self._tokens = accounts, operations.tokens
        self._logons, self._metrics = operations.logons, metrics
        self.negotiation: HttpNegotiation | None = None

    @property
    def negotiates(self) -> bool:
        """Whether Kerberos is served."""
        return self.negotiation is not None

    def log_on(self, name: str, password: str, address: str) -> Identity | None:
        """Who that is, None if the password is wrong; raises GuessedTooOftenError."""

        def proved() -> Identity | None:
            right = self._accounts.has_password(name, nt_hash(password))
            return self._accounts.identity(name, "") if right else None

        return self._slowed(name, address, proved, lambda: _WRONG_PASSWORD)

    def show_token(self, text: str, address: str) -> Identity | None:
        """Who shows a token, None if it is wrong or over; raises GuessedTooOftenError."""
        name = public_part(text)
        verify = partial(self._tokens.verify, text)
        return self._slowed(name, address, verify, lambda: _WRONG_TOKEN)

    def negotiate(
        self, token: bytes, channel: bytes | None, bound: bool, address: str
    ) -> tuple[Identity, bytes] | None:
        """Who shows a token of Kerberos, with the answer to it; raises GuessedTooOftenError.

        Who that is, is not known before it is proved, so that wrong ones count together.
        """
        done: list[tuple[Identity, bytes]] = []
        reason = ["Kerberos is not served over HTTP"]

        def proved() -> Identity | None:
            try:
                if self.negotiation is not None:
                    done.append(self.negotiation.log_on(token, channel, bound))
            except AuthenticationError as error:
                reason[0] = str(error)
            return done[0][0] if done else None

        self._slowed(_NEGOTIATE, address, proved, lambda: reason[0])
        return done[0] if done else None

    def present(self, identity: Identity) -> Identity | None:
        """Who somebody is now that has logged on, None if the account is there no more."""
        known = self._accounts.standing(identity)
        return None if known is None else known[0]

    def show_logon(self, text: str, address: str) -> Identity | None:
        """Who shows a one-time token, None if it is wrong or over.

        Guesses are not counted: no page of a stranger may use up those of this address.
        """
        identity = self._logons.redeem(text)
        if identity is None:
            reason = "a wrong one-time logon, or one that is over"
            self._metrics.count("http.logons_failed")
            _log.info("a program could not log on", peer=address, account="", reason=reason)
        return identity

    def standing(self, identity: Identity) -> "Standing | None":
        """How somebody stands who has logged on, None if the account is there no more."""
        from rpcqm.console.sessions import Standing  # only where pages are served

        known = self._accounts.standing(identity)
        return None if known is None else Standing(*known)

    def _slowed(
        self,
        name: str,
        address: str,
        proved: Callable[[], Identity | None],
        reason: Callable[[], str],
    ) -> Identity | None:
        """What a proof tells, unless too many have failed before; `reason` is why it did."""
        account, shown = folded_name(name), "" if name == _NEGOTIATE else name
        try:
            self._accounts.throttle.admit(account, address)
        except AuthenticationError as error:
            self._metrics.count("http.logons_failed")
            _log.info("a program could not log on", peer=address, account=shown, reason=str(error))
            raise GuessedTooOftenError(str(error)) from error
        identity = proved()
        if identity is None:
            self._metrics.count("http.logons_failed")
            self._accounts.throttle.failed(account, address)
            _log.info("a program could not log on", peer=address, account=shown, reason=reason())
        else:
            self._accounts.throttle.succeeded(account, address)
        return identity


def api_settings(configuration: Configuration) -> ApiSettings:
    """What the interface takes of a configuration."""
    section = configuration.console
    return ApiSettings(
        _hosts(configuration),
        section.trusted_proxy,
        section.longest_wait,
        metrics_settings(configuration),
        section.channel_bindings == "require",
    )


def negotiation_of(parts: ConsoleParts) -> "HttpNegotiation | None":
    """How callers log on by Kerberos; None where no keys are configured, or none of HTTP/…."""
    keytab = parts.configuration.security.keytab
    if keytab is None:
        return None
    from rpcqm.rpc.security.negotiation import HttpNegotiation  # needs the extra `kerberos`

    try:
        return HttpNegotiation(parts.accounts, keytab)
    except AuthenticationError as error:
        _log.info("Kerberos is not offered over HTTP", reason=str(error))
        return None


def console_settings(parts: ConsoleParts) -> "ConsoleSettings":
    """What the pages take of a configuration."""
    from rpcqm.console.application import ConsoleSettings  # only where pages are served

    section = parts.configuration.console
    hosts = _hosts(parts.configuration)
    return ConsoleSettings(parts.instance, hosts, section.trusted_proxy, section.session_hours)


def _hosts(configuration: Configuration) -> frozenset[str]:
    names = {configuration.name, *configuration.aliases, *configuration.console.allow_hosts}
    return frozenset(name.lower().removesuffix(".") for name in names)


def metrics_settings(configuration: Configuration) -> MetricsSettings | None:
    """What /metrics takes of a configuration; None if it is off."""
    section = configuration.metrics
    if not section.enabled:
        return None
    return MetricsSettings(section.queues, section.windows_names)
