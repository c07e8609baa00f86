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
from rpcqm.console.forms import TYPE
from rpcqm.http.exchange import HttpRequest
from rpcqm.service.console_server import LogOns
from tests.support.api.api_twins import PEER, ApiHalf

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
    ("GET", "/console/logon?to=/console/queues"),
    ("GET", "/console/logon?account=alice"),
    ("GET", "/console/logon?to=%22&account=%3C%00"),
    ("GET", "/console/logon?to=%ff"),
    ("GET", "/console/logon?" + "&".join(["a"] * 2_000)),
    ("POST", "/console/logon"),
    ("POST", "/console/one-time"),
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
    assert not cost(monkeypatch, pages_of(half), method, target)


def pages_of(half: ApiHalf, form: bytes = b"") -> Any:
    """What answers a browser that sends a form, if any."""
    log_ons = LogOns(half.accounts, half.operations, half.qm.store.metrics)
    settings = ConsoleSettings("instance", frozenset({"instance"}))
    console = Console(half.operations, log_ons, half.qm.clock, settings)

    async def answer(asked: HttpRequest) -> Any:
        headers = [("Host", "instance")]
        if form:
            headers += [("Content-Type", TYPE), ("Origin", "http://instance")]
        request = HttpRequest(asked.method, asked.target, tuple(headers), form, "127.0.0.1")
        return await console.answer(request)

    return answer


def test_whoever_guesses_passwords_is_refused_by_pages_that_were_made_before(
    half: ApiHalf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that differ, and so do the places to go on to; also once guesses are slowed."""
    statuses = Counter[int]()

    async def guess(number: int) -> None:
        form = f"account=user{number}&password=wrong&to=/console/{number}"
        answer = await pages_of(half, form.encode())(request("POST", "/console/logon"))
        assert f'value="user{number}"'.encode() in answer.body
        statuses[answer.status] += 1

    for number in range(100):
        asyncio.run(guess(number))
    with monkeypatch.context() as patch:
        work = Work(patch)
        for number in range(100):
            asyncio.run(guess(number))
    assert not work.counts["render"] + work.counts["compile"]
    assert set(statuses) == {401, 429}


def test_what_is_written_into_the_page_to_log_on_is_text(half: ApiHalf) -> None:
    written = "%22%3E%3Cscript%3E%0A%C3%A4what-somebody-writes"
    for target in (f"?to={written}", f"?account={written}", f"?to={written}&account={written}"):
        answer = asyncio.run(pages_of(half)(request("GET", f"/console/logon{target}")))
        page = answer.body.decode()
        assert page.count("&#34;&gt;&lt;script&gt;&#10;ä") == target.count("=")
        assert "<script>" not in page
        assert ("autofocus" in page) == ("account" not in target)
