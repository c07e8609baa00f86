"""Servers of the log that let nobody in but who has the account: one sentence, and no start."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rpcqm.config.replica_section import ReplicaSection
from rpcqm.replica import nats
from rpcqm.service.cluster.engines import open_engine
from rpcqm.store.errors import LogSilentError, ReplicationError
from tests.support.ports import reserved_port
from tests.support.replica.nats_servers import NatsServer


class ClosedServer(NatsServer):
    """One that asks for an account."""

    def configuration(self) -> str:
        return f"{super().configuration()}\nauthorization {{ user: u, password: p }}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    made = ClosedServer(tmp_path_factory.mktemp("closed"), "closed", reserved_port())
    made.start()
    yield made
    made.kill()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats, "CONNECT_SECONDS", 1.0)


def opened(section: ReplicaSection) -> None:
    async def run() -> None:
        await (await open_engine(section)).close()

    asyncio.run(run())


def account(place: Path, password: str) -> Path:
    path = place / "account"
    path.write_text(f"user = 'u'\npassword = '{password}'\n")
    path.chmod(0o600)
    return path


def test_who_has_no_account_is_refused_for_good(server: NatsServer, tmp_path: Path) -> None:
    section = ReplicaSection(log=(server.url,), name="closed")
    for each in (section, replace(section, credentials_file=account(tmp_path, "wrong"))):
        with pytest.raises(ReplicationError, match=r"do not let us in: .*Authorization") as caught:
            opened(each)
        assert not isinstance(caught.value, LogSilentError)
        assert "wrong" not in str(caught.value)
    opened(replace(section, credentials_file=account(tmp_path, "p"), maximum_bytes=1 << 24))


def test_servers_that_are_not_there_may_come_later() -> None:
    section = ReplicaSection(log=(f"nats://127.0.0.1:{reserved_port()}",), name="absent")
    with pytest.raises(LogSilentError, match="do not answer"):
        opened(section)
