"""The replicated log in PostgreSQL with synchronous replication, whoever moves its primary.

A record is a row, whose key is the record's number. An append moves the end of the log from the
expected number, and adds the row, in one statement.

A row that PostgreSQL shows may be on one machine only: a commit whose wait for the standby was
cancelled succeeds with a warning, and after a crash of the server everything is visible that it had
written. So rows count only once a later commit has been replicated: then all before it have been,
too.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import asyncpg
from asyncpg.exceptions import InsufficientResourcesError

from rpcqm.base.completion import Completion
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

ANSWER_SECONDS = 2.0
"""Seconds for one answer; then the outcome is unknown."""
POLL_SECONDS = 0.05
RECORDS = 64
"""Records of one look for new ones."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,50}")
_WARNING = "WARNING"
_LOCKED_OUT = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    ssl.SSLError,
)
_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, asyncio.IncompleteReadError)

T = TypeVar("T")


class _NotReplicated(Exception):
    """A commit succeeded on one machine; whether on another one is uncertain."""


@dataclass(frozen=True, slots=True)
class PostgresqlSettings:
    """The place of the log. `log` is its name; `alone` allows a server without a standby, for
    tests."""

    address: str = field(repr=False)
    log: str
    alone: bool = False
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    """Further options of the client: an account, TLS."""


