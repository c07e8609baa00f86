"""What answers on the port of the interface for programs, once somebody asks."""

import socket
from collections.abc import Callable
from functools import partial
from importlib.metadata import version

from rpcqm.api.application import HEADERS, Api, ApiSettings
from rpcqm.api.logging_on import GuessedTooOftenError
from rpcqm.api.problems import explained
from rpcqm.api.routes import METHODS
from rpcqm.base.identity import Identity, folded_name
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics
from rpcqm.codec.security.passwords import nt_hash
from rpcqm.config import Configuration
from rpcqm.http.server import HttpServer
from rpcqm.operations.tokens import TokenOperations
from rpcqm.rpc.security.context import AuthenticationError
from rpcqm.service.accounts import Accounts
from rpcqm.service.console import ConsoleParts
from rpcqm.service.http_limits import http_limits

_log = get_logger("service")


class ConsoleServer:
    """Answers on a socket that is bound."""

    def __init__(self, parts: ConsoleParts, listening: socket.socket) -> None:
        self._api = Api(
            parts.operations,
            LogOns(parts.accounts, parts.operations.tokens, parts.metrics),
            api_settings(parts.configuration),
            version("rpcqm"),
        )
        self._server = HttpServer(
            self._api.answer,
            parts.clock,
            parts.admission,
            http_limits(parts.configuration.limits),
            parts.metrics,
            methods=METHODS,
            headers=HEADERS,
            explain=explained,
            cancels=True,
        )
        self._server.listen_on(listening, parts.context)

    def adjust(self, parts: ConsoleParts) -> None:
        """Go on with other settings, and with another certificate for new connections."""
        self._api.settings = api_settings(parts.configuration)
        self._server.adjust(http_limits(parts.configuration.limits), parts.context)

    async def stop(self) -> None:
        """Answer what is in flight, and close all connections."""
        await self._server.stop()


class LogOns:
    """Checks passwords and tokens; guesses count together with those over RPC."""

    def __init__(self, accounts: Accounts, tokens: TokenOperations, metrics: Metrics) -> None:
        self._accounts, self._tokens, self._metrics = accounts, tokens, metrics

    def log_on(self, name: str, password: str, address: str) -> Identity | None:
        """Who that is, None if the password is wrong; raises GuessedTooOftenError."""

        def proved() -> Identity | None:
            right = self._accounts.has_password(name, nt_hash(password))
            return self._accounts.identity(name, "") if right else None

        return self._slowed(name, address, proved, "a wrong password, or an unknown account")

    def show_token(self, text: str, address: str) -> Identity | None:
        """Who shows a token, None if it is wrong or over; raises GuessedTooOftenError."""
        name = text.rpartition("_")[0]  # what is behind it is the secret
        verify = partial(self._tokens.verify, text)
        return self._slowed(name, address, verify, "a wrong token, or one that is over")

    def _slowed(
        self, name: str, address: str, proved: Callable[[], Identity | None], reason: str
    ) -> Identity | None:
        """What a proof tells, unless too many have failed before."""
        account = folded_name(name)
        try:
            self._accounts.throttle.admit(account, address)
        except AuthenticationError as error:
            self._metrics.count("http.logons_failed")
            _log.info("a program could not log on", peer=address, account=name, reason=str(error))
            raise GuessedTooOftenError(str(error)) from error
        identity = proved()
        if identity is None:
            self._metrics.count("http.logons_failed")
            self._accounts.throttle.failed(account, address)
            _log.info("a program could not log on", peer=address, account=name, reason=reason)
        else:
            self._accounts.throttle.succeeded(account, address)
        return identity


def api_settings(configuration: Configuration) -> ApiSettings:
    """What the interface takes of a configuration."""
    section = configuration.console
    names = {configuration.name, *section.allow_hosts}
    return ApiSettings(
        frozenset(name.lower().removesuffix(".") for name in names),
        section.trusted_proxy,
        section.longest_wait,
    )
