"""Two queue managers with one past, asked over /api/v1: one has request templates, one has none.

Whatever programs ask of both, in one turn or in several, they must be told the same.
"""

import asyncio
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from rpcqm.api.application import Api, ApiSettings
from rpcqm.codec.security.passwords import nt_hash
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.operations.operations import Operations
from rpcqm.service.accounts import Accounts
from rpcqm.service.backups import Backups
from rpcqm.service.console_server import LogOns
from rpcqm.service.tokens import tokens_of
from tests.support.fast.template_twins import without_owners
from tests.support.queue_manager import RunningQueueManager
from tests.support.store.store_state import state_of

PEER = "127.0.0.1"
QUEUE = r"private$\orders"
MESSAGES, RECEIVE = "/queues/orders/messages", "/queues/orders/receive"
_SPINS = 20
"""Rounds of the event loop in which all that needs no sync is done."""

Asked = tuple[str, str, bytes, dict[str, str]]
"""Method, path below /api/v1, body, headers beside those that every program sends."""


class ApiHalf:
    """One of the two, as programs with a token reach it."""

    def __init__(self, directory: Path, templates: bool) -> None:
        self.qm = RunningQueueManager(directory)
        if self.qm.installed is not None:
            self.qm.installed.switch(templates)
        self.qm.engine.trail._number = 0  # where it begins is random
        self.accounts = Accounts(self.qm.store, directory, clock=self.qm.clock)
        backups = Backups(self.qm.engine, self.accounts.user_file)
        self.tokens = tokens_of(self.qm.engine, self.accounts)
        self.operations = Operations(self.qm.engine, self.accounts, backups.make, self.tokens)
        log_ons = LogOns(self.accounts, self.operations, self.qm.store.metrics)
        self.ready = True
        self.careful = Api(self.operations, log_ons, ApiSettings(), "1", lambda: self.ready)
        installed = self.qm.installed
        self.api: Any = self.careful if installed is None else installed.repeated_api(self.careful)
        self.token = self.other = ""
        self._leases = itertools.count()

    def lease(self, _: int) -> str:
        """The next name of a lease, as long as they are."""
        return f"{next(self._leases):022}"

    def request(self, asked: Asked) -> HttpRequest:
        """What a program sends."""
        method, path, body, more = asked
        headers = {
            "Host": "127.0.0.1:15680",
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json",
            "Content-Length": str(len(body)),
        } | more
        return HttpRequest(method, f"/api/v1{path}", tuple(headers.items()), body, PEER)

    def ask(self, requests: Sequence[HttpRequest]) -> list[HttpResponse]:
        """Ask all of it in one turn, which ends then; the answers."""
        return asyncio.run(self._ask(requests))

    async def _ask(self, requests: Sequence[HttpRequest]) -> list[HttpResponse]:
        tasks = [asyncio.ensure_future(self.api.answer(each)) for each in requests]
        for _ in range(_SPINS):
            await asyncio.sleep(0)
        self.qm.settle()
        return await asyncio.wait_for(asyncio.gather(*tasks), 20)


class ApiTwins:
    """Both halves."""

    def __init__(self, directory: Path) -> None:
        with_templates, without = directory / "templates", directory / "careful"
        with_templates.mkdir()
        first = ApiHalf(with_templates, True)
        first.qm.create(QUEUE)
        first.qm.create(r"private$\answers")
        tokens = []
        for name, account in (("program", "alice"), ("other", "bob")):
            first.qm.done(first.accounts.add(account, nt_hash("secret")))
            tokens.append(first.qm.done(first.tokens.create(name, account)))
        first.qm.stop()
        shutil.copytree(with_templates, without)
        self.halves = ApiHalf(with_templates, True), ApiHalf(without, False)
        for half in self.halves:
            half.token, half.other = tokens

    def do(self, what: Callable[[ApiHalf], Any]) -> Any:
        """Do the same with both, and give what came of it; AssertionError if that differs."""
        outcomes = []
        for half in self.halves:
            names = SimpleNamespace(token_urlsafe=half.lease)
            with patch("rpcqm.qm.leases.secrets", names):
                outcomes.append(what(half))
        assert outcomes[0] == outcomes[1], outcomes
        return outcomes[0]

    def ask(self, *asked: Asked) -> list[HttpResponse]:
        """What both tell those who ask in one turn."""
        told: list[HttpResponse] = self.do(
            lambda half: _plain(half.ask([half.request(each) for each in asked]))
        )
        return told

    def check(self) -> None:
        """Both keep the same, and count it the same."""
        states = [without_owners(state_of(half.qm.store)) for half in self.halves]
        assert states[0] == states[1]
        stores = [half.qm.store for half in self.halves]
        assert stores[0].counters.places() == stores[1].counters.places()
        counts = [_counts(store.metrics.snapshot()) for store in stores]
        assert counts[0] == counts[1]
        leases = [len(half.qm.engine.leases) for half in self.halves]
        assert leases[0] == leases[1]

    def stop(self) -> None:
        for half in self.halves:
            half.qm.stop()


def _plain(answers: list[HttpResponse]) -> list[HttpResponse]:
    """Answers as programs see them, who are not told how often one like it comes."""
    return [HttpResponse(each.status, each.body, each.headers) for each in answers]


def _counts(snapshot: dict[str, int]) -> dict[str, int]:
    """What is counted, but for what templates did and what they made of commits."""
    return {
        name: count
        for name, count in snapshot.items()
        if not name.startswith(("templates.", "store")) and count
    }


@contextmanager
def api_twins(directory: Path) -> Iterator[ApiTwins]:
    both = ApiTwins(directory)
    try:
        yield both
    finally:
        both.stop()
