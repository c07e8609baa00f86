"""The options of the data source `msmq`: which queue, and how it is reached."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.files import read_private
from rpcqm.pipeline.errors import in_a_sentence

if TYPE_CHECKING:
    from rpcqm.client.blocking import BlockingClient
    from rpcqm.codec.names.format_name import FormatName

DEFAULT_BATCH = 10_000
DEFAULT_BYTES = 1 << 30
"""Octets of messages in a batch of a stream, where the queue manager tells sizes without a call for
each: of the largest messages 10,000 would be 40 GB."""
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
    most_octets: int | None = None
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
            _number(options, "maxMessagesPerBatch", DEFAULT_BATCH),
            _number(options, "maxBytesPerBatch", 0) or None,
            _number(options, "partitions", 1),
            options.get("failondataloss", "true").lower() == "true",
        )

    def client(self) -> "BlockingClient":
        """A connection to the queue manager."""
        # Only now, because not all processes of Spark need it.
        from rpcqm.client.blocking import BlockingClient
        from rpcqm.client.mq import server_at
        from rpcqm.client.target import LocalServer

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
    def name(self) -> "FormatName":
        """The queue's format name; `client.names` says how a queue may be named."""
        from rpcqm.client.names import HERE, format_name

        return format_name(self.queue, self.server.partition(":")[0] or HERE)


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name.lower())
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"the option {name} is a whole number from 1 on, not {text!r}")
    return int(text)


def _password(options: Mapping[str, str]) -> str:
    """The password, or the first line of the file that holds it."""
    if name := options.get("passwordfile", ""):
        return read_private(Path(name), LONGEST_PASSWORD).decode().split("\n")[0].rstrip("\r")
    return str(options.get("password", ""))
