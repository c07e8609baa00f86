"""What pages tell in words: new dead letters, permissions, sites, times of pictures."""

import html
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rpcqm.client import mq
from rpcqm.operations.codes import CLASSES
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.console.browser import Browser, open_browser
from tests.support.qm.directories import write_directory
from tests.support.waiting import until

CONSOLE = ("--console-port", "0")


@contextmanager
def new_one(*options: str) -> Iterator[PrivateQueueManager]:
    """A queue manager of its own, with the account boss."""
    with private_queue_manager((*CONSOLE, *options)) as running:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        running.run(*words, input="secret\n")
        yield running


def boss_of(running: PrivateQueueManager) -> Browser:
    browser = open_browser(running)
    browser.log_on("boss")
    return browser


def purged(running: PrivateQueueManager, label: str) -> None:
    """Make a dead letter."""
    running.run("send", "orders", "--label", label, "--body", "x", "--dead-letter")
    running.run("purge", "orders", input="yes\n")


def test_dead_letters_that_nobody_has_looked_at_are_marked_behind_the_overview() -> None:
    with new_one() as running:
        running.run("queue", "create", "orders")
        boss = boss_of(running)
        purged(running, "known")
        boss.get("/console/queue?queue=DeadLetter$")
        purged(running, "fresh")
        overview = boss.get("/console/overview")
        reason = CLASSES["NACK_Q_PURGED"].rstrip(".")
        assert f"{reason} 2 (1 that nobody has looked at)" in overview.words
        (to,) = set(re.findall(r'href="([^"]*DeadLetter[^"]*new=[0-9]+)"', overview.text))
        for _ in range(2):
            letters = boss.get(html.unescape(to))
            assert "fresh new: nobody had looked at it" in letters.words
            assert letters.words.count("nobody had looked at it") == 1
        assert "new=" not in boss.get("/console/overview").text
        assert "nobody had looked" not in boss.get("/console/queue?queue=DeadLetter$").words


def test_permissions_are_told_in_plain_words(running: PrivateQueueManager) -> None:
    running.run("queue", "create", "plain")
    running.run("queue", "acl", "grant", "plain", "boss", "full")
    running.run("queue", "acl", "grant", "plain", "peeker", "peek", "get-properties")
    running.run("queue", "acl", "deny", "plain", "peeker", "send")
    page = boss_of(running).get("/console/queue?queue=plain")
    assert "peeker look at messages, see the properties send messages" in page.words


def test_queues_are_found_by_their_labels_too(running: PrivateQueueManager) -> None:
    running.run("queue", "create", "labelled", "--label", "For the Bakery")
    found = boss_of(running).get("/console/queues?find=bakery")
    assert "labelled" in found.words
    assert "1 queue " in found.words


def test_pictures_say_which_times_they_are_of(running: PrivateQueueManager) -> None:
    boss = boss_of(running)
    until(lambda: "svg class" in boss.get("/console/overview").text)
    times = re.search(r'class="axis quiet">(.*?)</p>', boss.get("/console/overview").text)
    assert times is not None
    assert re.fullmatch("(<span>[0-9]{2}:[0-9]{2} UTC</span> ?){2}", times[1])


@pytest.mark.soak
def test_three_thousand_queues_are_listed_without_slowing() -> None:
    with new_one() as running, closing(Program(running.endpoint("console"), "boss")) as program:
        for number in range(3_000):
            assert program.ask("POST", "/queues", {"name": f"many-{number:04}"}).status == 201
        program.ask("POST", "/queues/many-2718/messages", b"x" * 5_000)
        boss = boss_of(running)
        last = boss.get("/console/queues?page=60")
        assert "Page 60 of 60" in last.words
        assert "many-2999" in last.words
        assert len(last.text) < 40_000
        largest = boss.get("/console/queues?sort=bytes").text
        assert re.findall("many-[0-9]{4}", largest)[0] == "many-2718"
        (only,) = set(re.findall("many-[0-9]{4}", boss.get("/console/queues?find=-0815").text))
        assert only == "many-0815"


def test_sites_have_their_routing_servers_beside_them(tmp_path: Path) -> None:
    with new_one("--directory-file", str(write_directory(tmp_path))) as running:
        page = boss_of(running).get("/console/routing")
    picture = re.search("<svg.*?</svg>", page.text, re.DOTALL)
    assert picture is not None
    told = re.findall("<text[^>]*>([^<]*)</text>", picture[0])
    assert "through ROUTER" in told
    assert any(each.startswith("Berlin, ") for each in told)


def test_the_page_of_a_message_shows_its_text_whatever_the_encoding() -> None:
    """With what is wrong with it, and the encoding of octets that look like text."""
    bodies = {
        "odd": (b'<?xml version="1.0" encoding="utf-16"?><a>two</a>', "says utf-16 and is UTF-8."),
        "wide": ("two apples".encode("utf-16-le"), "About the body: UTF-16."),
        "plain": (b"<a>two</a>", ""),
    }
    with new_one() as running:
        boss = boss_of(running)
        with closing(Program(running.endpoint("console"), "boss")) as program:
            assert program.ask("POST", "/queues", {"name": "orders"}).status == 201
        with mq.open("orders", running) as queue:
            for label, (body, _) in bodies.items():
                queue.send(body, label=label)
        page = boss.get("/console/queue?queue=orders").text
        links = re.findall(r'href="(/console/message[^"]*)"[^>]*>(odd|wide|plain)<', page)
        assert {label for _, label in links} == set(bodies)
        for link, label in links:
            words = boss.get(html.unescape(link)).words
            assert "two" in words
            assert bodies[label][1] in words
            assert ("About the body" in words) == bool(bodies[label][1])


def test_a_page_that_shows_less_than_there_is_fills_no_log(running: PrivateQueueManager) -> None:
    """Pages ask again each second; who is shown nothing of a queue has a line."""
    running.run("queue", "create", "roots")
    running.run("user", "add", "nosy", "--password-stdin", input="secret\n")
    boss, nosy = boss_of(running), open_browser(running)
    nosy.log_on("nosy")
    before = len(running.log)
    for _ in range(3):
        page = boss.get("/console/queue?queue=roots")
        assert "Permissions not told to you" in page.words
        assert nosy.get("/console/queue?queue=roots").title == "roots"
    assert "access refused" not in running.log[before:]
    program = Program(running.endpoint("console"), "boss")
    assert program.ask("GET", "/queues/roots").value["name"] == "roots"
    program.close()
    running.run("queue", "acl", "revoke", "roots", "everyone")
    assert nosy.get("/console/queue?queue=roots").status == 403
    assert running.log[before:].count("access refused") == 1
