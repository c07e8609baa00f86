"""/healthz and /readyz, and what answers where the interface cannot be loaded."""

import asyncio
import errno
import http.client
import socket
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rpcqm.config import load
from rpcqm.service import data_directory
from rpcqm.service.queue_manager_service import QueueManagerService
from rpcqm.service.unavailable import HEAD_BYTES
from rpcqm.store.database import Database
from rpcqm.store.records import Family
from rpcqm.testing import private_queue_manager
from tests.support.api.programs import Program
from tests.support.modules import modules_of
from tests.support.waiting import PATIENCE

CONSOLE = ("--console-port", "0")


def ask(address: tuple[str, int], target: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE)
    connection.request(method, target)
    answer = connection.getresponse()
    told = answer.status, answer.read()
    connection.close()
    return told


class Asked(QueueManagerService):
    """Asks whether it is ready before its start has ended, and after its stop has begun."""

    def _publish(self) -> None:
        super()._publish()
        self._undo.push_async_callback(self.ask, "stopping")

    async def _open_listeners(self, *parts: object) -> None:
        await super()._open_listeners(*parts)  # type: ignore[arg-type]
        await self.ask("starting")

    async def ask(self, when: str) -> None:
        address = "127.0.0.1", self._ports["console"]
        for target in ("/readyz", "/healthz"):
            status, _ = await asyncio.to_thread(ask, address, target)
            self.told.append((when, target, status))

    told: list[tuple[str, str, int]]


def test_it_is_ready_from_the_end_of_its_start_to_the_beginning_of_its_stop(
    tmp_path: Path,
) -> None:
    ports = {f"RPCQM_{door}_PORT": "0" for door in ("EPM", "RPC", "QM2QM", "BINARY", "CONSOLE")}
    configuration = load({}, None, ports | {"RPCQM_DATA_DIR": str(tmp_path / "data")})

    async def run() -> list[tuple[str, str, int]]:
        service = Asked(configuration)
        service.told = []
        await service.start()
        await service.ask("served")
        await service.stop()
        return service.told

    assert asyncio.run(run()) == [
        ("starting", "/readyz", 503),
        ("starting", "/healthz", 200),
        ("served", "/readyz", 200),
        ("served", "/healthz", 200),
        ("stopping", "/readyz", 503),
        ("stopping", "/healthz", 200),
    ]


@pytest.mark.parametrize("library", ["pydantic", "aiohttp"])
def test_where_a_library_is_missing_requests_are_answered_503_and_the_log_says_why(
    tmp_path: Path, library: str
) -> None:
    (tmp_path / library).mkdir()
    (tmp_path / library / "__init__.py").write_text(f"raise ImportError('no {library} here')\n")
    with private_queue_manager(CONSOLE, environment=modules_of(tmp_path)) as running:
        address = running.endpoint("console")
        for target in ("/readyz", "/api/v1/queues"):
            assert ask(address, target)[0] == 503
        assert ask(address, "/api/v1/queues", "POST")[0] == 503
        assert "the interface for programs cannot be loaded" in running.log
        assert f"no {library} here" in running.log
        running.run("queue", "create", "orders")  # everything else is served


@pytest.mark.bound("console.head_without_server")
def test_a_head_without_end_is_answered_where_nothing_could_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "pydantic").mkdir()
    (tmp_path / "pydantic" / "__init__.py").write_text("raise ImportError('broken')\n")
    with private_queue_manager(CONSOLE, environment=modules_of(tmp_path)) as running:
        for size, answered in ((HEAD_BYTES - 1, False), (HEAD_BYTES, True)):
            with socket.create_connection(running.endpoint("console"), PATIENCE) as stranger:
                stranger.sendall(b"G" * size)
                said = b"".join(iter(lambda: stranger.recv(1 << 16), b""))
            assert said.startswith(b"HTTP/1.1 503") == answered


def test_the_icon_is_a_picture_that_loads_nothing() -> None:
    with private_queue_manager(CONSOLE) as running:
        connection = http.client.HTTPConnection(*running.endpoint("console"), timeout=PATIENCE)
        connection.request("GET", "/favicon.ico")
        answer = connection.getresponse()
        picture = answer.read()
        assert (answer.status, answer.headers["Content-Type"]) == (200, "image/svg+xml")
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Set-Cookie"] is None
        assert ElementTree.fromstring(picture).tag.endswith("}svg")
        assert b"href" not in picture
        connection.close()


def test_what_is_asked_once_the_disk_has_failed_is_answered_503(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends with its disk; this one goes on, so that it can be asked."""
    ports = {f"RPCQM_{door}_PORT": "0" for door in ("EPM", "RPC", "QM2QM", "BINARY", "CONSOLE")}
    configuration = load({}, None, ports | {"RPCQM_DATA_DIR": str(tmp_path / "data")})
    monkeypatch.setattr(data_directory, "exit_unanswered", lambda error: None)

    async def run() -> list[tuple[int, str | None, str | None]]:
        service = QueueManagerService(configuration)
        await service.start()
        address = "127.0.0.1", service._ports["console"]
        asked = [("GET", each) for each in ("/readyz", "/api/v1/queues", "/console/logon")]
        asked.append(("POST", "/api/v1/queues/x/messages"))
        before = [await asyncio.to_thread(told_by, address, *each) for each in asked]
        with monkeypatch.context() as patch:
            patch.setattr(Database, "write", failed)
            store = service._engine.store
            with store.transaction("anything") as change:
                change.put(Family.META, b"key", b"value")
            while not store.has_stopped:
                await asyncio.sleep(0)
            after = [await asyncio.to_thread(told_by, address, *each) for each in asked]
        await service.stop()
        assert [status for status, _, _ in before] == [200, 401, 303, 401]
        return after

    problem = 503, "5", "application/problem+json"
    not_ready = 503, None, "text/plain; charset=utf-8"
    assert asyncio.run(run()) == [not_ready, problem, problem, problem]


def failed(*parts: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def told_by(
    address: tuple[str, int], method: str, target: str
) -> tuple[int, str | None, str | None]:
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE)
    connection.request(method, target)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers["Retry-After"], answer.headers["Content-Type"]


def test_a_disk_without_room_is_answered_503_until_it_has_some_again() -> None:
    with private_queue_manager(CONSOLE) as running:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        running.run(*words, input="secret\n")
        program = Program(running.endpoint("console"), "boss")
        assert program.ask("POST", "/queues", {"name": "orders"}).status == 201
        running.reload("[storage]\nreserve = 1000000000\n")
        told = program.ask("POST", "/queues/orders/messages", b"x")
        assert (told.status, told.code) == (503, "MQ_ERROR_INSUFFICIENT_RESOURCES")
        assert told.headers["Content-Type"] == "application/problem+json"
        assert int(told.headers["Retry-After"]) > 0
        assert ask(running.endpoint("console"), "/readyz")[0] == 200, "messages can be taken"
        running.reload("[storage]\nreserve = 1\n")
        assert program.ask("POST", "/queues/orders/messages", b"x").status == 201
        program.close()
