"""Queues in a few lines, for programs with and without an event loop.

    from rpcqm.client import mq

    with mq.open("orders") as queue:
        queue.send("hello")
        for message in queue.receive(timeout=5):
            print(message.value)

Timeouts are seconds here, and None waits for ever. See docs/client.md.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from rpcqm.base.errors import DecodeError, HResult, MQError, RpcFault
from rpcqm.client.async_queue import AsyncQueue, Correlation, Message, host_of
from rpcqm.client.blocking import Blocking, BlockingClient
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.names import format_name, format_names
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.ready import ENDPOINT_FILE, ReadyFile
from rpcqm.client.target import (
    HandleLostError,
    LocalServer,
    OutcomeUnknownError,
    RemoteServer,
    ServerUnreachableError,
    Target,
    host_and_port,
)
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import MessageIdentifier

if TYPE_CHECKING:
    pass

__all__ = [
    "AsyncQueue",
    "BlockingMessage",
    "DecodeError",
    "HResult",
    "HandleLostError",
    "LocalServer",
    "MQError",
    "Message",
    "OutcomeUnknownError",
    "OutgoingMessage",
    "Queue",
    "ReceivedMessage",
    "RemoteServer",
    "RpcFault",
    "ServerUnreachableError",
    "format_name",
    "local_server",
    "open",
    "open_async",
    "request",
    "server_at",
]

DATA_DIR = "RPCQM_DATA_DIR"


class HasTarget(Protocol):
    """An object whose `target` is a queue manager, such as PrivateQueueManager in tests."""

    @property
    def target(self) -> Target: ...


Server = Target | HasTarget | str
"""What `open` takes for a queue manager."""


def local_server(data_dir: Path | str | None = None) -> LocalServer:
    """The queue manager of this machine that runs on a data directory.

    The default directory is `$RPCQM_DATA_DIR`, or `var` if that is not set. Raises
    ServerUnreachableError if no queue manager runs on the directory.
    """
    directory = Path(data_dir if data_dir is not None else os.environ.get(DATA_DIR, "var"))
    try:
        return LocalServer(ReadyFile.read(directory / ENDPOINT_FILE).socket)
    except (OSError, ValueError) as error:
        raise ServerUnreachableError(f"No queue manager runs on {directory}.") from error


def server_at(address: str, user: str | None = None, password: str = "") -> RemoteServer:
    """The queue manager at `HOST` or `HOST:PORT`; the port is that of its endpoint mapper.

    With a user (`NAME` or `DOMAIN\\NAME`) calls are authenticated and encrypted. Raises
    ServerUnreachableError if `address` has neither form.
    """
    try:
        host, port = host_and_port(address)
    except ValueError as error:
        raise ServerUnreachableError(f"{error}.") from None
    if user is None:
        return RemoteServer(host, port)
    from rpcqm.rpc.security.ntlm import NtlmCredentials

    domain, _, name = user.rpartition("\\")
    return RemoteServer(host, port, NtlmCredentials(name, password, domain))


class BlockingMessage:
    """A Message whose `acknowledge` and `release` wait; otherwise the same."""

    def __init__(self, client: BlockingClient, message: Message) -> None:
        self._client = client
        self._message = message

    @property
    def wrapped(self) -> Message:
        return self._message

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    def acknowledge(self) -> None:
        """Confirm the message, so that it leaves its queue. A second call does nothing."""
        self._client.run(self._message.acknowledge())

    def release(self) -> None:
        """Give the message back to its queue. A second call does nothing."""
        self._client.run(self._message.release())


class Queue:
    """A queue; use it in a `with` block.

    A received message is acknowledged when the program asks for the next one or ends the block;
    it is given back when an exception leaves the block.
    """

    def __init__(self, queue: AsyncQueue, client: BlockingClient) -> None:
        self._queue, self._client = queue, client

    @property
    def name(self) -> FormatName:
        return self._queue.name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._client.run(self._queue.__aexit__(kind, error, traceback))
        finally:
            self._client.close()

    def send(self, body: object, **fields: object) -> MessageIdentifier:
        """Send a body of any type that `encode_body` takes, or an OutgoingMessage.

        `fields` are further fields of OutgoingMessage; queues may be named by texts, and times be
        timedeltas. A recoverable message (the default) is durable when this returns its
        identifier. Raises TypeError or ValueError for what a message cannot have.
        """
        return self._client.run(self._queue.send(body, **fields))

    @contextmanager
    def transaction(self, *others: "Queue") -> Iterator[None]:
        """Send, receive and move everything in the block when that ends, as one.

        If an exception leaves the block, nothing is sent, and what was received or moved is back.
        `others` are further queues of the same queue manager that take part. Transactional queues
        take messages only in transactions, and other queues none. Raises RuntimeError if one of
        the queues is in a transaction already, ValueError if one is elsewhere, and
        MQError(MQ_ERROR_TRANSACTION_ENLIST) if the queue manager is not rpcqm.
        """
        with Blocking(self._client, self._queue.transaction(*(each._queue for each in others))):
            yield

    def receive(
        self,
        timeout: float | None = None,
        limit: int | None = None,
        correlation: "Correlation" = None,
    ) -> Iterator[BlockingMessage]:
        """Receive messages as they come, at most `limit` of them; with `correlation` only answers.

        The iteration ends when no message comes within `timeout` seconds.
        """
        received = 0
        while limit is None or received < limit:
            message = self.receive_one(timeout, correlation)
            if message is None:
                return
            received += 1
            yield message
        self._client.run(self._queue._settle())

    def receive_one(
        self, timeout: float | None = None, correlation: "Correlation" = None
    ) -> BlockingMessage | None:
        """Receive the next message; returns None if no message comes within `timeout` seconds.

        With `correlation`, the identifier of a question, it is the next message that answers it.
        """
        message = self._client.run(self._queue.receive_one(timeout, correlation))
        return None if message is None else BlockingMessage(self._client, message)

    def move(self, message: BlockingMessage | ReceivedMessage | int, to: str) -> None:
        """Move a message to a subqueue of this queue, such as `poison`; "" is the queue itself.

        `message` was received and not settled yet, or peeked at, or is a lookup identifier. In a
        transaction it moves when that ends well. Raises MQError if somebody else holds it.
        """
        moved = message.wrapped if isinstance(message, BlockingMessage) else message
        self._client.run(self._queue.move(moved, to))

    def peek(self, timeout: float | None = None) -> ReceivedMessage | None:
        """The first message, which stays; None if no message comes within `timeout` seconds."""
        return self._client.run(self._queue.peek(timeout))

    def browse(self) -> Iterator[ReceivedMessage]:
        """The messages of the queue in their order; they stay in it."""
        return self._client.each(self._queue.browse(), at_a_time=1)

    def purge(self) -> None:
        """Delete every message."""
        self._client.run(self._queue.purge())


def open(
    queue: str | FormatName,
    server: Server | None = None,
    *,
    user: str | None = None,
    password: str = "",
    peek_only: bool = False,
    exclusive: bool = False,
    patience: float = 0.0,
) -> Queue:
    """A queue, by its short name, path name or format name; several to send to, with commas.

    `server` is `HOST` or `HOST:PORT` (with `user` and `password` calls are encrypted), a Target,
    a queue manager of rpcqm.testing, or by default the queue manager of this machine. If the
    connection is lost, calls try for `patience` seconds to reach the server again. Raises
    MQError if `queue` names no queue, ServerUnreachableError if `server` cannot be found.
    """
    target, names = _named(queue, server, user, password)
    client = BlockingClient(target, patience)
    wrapped = AsyncQueue(client.wrapped, *names, peek_only=peek_only, exclusive=exclusive)
    return Queue(wrapped, client)


def open_async(
    queue: str | FormatName,
    server: Server | None = None,
    *,
    user: str | None = None,
    password: str = "",
    peek_only: bool = False,
    exclusive: bool = False,
    patience: float = 0.0,
) -> AsyncQueue:
    """A queue for programs with an event loop; the arguments are those of `open`."""
    target, names = _named(queue, server, user, password)
    client = QueueManagerClient(target, patience)
    return AsyncQueue(client, *names, peek_only=peek_only, exclusive=exclusive)


def request(
    queue: str | FormatName,
    body: object,
    response_queue: str | FormatName,
    timeout: float | None = 30.0,
    server: Server | None = None,
    **fields: object,
) -> ReceivedMessage:
    """Send a question to a queue, and receive the answer that names it by its correlation.

    `response_queue` is where the answer comes, a queue of the same queue manager; a program on
    another machine needs its full name. `fields` are further fields of OutgoingMessage. Raises
    TimeoutError if no answer comes within `timeout` seconds.
    """
    with open(queue, server) as questions, open(response_queue, server) as replies:
        question = questions.send(body, response_queue=replies.name, **fields)
        answer = replies.receive_one(timeout, correlation=question)
        if answer is None:
            raise TimeoutError(f"no answer to {question} came to {replies.name} in {timeout} s")
        return answer.wrapped.received


def _named(
    queue: str | FormatName, server: Server | None, user: str | None, password: str
) -> tuple[Target, tuple[FormatName, ...]]:
    if server is None:
        target: Target = local_server()
    elif isinstance(server, str):
        target = server_at(server, user, password)
    else:
        target = server if isinstance(server, LocalServer | RemoteServer) else server.target
    return target, format_names(queue, host_of(target)) if isinstance(queue, str) else (queue,)
