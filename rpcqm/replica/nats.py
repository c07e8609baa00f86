"""The replicated log in NATS JetStream: a stream of three replicas, each of which syncs it.

A record is a message of the stream, whose number is the record's. An append names the number that
it expects as the last one. No error of the client library proves anything: the outcome is unknown
then.
"""

import asyncio
import re
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
    StreamInfo,
)
from nats.js.errors import APIError, NotFoundError

from rpcqm.base.completion import Completion
from rpcqm.base.log import get_logger
from rpcqm.replica.nats_members import NatsMembers
from rpcqm.replica.reading import EngineReading
from rpcqm.replica.tasks import EngineTasks
from rpcqm.store.errors import LogSilentError, ReplicationError
from rpcqm.store.replication import (
    Absent,
    Appended,
    LogBounds,
    Present,
    Refused,
    Trimmed,
    Unknown,
)

OLDEST = (2, 15, 3)
"""The oldest server whose JetStream keeps everything that it has acknowledged."""
ANSWER_SECONDS = 2.0
"""Seconds for one answer; then the outcome is unknown."""
SILENCE_SECONDS = 3.0
"""Seconds without a record or a heartbeat after which a reading begins anew."""
CONNECT_SECONDS = 4.0
"""Seconds in which a server must have let us in."""
AGAIN_SECONDS = 0.2
EXPECTED_LAST = "Nats-Expected-Last-Sequence"
_LOCKED_OUT = re.compile("authorization|authentication|tls required|tls.*secure", re.IGNORECASE)
_FULL = {10047, 10077}
"""JetStream's own codes: no room on the disk, no room in the stream."""
_PENDING = 64 << 20
"""Octets of records that a reading buffers; further ones are read again."""

T = TypeVar("T")
_log = get_logger("replica")


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """The place of the log. `stream` is its name; `replicas` is 3 except in tests with one server.

    Addresses and options may have passwords in them, which no log line may show.
    """

    servers: tuple[str, ...] = field(repr=False)
    stream: str
    replicas: int = 3
    maximum_bytes: int = 1 << 33
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    """Further options of the client: credentials, TLS."""


class NatsReading(EngineReading):
    """A reading that begins anew after any error."""

    def __init__(
        self,
        log: "NatsLog",
        after: int,
        deliver: Callable[[bytes], None],
        failed: Callable[[ReplicationError], None],
    ) -> None:
        self._opened = log
        super().__init__(log.tasks, after, deliver, failed)

    async def _run(self) -> None:
        while not self._stopped:
            with suppress(NatsError, OSError):
                await self._follow()
                if not self._stopped and await self._is_trimmed():
                    self._trimmed()
                    return
            await asyncio.sleep(AGAIN_SECONDS)

    async def _is_trimmed(self) -> bool:
        return (await self._opened.state()).first > self._next

    async def _follow(self) -> None:
        """Deliver records until one is missing or the server is silent."""
        client, stream = self._opened.client, self._opened.settings.stream
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox, pending_bytes_limit=_PENDING)
        try:
            await self._opened.context.add_consumer(
                stream,
                ConsumerConfig(
                    deliver_subject=inbox,
                    deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                    opt_start_seq=self._next,
                    ack_policy=AckPolicy.NONE,
                    idle_heartbeat=SILENCE_SECONDS / 3,
                    mem_storage=True,
                    num_replicas=1,
                ),
            )
            while self._took(await subscription.next_msg(SILENCE_SECONDS)):
                pass
        finally:  # the server deletes consumers without a listener by itself
            with suppress(NatsError, OSError):
                await subscription.unsubscribe()

    def _took(self, message: Any) -> bool:
        """Deliver a message if it is the next record; False if another one came."""
        if self._stopped:
            return False
        if message.headers and "Status" in message.headers:
            return True
        if message.metadata.sequence.stream != self._next:
            return False
        self._take(message.data)
        return True


