"""What PostgreSQL shows before it is replicated, which is no proof of anything."""

import asyncio
import secrets
from typing import Any

import asyncpg
import pytest

from rpcqm.replica import postgresql as postgresql_engine
from rpcqm.replica.postgresql import PostgresqlSettings, open_log
from rpcqm.store.errors import ReplicationError
from rpcqm.store.replication import Absent, Appended, Present, Unknown
from tests.support.replica.engines import eventually, outcome
from tests.support.replica.postgresql_servers import PostgresqlServer
from tests.support.waiting import PATIENCE

WAITS = "select pid from pg_stat_activity where wait_event = 'SyncRep' and query like $1"


async def cancel_the_wait(connection: Any, log: str) -> None:
    """Have the append that waits for the standby give up, as an operator may."""
    async with asyncio.timeout(PATIENCE):
        while not (waiting := await connection.fetchval(WAITS, f"%{log}%")):
            await asyncio.sleep(0.05)
    assert await connection.fetchval("select pg_cancel_backend($1)", waiting)


def test_what_the_standby_does_not_have_is_in_doubt(
    postgresql: list[PostgresqlServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is there and everybody sees it, but it may be gone with the machine."""
    monkeypatch.setattr(postgresql_engine, "ANSWER_SECONDS", PATIENCE)

    async def run() -> None:
        primary, standby = postgresql
        name = f"log-{secrets.token_hex(4)}"
        log = await eventually(lambda: open_log(PostgresqlSettings(primary.url, name)))
        operator = await asyncpg.connect(primary.url)
        try:
            assert await outcome(log.append(0, b"first")) == Appended()
            standby.pause()
            appended = log.append(1, b"second")
            await cancel_the_wait(operator, name)
            async with asyncio.timeout(PATIENCE):
                while not appended.done:
                    await asyncio.sleep(0.05)
            assert appended.result() == Unknown("the commit was not replicated")
            monkeypatch.setattr(postgresql_engine, "ANSWER_SECONDS", 1.0)
            assert await operator.fetchval(f'select count(*) from "{name}"') == 2
            assert await outcome(log.look(2)) == Absent()
            delivered: list[bytes] = []
            reading = log.read(0, delivered.append, lambda error: None)
            await asyncio.sleep(0.3)
            assert delivered == []
            standby.go_on()
            monkeypatch.setattr(postgresql_engine, "ANSWER_SECONDS", PATIENCE)
            async with asyncio.timeout(PATIENCE):
                while await outcome(log.look(2)) != Present(b"second"):
                    await asyncio.sleep(0.05)
                while len(delivered) < 2:
                    await asyncio.sleep(0.05)
            refused = await outcome(log.append(1, b"other"))
            assert isinstance(refused, Unknown)
            reading.stop()
        finally:
            standby.go_on()
            await operator.close()
            await log.close()

    asyncio.run(run())


def test_a_database_that_waits_for_nobody_is_refused(postgresql: list[PostgresqlServer]) -> None:
    async def refused() -> str:
        log = await open_log(PostgresqlSettings(postgresql[0].url, "refused"))
        await log.close()
        return ""

    async def run() -> None:
        for _ in range(40):
            try:
                await refused()
            except ReplicationError as error:
                if "replicates nothing" in str(error):
                    return
            await asyncio.sleep(0.1)
        raise AssertionError("it was not refused")

    postgresql[0].configure("synchronous_standby_names = ''\n")
    try:
        asyncio.run(run())
    finally:
        postgresql[0].configure("synchronous_standby_names = 'ANY 1 (*)'\n")


@pytest.mark.parametrize("name", ["", 'x"; drop table y; --', "UPPER", "n" * 60])
def test_a_name_that_would_need_quoting_is_refused(name: str) -> None:
    with pytest.raises(ReplicationError, match="is no name of a log"):
        asyncio.run(open_log(PostgresqlSettings("postgresql://127.0.0.1:1/x", name)))


def test_a_database_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(ReplicationError, match="does not answer as it should"):
        asyncio.run(open_log(PostgresqlSettings("postgresql://127.0.0.1:1/x", "log")))
