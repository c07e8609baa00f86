"""The port of the interface for programs and of the pages; it loads when it is used.

aiohttp and pydantic take as long to load as the rest of the queue manager together.
"""

import asyncio
import hashlib
import ipaddress
import re
import socket
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.base.acceptor import tcp_socket
from rpcqm.base.log import get_logger
from rpcqm.config import Configuration
from rpcqm.config.console_files import read_console_files
from rpcqm.service.console_parts import ConsoleParts
from rpcqm.service.unavailable import Unavailable

if TYPE_CHECKING:
    import ssl

    from rpcqm.service.console_server import ConsoleServer

CONSOLE_PORT = 15680

_log = get_logger("service")


class ConsoleDoor:
    """Listens, and stops; the first connection waits until everything is loaded."""

    def __init__(self, parts: ConsoleParts) -> None:
        """Raises ConfigurationError for files of TLS that cannot be used."""
        self._parts = parts
        self._parts.context = read_console_files(parts.configuration.console)
        self._listening: socket.socket | None = None
        self._loading: asyncio.Task[None] | None = None
        self._server: ConsoleServer | None = None
        self._unavailable: Unavailable | None = None

    async def listen(self, host: str, port: int) -> int:
        """Listen, and return the port. Raises OSError."""
        listening = self._listening = tcp_socket(host, port)
        listening.setblocking(False)
        asyncio.get_running_loop().add_reader(listening, self._begin)
        bound = int(listening.getsockname()[1])
        self._parts.operations.logons.home = self._home(host, bound)
        return bound

    def _home(self, host: str, port: int) -> str:
        """Where browsers of this machine find the pages; "" where nobody here can log on."""
        address = ipaddress.ip_address(host)
        is_here = address.is_loopback or address.is_unspecified
        if self._parts.context is None:
            return f"http://{self._parts.instance}:{port}" if is_here else ""
        name = f"[{host}]" if address.version == 6 else host
        return f"https://{'localhost' if is_here else name}:{port}"

    def _begin(self) -> None:
        """Somebody connects for the first time."""
        loop = asyncio.get_running_loop()
        if self._listening is not None:
            loop.remove_reader(self._listening)
        self._loading = loop.create_task(self._load())

    async def _load(self) -> None:
        loop = asyncio.get_running_loop()
        try:  # in a thread, so that others are served meanwhile
            await loop.run_in_executor(None, import_module, "rpcqm.service.console_server")
            from rpcqm.service.console_server import ConsoleServer
        except Exception:  # the queue manager works without it, and whoever runs it must know
            _log.exception("the interface for programs cannot be loaded")
            self._refuse()
            return
        listening, self._listening = self._listening, None
        if listening is not None:
            self._server = ConsoleServer(self._parts, listening)

    def _refuse(self) -> None:
        """Answer 503 from now on: those who connect should not wait for ever."""
        listening, self._listening = self._listening, None
        if listening is not None:
            parts = self._parts
            self._unavailable = Unavailable(listening, parts.admission, parts.context)

    def adjust(self, configuration: Configuration, context: "ssl.SSLContext | None") -> None:
        """Go on with other settings and certificates; connections stay, and so does TLS or none."""
        self._parts.configuration = configuration
        if self._parts.context is not None and context is not None:
            self._parts.context = context
        if self._server is not None:
            self._server.adjust(self._parts)

    async def stop(self) -> None:
        """Answer what is in flight, and close all connections."""
        if self._loading is not None and not self._loading.done():
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
        if self._unavailable is not None:
            self._unavailable.close()
        if self._server is not None:
            await self._server.stop()


def instance_name(name: str, identifier: UUID) -> str:
    """The name of this host that no other program is called by, for browsers on it (G354).

    They take every name below `localhost` for this machine. The digits keep it from strangers'
    pages, and apart from a queue manager of the same name.
    """
    plain = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    digits = hashlib.sha256(b"console" + identifier.bytes).hexdigest()[:12]
    return f"{plain}-{digits}.localhost" if plain else f"rpcqm-{digits}.localhost"
