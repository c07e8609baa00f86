#!/usr/bin/env python3
"""Searches of queues with many messages, over a bare scan of the same rows by RocksDB.

Both in processor time for each message: a search by that of the server's loop, from its request to
its answer, the scan by that of a thread that reads every row of the packets' family and looks at
none. Nothing is found, so that every message is looked at. Senders are measured with searches
beside them, which begin again at their end, and without.
"""

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from authenticated import ACCOUNT
from durable_calls import CONFIGURATION, QUEUE, sending
from figures import Figure, attempt, figure
from harness import BUILD, few, load, pairs
from scraping import Program, spent
from served import EVERYONE, Served, serving
from subjects.programs import BESIDE, BY_CORRELATION, IN_UTF_8, IN_UTF_16

from rpcqm.store.database import Database
from rpcqm.store.records import Family
from rpcqm.store.settings import StoreSettings

MESSAGES = 100_000
ROUNDS = 5
WORDS = "the quick brown fox jumps over the lazy dog, and 42 others do "
NARROW, WIDE = "narrow", "wide"
BODIES = {NARROW: (WORDS * 200)[:10_240].encode(), WIDE: (WORDS * 100)[:5_120].encode()}
"""Text that is kept in UTF-8, and text of ActiveX, which is kept in UTF-16: 10 KiB each."""
TYPES = {NARROW: "bytes", WIDE: "text"}
NOBODY = "{00000000-0000-0000-0000-00000000002a}\\7"
CONNECTIONS, SIZE, SECONDS, WARM_UP = 16, 1024, 2.0, 0.3


def fill(served: Served, directory: Path, count: int) -> None:
    """Two queues with as many messages each."""
    for queue, body in BODIES.items():
        path = directory / queue
        path.write_bytes(body)
        served.command("queue", "create", queue, "--sddl", EVERYONE)
        words = ("--file", str(path), "--type", TYPES[queue], "--count", str(count))
        served.command("send", queue, "--label", "order", *words)


def search(program: Program, queue: str, count: int, **conditions: str) -> None:
    """Look at every message of a queue, of which none meets the conditions."""
    looked_at = 0
    after: dict[str, str] = {}
    while True:
        query = urlencode(conditions | after)
        told = json.loads(program.ask("GET", f"/api/v1/queues/{queue}/messages?{query}"))
        looked_at += told["looked_at"]
        if told["messages"] or told["unread"]:
            raise RuntimeError("something was found")
        if told["next"] is None:
            break
        after = {"after": told["next"]}
    if looked_at < count:
        raise RuntimeError(f"{looked_at:,} messages were looked at instead of {count:,}")


def cost_of_search(served: Served, program: Program, queue: str, count: int, **by: str) -> float:
    """Microseconds for each message."""
    before = spent(served)
    search(program, queue, count, **by)
    return (spent(served) - before) * 1000 / count


def cost_of_scan(served: Served) -> float:
    """The same for each row, of a database that is open to be read beside the server."""
    database = Database(served.data, StoreSettings(), read_only=True)
    try:
        began, rows = time.thread_time(), 0
        for _ in database.families[Family.BODY].items(read_opt=database.scan()):
            rows += 1
        return (time.thread_time() - began) * 1e6 / rows
    finally:
        database.close()


def over_scan(served: Served, name: str, queue: str, count: int, **by: str) -> Figure:
    """How many times a scan a search takes, in turns."""
    program, rounds = Program(served), max(few(ROUNDS), 1)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(cost_of_search(served, program, queue, count, **by))
        theirs.append(cost_of_scan(served))
    ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
    note = f"{statistics.median(ours):.1f} µs a message, {statistics.median(theirs):.1f} µs a row"
    made = figure(name, ratio, note)
    return made.explained(served.pid, partial(search, program, queue, count, **by))


@contextmanager
def searching(served: Served) -> Iterator[None]:
    """Searches that follow one another."""
    over = threading.Event()

    def go_on() -> None:
        program = Program(served)
        after: dict[str, str] = {}
        while not over.is_set():
            query = urlencode({"body": "nothing of this", "limit": "1"} | after)
            told = json.loads(program.ask("GET", f"/api/v1/queues/{NARROW}/messages?{query}"))
            after = {} if told["next"] is None else {"after": told["next"]}

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def beside(served: Served) -> Figure:
    """Senders with searches beside them, over senders alone."""
    served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
    script = sending(SIZE).ours

    def alone() -> float:
        return load(served.port, CONNECTIONS, script, SECONDS, WARM_UP).calls_per_second

    def together() -> float:
        with searching(served):
            return alone()

    return pairs(together, alone).figure(BESIDE, served.pid)


def run() -> Iterator[Figure]:
    """The figures for scripts/bench."""
    count = few(MESSAGES)
    configuration = f"console_port = 0\n{CONFIGURATION}"
    with (
        tempfile.TemporaryDirectory(dir=BUILD) as name,
        serving(Path(name), configuration) as served,
    ):
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        served.command(*words, stdin=f"{ACCOUNT.password}\n")
        fill(served, Path(name), count)
        rows = (
            (BY_CORRELATION, NARROW, {"correlation_id": NOBODY}),
            (IN_UTF_8, NARROW, {"body": "nothing of this"}),
            (IN_UTF_16, WIDE, {"body": "nothing of this"}),
        )
        for row, queue, by in rows:
            yield from attempt(row, partial(over_scan, served, row, queue, count, **by))
        yield from attempt(BESIDE, partial(beside, served))
