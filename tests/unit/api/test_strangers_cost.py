"""What everybody may ask for without a logon is made once, and read from no file again (S8)."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest

from rpcqm.api import openapi, page, reading
from rpcqm.console.application import Console, ConsoleSettings
from rpcqm.http.exchange import HttpRequest
from rpcqm.service.console_server import LogOns
from tests.support.api_twins import PEER, ApiHalf

HOST = "127.0.0.1:15680"
API = [
    ("GET", "/api/v1"),
    ("GET", "/api/v1/"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/favicon.ico"),
    ("GET", "/metrics"),
    ("GET", "/api/v1/queues"),
    ("GET", "/api/v1/nothing"),
    ("DELETE", "/api/v1/"),
    ("GET", "/nothing"),
]
PAGES = [
    ("GET", "/console/logon"),
    ("GET", "/console/queues"),
    ("GET", "/console/nothing"),
    ("GET", "/console/static/nothing"),
    ("GET", "/console/events"),
    ("POST", "/console/queues"),
    ("PUT", "/console/queues"),
]


class Work:
    """Counts what costs time: pages made, documents written, files read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        for owner, name in (
            (page, "page_of"),
            (openapi, "document"),
            (reading, "write_json"),
            (jinja2.Template, "render"),
            (jinja2.Environment, "compile"),
            (Path, "read_bytes"),
            (Path, "read_text"),
            (json, "dumps"),
        ):
            self._count(monkeypatch, owner, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*arguments: Any, **more: Any) -> Any:
            self.counts[name] += 1
            return original(*arguments, **more)

        monkeypatch.setattr(owner, name, counted)


@pytest.fixture
def half(tmp_path: Path) -> Iterator[ApiHalf]:
    half = ApiHalf(tmp_path, templates=False)
    yield half
    half.qm.stop()


def request(method: str, target: str) -> HttpRequest:
    return HttpRequest(method, target, (("Host", HOST),), b"", PEER)


def cost(monkeypatch: pytest.MonkeyPatch, answer: Any, method: str, target: str) -> Counter[str]:
    """What the second of two equal requests costs, whose answers are the same."""

    async def ask() -> tuple[int, bytes]:
        given = await answer(request(method, target))
        return given.status, given.body

    first = asyncio.run(ask())
    with monkeypatch.context() as patch:
        work = Work(patch)
        assert asyncio.run(ask()) == first
    return work.counts


@pytest.mark.parametrize(("method", "target"), API)
def test_what_programs_may_ask_for_without_a_logon_is_made_once(
    half: ApiHalf, monkeypatch: pytest.MonkeyPatch, method: str, target: str
) -> None:
    counts = cost(monkeypatch, half.api.answer, method, target)
    assert not counts - Counter({"write_json": 1, "dumps": 1})  # a refusal, which is a line


@pytest.mark.parametrize(("method", "target"), PAGES)
def test_what_browsers_may_ask_for_without_a_logon_is_made_once(
    half: ApiHalf, monkeypatch: pytest.MonkeyPatch, method: str, target: str
) -> None:
    log_ons = LogOns(half.accounts, half.operations, half.qm.store.metrics)
    settings = ConsoleSettings("instance", frozenset({"instance"}))
    console = Console(half.operations, log_ons, half.qm.clock, settings)

    async def answer(asked: HttpRequest) -> Any:
        headers = (("Host", "instance"),)
        return await console.answer(
            HttpRequest(asked.method, asked.target, headers, asked.body, "127.0.0.1")
        )

    assert not cost(monkeypatch, answer, method, target)