class _Connection:
    """One connection, replaced when it is lost; it runs one statement at a time."""

    def __init__(self, settings: PostgresqlSettings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()
        self._connection: Any = None
        self._warned = False

    async def run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Run a function that ends with a commit; raises one of `_ERRORS`, or _NotReplicated."""
        async with self._turn, asyncio.timeout(ANSWER_SECONDS):
            try:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self._connect()
                self._warned = False
                value = await work(self._connection)
            except BaseException:
                self.end()  # whatever the server still does, nobody gets its answer
                raise
            if self._warned:
                raise _NotReplicated("the commit was not replicated")
            return value

    async def _connect(self) -> Any:
        connection = await asyncpg.connect(
            self._settings.address,
            timeout=ANSWER_SECONDS,
            target_session_attrs="read-write",
            server_settings={"synchronous_commit": "on", "client_min_messages": "warning"},
            **dict(self._settings.options),
        )
        connection.add_log_listener(self._told)
        return connection

    def _told(self, connection: Any, message: Any) -> None:
        self._warned = self._warned or message.severity_en == _WARNING

    def end(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


class PostgresqlReading(EngineReading):
    """A reading that looks again and again."""

    def __init__(
        self,
        log: "PostgresqlLog",
        after: int,
        deliver: Callable[[bytes], None],
        failed: Callable[[ReplicationError], None],
    ) -> None:
        self._opened = log
        self._connection = _Connection(log.settings)
        super().__init__(log.tasks, after, deliver, failed)

    def stop(self) -> None:
        super().stop()
        self._connection.end()

    async def _run(self) -> None:
        while not self._stopped:
            found: list[bytes] | None = []
            with suppress(*_ERRORS, _NotReplicated):
                found = await self._connection.run(self._look)
            if found is None:
                self._connection.end()
                self._trimmed()
                return
            for record in () if self._stopped else found:
                self._take(record)
            if len(found) < RECORDS:
                await asyncio.sleep(POLL_SECONDS)

    async def _look(self, connection: Any) -> list[bytes] | None:
        """The next records, all of them replicated; None if they were trimmed."""
        log = self._opened
        async with connection.transaction():
            rows = await connection.fetch(log.statements.read, self._next, self._next + RECORDS)
            if await connection.fetchval(log.statements.first) > self._next:
                return None
            if rows:
                await connection.execute(log.statements.replicate)
        return [row["record"] for row in rows]


class _Statements:
    """The statements for one log, whose name needs no quoting."""

    def __init__(self, log: str) -> None:
        self.make = f"""
            create table if not exists "{log}" (number bigint primary key, record bytea not null);
            alter table "{log}" alter column record set storage external;
            create table if not exists "{log} ends" (
                one boolean primary key, first bigint not null, last bigint not null,
                replicated bigint not null, bytes bigint not null);
            insert into "{log} ends" values (true, 1, 0, 0, 0) on conflict do nothing;
            create table if not exists "{log} members" (
                member text primary key, report bytea not null);
        """
        self.append = f"""
            with moved as (
                update "{log} ends" set last = $1 + 1, bytes = bytes + octet_length($2::bytea)
                where last = $1 returning last)
            insert into "{log}" select last, $2 from moved returning number
        """
        self.read = f'select record from "{log}" where number >= $1 and number < $2 order by number'
        self.first = f'select first from "{log} ends"'
        self.replicate = f'update "{log} ends" set replicated = replicated + 1'
        self.bounds = f'select first, last, bytes from "{log} ends"'
        self.trim = f"""
            with gone as (
                delete from "{log}" where number < $1 returning octet_length(record) as size)
            update "{log} ends" set first = greatest(first, least($1, last + 1)),
                bytes = bytes - (select coalesce(sum(size), 0) from gone)
        """
        self.report = f"""
            insert into "{log} members" values ($1, $2)
            on conflict (member) do update set report = excluded.report
        """
        self.forget = f'delete from "{log} members" where member = $1'
        self.reports = f'select member, report from "{log} members"'


class PostgresqlLog:
    """A log opened by `open_log`; a `ReplicatedLog`."""

    def __init__(self, settings: PostgresqlSettings) -> None:
        self.settings = settings
        self.statements = _Statements(settings.log)
        self.connection = _Connection(settings)
        self.tasks = EngineTasks()

    async def close(self) -> None:
        """End the calls under way without an outcome, and close the connections."""
        await self.tasks.end()
        self.connection.end()

    def append(self, after: int, record: bytes) -> Completion[Appended | Unknown | Refused]:
        return self.tasks.completion(self._append(after, record))

    async def _append(self, after: int, record: bytes) -> Appended | Unknown | Refused:
        async def insert(connection: Any) -> int | None:
            number: int | None = await connection.fetchval(self.statements.append, after, record)
            return number

        try:
            number = await self.connection.run(insert)
        except InsufficientResourcesError as error:
            return Refused(str(error))
        except (*_ERRORS, _NotReplicated) as error:
            return Unknown(str(error) or type(error).__name__)
        return Unknown("the log ends elsewhere") if number is None else Appended()

    def look(self, number: int) -> Completion[Present | Absent | Trimmed]:
        return self.tasks.completion(self._look(number))

    async def _look(self, number: int) -> Present | Absent | Trimmed:
        async def look(connection: Any) -> Present | Absent | Trimmed:
            async with connection.transaction():
                rows = await connection.fetch(self.statements.read, number, number + 1)
                if rows:
                    await connection.execute(self.statements.replicate)
                    return Present(rows[0]["record"])
                first = await connection.fetchval(self.statements.first)
            return Trimmed() if number < first else Absent()

        with suppress(*_ERRORS, _NotReplicated):
            return await self.connection.run(look)
        return Absent()

    def read(
        self,
        after: int,
        deliver: Callable[[bytes], None],
        failed: Callable[[ReplicationError], None],
    ) -> PostgresqlReading:
        return PostgresqlReading(self, after, deliver, failed)

    def bounds(self) -> Completion[LogBounds]:
        async def look(connection: Any) -> LogBounds:
            row = await connection.fetchrow(self.statements.bounds)
            return LogBounds(row["first"], row["last"], row["bytes"])

        return self.tasks.completion(self.told(look))

    def trim(self, before: int) -> Completion[None]:
        async def trim(connection: Any) -> None:
            await connection.execute(self.statements.trim, before)

        return self.tasks.completion(self.told(trim))

    def report(self, member: str, report: bytes) -> Completion[None]:
        async def tell(connection: Any) -> None:
            if report:
                await connection.execute(self.statements.report, member, report)
            else:
                await connection.execute(self.statements.forget, member)

        return self.tasks.completion(self.told(tell))

    def reports(self) -> Completion[dict[str, bytes]]:
        async def look(connection: Any) -> dict[str, bytes]:
            rows = await connection.fetch(self.statements.reports)
            return {row["member"]: row["report"] for row in rows}

        return self.tasks.completion(self.told(look))

    async def told(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Run a function; raises ReplicationError for any error."""
        try:
            return await self.connection.run(work)
        except _LOCKED_OUT as error:
            raise ReplicationError(f"The log's database does not let us in: {error}.") from error
        except (*_ERRORS, _NotReplicated) as error:
            reason = str(error) or type(error).__name__
            raise LogSilentError(
                f"The log's database does not answer as it should: {reason}."
            ) from error


async def open_log(settings: PostgresqlSettings) -> PostgresqlLog:
    """Create the log's tables if they are missing, and check that commits are replicated.

    Raises ReplicationError, with a sentence for the operator.
    """
    if not _NAME.fullmatch(settings.log):
        raise ReplicationError(f"{settings.log} is no name of a log: use letters and digits.")
    log = PostgresqlLog(settings)
    try:
        if not settings.alone and not await log.told(_standbys):
            raise ReplicationError(
                "The log's database replicates nothing before it answers: set "
                "synchronous_standby_names, and start the standby."
            )
        await log.told(lambda connection: connection.execute(log.statements.make))
    except BaseException:
        await log.close()
        raise
    return log


async def _standbys(connection: Any) -> int:
    """How many standbys a commit may wait for; 0 if it does not wait."""
    if not await connection.fetchval("show synchronous_standby_names"):
        return 0
    count: int = await connection.fetchval(
        "select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')"
    )
    return count
