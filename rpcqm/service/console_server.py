"""What answers on the port of the interface for programs, once somebody asks."""

import socket
from importlib.metadata import version

from rpcqm.api.application import HEADERS, Api, ApiSettings
from rpcqm.api.logging_on import GuessedTooOftenError
from rpcqm.api.problems import explained
from rpcqm.api.routes import METHODS
from rpcqm.base.identity import Identity, folded_name
from rpcqm.base.log import get_logger
from rpcqm.codec.security.passwords import nt_hash
from rpcqm.config import Configuration
from rpcqm.http.server import HttpServer
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
            LogOns(parts.accounts),
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
    """Checks passwords of accounts; guesses count together with those over RPC."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def log_on(self, name: str, password: str, address: str) -> Identity | None:
        """Who that is, None if the password is wrong; raises GuessedTooOftenError."""
        account = folded_name(name)
        try:
            self._accounts.throttle.admit(account, address)
        except AuthenticationError as error:
            _log.info("a program could not log on", peer=address, account=name, reason=str(error))
            raise GuessedTooOftenError(str(error)) from error
        if self._accounts.has_password(name, nt_hash(password)):
            self._accounts.throttle.succeeded(account, address)
            return self._accounts.identity(name, "")
        self._accounts.throttle.failed(account, address)
        reason = "a wrong password, or an unknown account"
        _log.info("a program could not log on", peer=address, account=name, reason=reason)
        return None


def api_settings(configuration: Configuration) -> ApiSettings:
    """What the interface takes of a configuration."""
    section = configuration.console
    names = {configuration.name, *section.allow_hosts}
    return ApiSettings(
        frozenset(name.lower().removesuffix(".") for name in names),
        section.trusted_proxy,
        section.longest_wait,
    )