class NatsLog:
    """A log opened by `open_log`; a `ReplicatedLog`."""

    def __init__(self, client: Client, settings: NatsSettings) -> None:
        self.client = client
        self.settings = settings
        self.context = client.jetstream(timeout=ANSWER_SECONDS)
        self.members = NatsMembers(self.context, f"{settings.stream}-members", settings.replicas)
        self.tasks = EngineTasks()

    async def close(self) -> None:
        """End the calls under way without an outcome, and close the connection."""
        await self.tasks.end()
        with suppress(TimeoutError, NatsError, OSError):
            async with asyncio.timeout(ANSWER_SECONDS):
                await self.client.close()

    def append(self, after: int, record: bytes) -> Completion[Appended | Unknown | Refused]:
        return self.tasks.completion(self._append(after, record))

    async def _append(self, after: int, record: bytes) -> Appended | Unknown | Refused:
        stream = self.settings.stream
        try:
            acknowledged = await self.context.publish(
                stream, record, stream=stream, headers={EXPECTED_LAST: str(after)}
            )
        except APIError as error:
            reason = error.description or str(error)
            return Refused(reason) if error.err_code in _FULL else Unknown(reason)
        except (NatsError, OSError, ValueError) as error:
            return Unknown(str(error) or type(error).__name__)
        if acknowledged.seq != after + 1 or acknowledged.duplicate:
            return Unknown(f"the log has it as number {acknowledged.seq}")
        return Appended()

    def look(self, number: int) -> Completion[Present | Absent | Trimmed]:
        return self.tasks.completion(self._look(number))

    async def _look(self, number: int) -> Present | Absent | Trimmed:
        """Ask the leader, which returns committed records only."""
        with suppress(NatsError, OSError, ValueError):
            try:
                message = await self.context.get_msg(self.settings.stream, number)
            except NotFoundError:
                return Trimmed() if number < (await self.state()).first else Absent()
            return Present(message.data or b"")
        return Absent()

    def read(
        self,
        after: int,
        deliver: Callable[[bytes], None],
        failed: Callable[[ReplicationError], None],
    ) -> NatsReading:
        return NatsReading(self, after, deliver, failed)

    async def state(self) -> LogBounds:
        """The bounds of the stream; raises the client library's errors."""
        state = (await self.context.stream_info(self.settings.stream)).state
        return LogBounds(max(state.first_seq, 1), state.last_seq, state.bytes)

    def bounds(self) -> Completion[LogBounds]:
        return self.tasks.completion(told(self.state()))

    def trim(self, before: int) -> Completion[None]:
        return self.tasks.completion(told(self._trim(before)))

    async def _trim(self, before: int) -> None:
        await self.context.purge_stream(self.settings.stream, seq=before)

    def report(self, member: str, report: bytes) -> Completion[None]:
        return self.tasks.completion(told(self.members.report(member, report)))

    def reports(self) -> Completion[dict[str, bytes]]:
        return self.tasks.completion(told(self.members.reports()))


async def told(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a call; raises ReplicationError for any error."""
    try:
        return await coroutine
    except (NatsError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise LogSilentError(
            f"The log's servers do not answer as they should: {reason}."
        ) from error


async def open_log(settings: NatsSettings) -> NatsLog:
    """Connect, create the stream if it is missing, and check its settings.

    Raises ReplicationError, with a sentence for the operator.
    """
    log = NatsLog(await connect(settings), settings)
    try:
        await told(_prepare(log))
    except BaseException:
        await log.close()
        raise
    return log


async def connect(settings: NatsSettings) -> Client:
    """A client that notices within seconds that a server is gone, and never gives up.

    That holds once it has been let in: until then errors are ReplicationError.
    """
    errors: list[Exception] = []
    often: Any = 0.2  # its stub allows whole seconds only

    async def failed(error: Exception) -> None:
        del errors[:-1]
        errors.append(error)
        _log.debug("the log's client met an error", error=str(error))

    client = Client()
    connecting = client.connect(
        list(settings.servers),
        error_cb=failed,
        ping_interval=1,
        max_outstanding_pings=2,
        connect_timeout=1,
        reconnect_time_wait=often,
        max_reconnect_attempts=-1,
        **dict(settings.options),
    )
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await connecting
    except (TimeoutError, NatsError, OSError, ValueError) as error:
        with suppress(TimeoutError, NatsError, OSError):
            await client.close()
        raise _not_let_in(errors[-1] if errors else error) from error
    return client


def _not_let_in(error: Exception) -> ReplicationError:
    """The error for a failed first connection: some of these pass with time."""
    reason = str(error) or type(error).__name__
    if isinstance(error, ssl.SSLError) or _LOCKED_OUT.search(reason):
        return ReplicationError(f"The log's servers do not let us in: {reason}.")
    return LogSilentError(f"The log's servers do not answer: {reason}.")


async def _prepare(log: NatsLog) -> None:
    version = log.client.connected_server_version
    if (version.major, version.minor, version.patch) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise ReplicationError(
            f"The log's server has version {version.major}.{version.minor}.{version.patch}, which "
            f"may lose what it has acknowledged: use {wanted} or newer."
        )
    wanted_stream = stream_config(log.settings)
    try:
        info = await log.context.stream_info(log.settings.stream)
    except NotFoundError:
        info = await log.context.add_stream(wanted_stream)
    check_stream(info, log.settings)


def stream_config(settings: NatsSettings) -> StreamConfig:
    """A stream that keeps everything until it is trimmed, and refuses records without room."""
    return StreamConfig(
        name=settings.stream,
        subjects=[settings.stream],
        storage=StorageType.FILE,
        num_replicas=settings.replicas,
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.NEW,
        max_bytes=settings.maximum_bytes,
        max_msgs=-1,
        max_age=0,
        allow_direct=False,
        deny_delete=True,
    )


def check_stream(info: StreamInfo, settings: NatsSettings) -> None:
    """Raise ReplicationError for a stream that deletes by itself, or has other replicas."""
    config = info.config
    keeps = (
        config.storage == StorageType.FILE
        and config.retention == RetentionPolicy.LIMITS
        and config.discard == DiscardPolicy.NEW
        and not config.max_age
        and (config.max_msgs or -1) < 0
        and config.subjects == [settings.stream]
    )
    if not keeps:
        raise ReplicationError(
            f"The stream {settings.stream} is not one that keeps everything: it was not made by "
            "rpcqm, or somebody has changed it."
        )
    if config.num_replicas != settings.replicas:
        raise ReplicationError(
            f"The stream {settings.stream} has {config.num_replicas} replicas, and needs "
            f"{settings.replicas}."
        )
