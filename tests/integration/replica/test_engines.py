"""What every engine of the replicated log does: one contract, in memory and by real servers."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from rpcqm.base.clock import SystemClock
from rpcqm.base.completion import Completion
from rpcqm.base.loop_timers import timers_on_loop
from rpcqm.replica.appending import Appender, FencedError
from rpcqm.replica.lease import Lease, boottime
from rpcqm.replica.nats import NatsSettings, check_stream, open_log, stream_config
from rpcqm.replica.nats_health import look_at_servers
from rpcqm.store.errors import ReplicationError
from rpcqm.store.replication import (
    MAXIMUM_RECORD,
    Absent,
    Appended,
    LogRecord,
    Place,
    Present,
    RecordKind,
    Refused,
    ReplicatedLog,
    Trimmed,
    Unknown,
)
from tests.support.replica.engines import (
    Engines,
    MemoryEngines,
    NatsEngines,
    PostgresqlEngines,
    eventually,
    outcome,
)
from tests.support.replica.nats_servers import NatsServer
from tests.support.waiting import PATIENCE

Servers = Callable[[int], list[NatsServer]]
Check = Callable[[Engines], Awaitable[None]]


@pytest.fixture(params=["memory", "one server", "three servers", "postgresql"])
def engines(request: pytest.FixtureRequest) -> Callable[[], Engines]:
    if request.param == "memory":
        return MemoryEngines
    if request.param == "postgresql":
        url: str = request.getfixturevalue("postgresql")[0].url
        return lambda: PostgresqlEngines(url)
    servers = request.getfixturevalue("servers")(1 if request.param == "one server" else 3)
    return lambda: NatsEngines([server.url for server in servers])


@pytest.fixture
def checked(engines: Callable[[], Engines]) -> Callable[[Check], None]:
    """Runs a check with engines of its own loop."""

    async def run(check: Check) -> None:
        opened = engines()
        try:
            await check(opened)
        finally:
            await opened.close()

    return lambda check: asyncio.run(run(check))


def new_name() -> str:
    return f"log-{secrets.token_hex(4)}"


class Reader:
    """What was delivered of a log."""

    def __init__(self, log: ReplicatedLog, after: int) -> None:
        self.records: list[bytes] = []
        self.errors: list[ReplicationError] = []
        self._came = asyncio.Event()
        self.reading = log.read(after, self._deliver, self._fail)

    def _deliver(self, octets: bytes) -> None:
        self.records.append(octets)
        self._came.set()

    def _fail(self, error: ReplicationError) -> None:
        self.errors.append(error)
        self._came.set()

    async def until(self, seen: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not seen():
                assert not self.errors
                await self._came.wait()
                self._came.clear()


async def answer(log: ReplicatedLog, after: int, record: bytes) -> Appended | Unknown | Refused:
    return await outcome(log.append(after, record))


async def appended(log: ReplicatedLog, after: int, *records: bytes) -> None:
    for number, record in enumerate(records, after):
        assert await outcome(log.append(number, record)) == Appended()


def test_a_record_is_appended_where_the_log_ends(checked: Callable[[Check], None]) -> None:
    async def check(engines: Engines) -> None:
        log = await engines.open(new_name())
        await appended(log, 0, b"first", b"second", bytes(MAXIMUM_RECORD))
        assert await outcome(log.look(1)) == Present(b"first")
        assert await outcome(log.look(2)) == Present(b"second")
        assert await outcome(log.look(3)) == Present(bytes(MAXIMUM_RECORD))
        assert await outcome(log.look(4)) == Absent()
        bounds = await outcome(log.bounds())
        assert (bounds.first, bounds.last) == (1, 3)
        assert bounds.size > MAXIMUM_RECORD

    checked(check)


def test_nothing_is_appended_anywhere_else(checked: Callable[[Check], None]) -> None:
    async def check(engines: Engines) -> None:
        log = await engines.open(new_name())
        assert isinstance(await answer(log, 1, b"too far"), Unknown)
        await appended(log, 0, b"first")
        for after in (0, 2, 1 << 40):
            assert isinstance(await answer(log, after, b"elsewhere"), Unknown)
        bounds = await outcome(log.bounds())
        assert (bounds.first, bounds.last) == (1, 1)

    checked(check)


def test_of_two_writers_at_one_place_one_is_there(checked: Callable[[Check], None]) -> None:
    async def check(engines: Engines) -> None:
        name = new_name()
        views = [await engines.open(name), await engines.open(name)]
        for number in range(5):
            asked = [log.append(number, b"%d" % at) for at, log in enumerate(views)]
            answers = [await outcome(each) if not each.done else each.result() for each in asked]
            (winner,) = [at for at, answer in enumerate(answers) if answer == Appended()]
            seen = await outcome(views[1 - winner].look(number + 1))
            assert seen == Present(b"%d" % winner)

    checked(check)


def test_all_records_are_read_once_and_in_order(checked: Callable[[Check], None]) -> None:
    async def check(engines: Engines) -> None:
        log = await engines.open(new_name())
        records = [b"%d" % number for number in range(30)]
        early = Reader(log, 0)
        await appended(log, 0, *records[:20])
        late = Reader(log, 15)
        await appended(log, 20, *records[20:])
        await early.until(lambda: len(early.records) == 30)
        await late.until(lambda: len(late.records) == 15)
        assert early.records == records
        assert late.records == records[15:]
        late.reading.stop()
        await appended(log, 30, b"after the stop")
        await early.until(lambda: len(early.records) == 31)
        assert len(late.records) == 15
        early.reading.stop()

    checked(check)


def test_members_tell_their_last_words_and_are_forgotten(
    checked: Callable[[Check], None],
) -> None:
    async def check(engines: Engines) -> None:
        name = new_name()
        log, other = await engines.open(name), await engines.open(name)
        assert await outcome(log.reports()) == {}
        await outcome(log.report("first.node", b"1"))
        await outcome(other.report("second-node", b"2"))
        await outcome(log.report("first.node", b"3"))
        assert await outcome(other.reports()) == {"first.node": b"3", "second-node": b"2"}
        await outcome(other.report("first.node", b""))
        await outcome(other.report("nobody", b""))
        assert await outcome(log.reports()) == {"second-node": b"2"}

    checked(check)


def test_what_is_trimmed_is_told_as_that(checked: Callable[[Check], None]) -> None:
    async def check(engines: Engines) -> None:
        log = await engines.open(new_name())
        await appended(log, 0, *(b"%d" % number for number in range(6)))
        await outcome(log.trim(4))
        assert (await outcome(log.bounds())).first == 4
        assert await outcome(log.look(3)) == Trimmed()
        assert await outcome(log.look(4)) == Present(b"3")
        assert await outcome(log.look(7)) == Absent()
        reader = Reader(log, 3)
        await reader.until(lambda: len(reader.records) == 3)
        behind = Reader(log, 1)
        await behind.until(lambda: bool(behind.errors or behind.records))
        assert behind.records == []
        await appended(log, 6, b"6")
        await reader.until(lambda: len(reader.records) == 4)
        await outcome(log.trim(8))
        assert await outcome(log.look(7)) == Trimmed()
        await appended(log, 7, b"7")
        await reader.until(lambda: len(reader.records) == 5)
        assert reader.records == [b"3", b"4", b"5", b"6", b"7"]
        reader.reading.stop()

    checked(check)


def writer(log: ReplicatedLog, end: Place) -> Appender:
    clock = SystemClock()
    timers = timers_on_loop(clock, asyncio.get_running_loop())
    return Appender(log, end, Lease(3_000, boottime), clock, timers, lambda by: None)


async def failing(completion: Completion[Place]) -> BaseException | None:
    try:
        await outcome(completion)
    except ReplicationError as error:
        return error
    return None


def test_who_is_taken_over_from_appends_nothing_more(checked: Callable[[Check], None]) -> None:
    async def check(engines: Engines) -> None:
        name = new_name()
        log, other = await engines.open(name), await engines.open(name)
        first = writer(log, Place(b"i" * 16, 1, 0, bytes(8)))
        end = await outcome(first.append(b"body"))
        assert first.lease.held
        second = writer(other, replace(end, epoch=2))
        taken = await outcome(second.append(b"takeover"))
        assert isinstance(await failing(first.append(b"late")), FencedError)
        assert not first.lease.held
        assert (await outcome(log.bounds())).last == taken.number == 2
        second.stop()

    checked(check)


# NATS alone


def test_a_full_stream_refuses_and_goes_on_when_there_is_room(
    servers: Servers,
) -> None:
    async def run() -> None:
        engines = NatsEngines([server.url for server in servers(3)])
        try:
            log = await engines.open(new_name(), maximum_bytes=100_000)
            await appended(log, 0, bytes(60_000))
            assert isinstance(await answer(log, 1, bytes(60_000)), Refused)
            await outcome(log.trim(2))
            await appended(log, 1, bytes(60_000))
        finally:
            await engines.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "changes", [{"max_age": 60.0}, {"max_msgs": 5}, {"subjects": ["other"]}], ids=str
)
def test_a_stream_that_forgets_is_refused(servers: Servers, changes: dict[str, object]) -> None:
    async def run() -> None:
        settings = NatsSettings((servers(1)[0].url,), new_name(), 1)
        log = await open_log(settings)
        await log.context.delete_stream(settings.stream)
        await log.context.add_stream(stream_config(settings).evolve(**changes))
        info = await log.context.stream_info(settings.stream)
        await log.close()
        with pytest.raises(ReplicationError, match="not one that keeps everything"):
            check_stream(info, settings)
        with pytest.raises(ReplicationError):
            await open_log(settings)

    asyncio.run(run())


def test_a_reading_that_was_stopped_delivers_nothing(servers: Servers) -> None:
    """Even if its task goes on because it has missed its cancellation."""

    async def run() -> None:
        engines = NatsEngines([servers(1)[0].url])
        log = await engines.open(new_name())
        reader = Reader(log, 0)
        await appended(log, 0, b"first")
        await reader.until(lambda: len(reader.records) == 1)
        reader.reading._task = log.tasks.begin(asyncio.sleep(0))  # type: ignore[attr-defined]
        reader.reading.stop()
        other = Reader(log, 1)
        await appended(log, 1, b"second")
        await other.until(lambda: len(other.records) == 1)
        await asyncio.sleep(0.1)
        assert reader.records == [b"first"]
        await engines.close()

    asyncio.run(run())


def test_a_stream_with_fewer_replicas_is_refused(servers: Servers) -> None:
    async def run() -> None:
        settings = NatsSettings(tuple(server.url for server in servers(3)), new_name(), 1)
        await (await open_log(settings)).close()
        with pytest.raises(ReplicationError, match="has 1 replicas, and needs 3"):
            await open_log(replace(settings, replicas=3))

    asyncio.run(run())


def test_an_older_server_is_refused(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rpcqm.replica.nats.OLDEST", (99, 0, 0))
    settings = NatsSettings((servers(1)[0].url,), new_name(), 1)
    with pytest.raises(ReplicationError, match=r"version 2\.\d+\.\d+, which may lose"):
        asyncio.run(open_log(settings))


def test_nothing_acknowledged_is_lost_with_the_leader(
    servers: Servers,
) -> None:
    """It is killed in the middle; the appends go on by themselves, and each is there once."""

    async def run() -> None:
        urls = [server.url for server in servers(3)]
        engines = NatsEngines(urls)
        log = await engines.open(new_name())
        try:
            primary = writer(log, Place(b"i" * 16, 1, 0, bytes(8)))
            for number in range(20):
                await outcome(primary.append(b"%d" % number))
            info = await log.context.stream_info(log.settings.stream)
            assert info.cluster is not None
            (leader,) = [each for each in servers(3) if each.name == info.cluster.leader]
            waiting = [primary.append(b"%d" % number) for number in range(20, 40)]
            leader.kill()
            for each in waiting:
                if not each.done:
                    await outcome(each)
            leader.start()
            reader = Reader(log, 0)
            await reader.until(lambda: len(reader.records) >= 40)
            records = map(LogRecord.decode, reader.records)
            bodies = [record.body for record in records if record.kind is RecordKind.ROWS]
            assert bodies == [b"%d" % number for number in range(40)]
            primary.stop()
            reader.reading.stop()
        finally:
            await engines.close()

    asyncio.run(run())


def test_nothing_acknowledged_is_lost_with_all_servers(servers: Servers) -> None:
    """All three are killed at once in the middle, and started again."""

    async def run() -> None:
        engines = NatsEngines([server.url for server in servers(3)])
        log = await engines.open(new_name())
        try:
            primary = writer(log, Place(b"i" * 16, 1, 0, bytes(8)))
            for number in range(20):
                await outcome(primary.append(b"%d" % number))
            waiting = [primary.append(b"%d" % number) for number in range(20, 30)]
            for server in servers(3):
                server.kill()
            for server in servers(3):
                server.spawn()
            for server in servers(3):
                await asyncio.to_thread(server.wait)
            for each in waiting:
                if not each.done:
                    await outcome(each)
            reader = Reader(log, 0)
            await reader.until(lambda: len(reader.records) >= 30)
            records = map(LogRecord.decode, reader.records)
            bodies = [record.body for record in records if record.kind is RecordKind.ROWS]
            assert bodies == [b"%d" % number for number in range(30)]
            primary.stop()
            reader.reading.stop()
        finally:
            await engines.close()

    asyncio.run(run())


def test_operators_see_which_servers_and_copies_are_not_well(servers: Servers) -> None:
    async def run() -> None:
        settings = NatsSettings(tuple(server.url for server in servers(3)), new_name())
        assert not (await eventually(lambda: look_at_servers(settings))).exists
        log = await NatsEngines(list(settings.servers)).open(settings.stream)
        try:
            assert await outcome(log.append(0, b"record")) == Appended()
            seen = await eventually(lambda: look_at_servers(settings))
            assert seen.exists
            assert seen.leader in {server.name for server in servers(3)}
            lost = next(server for server in servers(3) if server.name != seen.leader)
            lost.kill()
            async with asyncio.timeout(PATIENCE):
                while lost.name not in seen.behind:
                    seen = await eventually(lambda: look_at_servers(settings))
            assert len(seen.silent) == 1
            assert seen.silent[0].startswith(f"{lost.url}: ")
            lost.start()
        finally:
            await log.close()

    asyncio.run(run())
