"""The options of the data source `msmq`: which queue, and how it is reached."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from rpcqm.base.files import read_private
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.mq import server_at
from rpcqm.client.names import HERE, format_name
from rpcqm.client.target import LocalServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.pipeline.errors import in_a_sentence

DEFAULT_BATCH = 10_000
LONGEST_PASSWORD = 4_096
"""Octets of a file of a password that are read."""


@dataclass(frozen=True)
class QueueOptions:
    """How the queue is reached; made of a data source's options, and sent to executors."""

    queue: str
    socket: str = ""
    server: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    domain: str = ""
    most: int = DEFAULT_BATCH
    partitions: int = 1
    fail_on_data_loss: bool = True

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "QueueOptions":
        """Raises ValueError when no queue or no server is given, OSError for a file of a password.

        PermissionsTooWide (a ValueError) is raised for a file that others may read.
        """
        if not options.get("queue") or not (options.get("socket") or options.get("server")):
            raise ValueError("the options queue and server (or socket) are needed")
        return cls(
            options["queue"],
            options.get("socket", ""),
            options.get("server", ""),
            options.get("user", ""),
            _password(options),
            options.get("domain", ""),
            int(options.get("maxmessagesperbatch", DEFAULT_BATCH)),
            int(options.get("partitions", 1)),
            options.get("failondataloss", "true").lower() == "true",
        )

    def client(self) -> BlockingClient:
        if self.socket:
            return BlockingClient(LocalServer(Path(self.socket)))
        user = f"{self.domain}\\{self.user}" if self.domain else self.user
        return BlockingClient(server_at(self.server, user or None, self.password))

    @property
    def address(self) -> str:
        """Where the queue manager is."""
        return self.socket or self.server.lower()

    def in_a_sentence(self) -> AbstractContextManager[None]:
        """Make one sentence, a SourceError, of what the queue manager refuses."""
        return in_a_sentence(f"The queue {self.queue} at {self.address}")

    @property
    def name(self) -> FormatName:
        """The queue's format name; `client.names` says how a queue may be named."""
        return format_name(self.queue, self.server.partition(":")[0] or HERE)


def _password(options: Mapping[str, str]) -> str:
    """The password, or the first line of the file that holds it."""
    if name := options.get("passwordfile", ""):
        return read_private(Path(name), LONGEST_PASSWORD).decode().split("\n")[0].rstrip("\r")
    return str(options.get("password", ""))
