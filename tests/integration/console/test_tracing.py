"""A message's way over two queue managers, at the pages of both."""

from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import quote

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.support.console.browser import Answer, open_browser
from tests.support.network.neighbours import accounts_file, neighbours
from tests.support.waiting import until

ADD_BOSS = ("user", "add", "boss", "--group", "administrators", "--password-stdin")


def page(queue_manager: PrivateQueueManager, path: str) -> Answer:
    queue_manager.run(*ADD_BOSS, input="secret\n")
    browser = open_browser(queue_manager)
    browser.log_on("boss")
    return browser.get(path)


def test_the_way_of_a_message_leads_over_queue_managers() -> None:
    with ExitStack() as stack:
        here, there = neighbours(stack, "shop", "warehouse")
        there.run("queue", "create", "orders")
        there.run("queue", "set", "orders", "--trail")
        here.run("queue", "create", "told")
        here.run("queue", "acl", "grant", "told", "anonymous", "send")
        asked = ("--ack", "full-receive", "--admin-queue", "told")
        to = r"DIRECT=OS:warehouse\private$\orders"
        sent = here.run("send", to, "--body", "x", *asked).stdout.strip()
        there.run("receive", "orders", "--timeout", "20000")
        until(lambda: "ACK_RECEIVE" in here.run("peek", "told", "--all", check=False).stdout)
        path = f"/console/trace?id={quote(sent, safe='')}"
        of_sender, of_reader = page(here, path), page(there, path)
    for words in ("shop this queue manager", "warehouse where it is for", "sent", "ACK_RECEIVE"):
        assert words in of_sender.words
    for words in ("where it was sent", "warehouse this queue manager", "arrived", "reader"):
        assert words in of_reader.words
    assert sent.partition("\\")[0] in of_reader.words, "the identifier tells who has sent it"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrivateQueueManager, ...]]:
    """Two that may ask each other, as boss."""
    accounts = accounts_file(tmp_path_factory.mktemp("accounts"), "boss")
    with ExitStack() as stack:
        both = neighbours(stack, "shop", "warehouse", accounts=accounts)
        for each in both:
            each.run(*ADD_BOSS, input="secret\n")
        both[1].run("queue", "create", "orders")
        both[1].run("queue", "set", "orders", "--trail")
        yield tuple(both)


def received(here: PrivateQueueManager, there: PrivateQueueManager) -> str:
    """The page of a message that was sent here and received there."""
    sent = here.run("send", r"DIRECT=OS:warehouse\private$\orders", "--body", "x").stdout.strip()
    there.run("receive", "orders", "--timeout", "20000")
    return f"/console/trace?id={quote(sent, safe='')}"


def looked_at(queue_manager: PrivateQueueManager, path: str) -> Answer:
    browser = open_browser(queue_manager)
    browser.log_on("boss")
    return browser.get(path)


def test_the_page_of_the_sender_shows_the_reader_elsewhere(
    asking: tuple[PrivateQueueManager, ...],
) -> None:
    here, there = asking
    answer = looked_at(here, received(here, there))
    assert "told by their own clocks: warehouse." in answer.words
    assert "received private$\\orders, warehouse reader, warehouse" in answer.words
    assert "by the message itself" in answer.words, "no trail tells who has sent it"


def test_who_is_no_administrator_there_is_told_so(
    asking: tuple[PrivateQueueManager, ...],
) -> None:
    here, there = asking
    path = received(here, there)
    there.run("user", "remove", "boss")
    there.run("user", "add", "boss", "--password-stdin", input="secret\n")
    try:
        answer = looked_at(here, path)
    finally:
        there.run("user", "remove", "boss")
        there.run(*ADD_BOSS, input="secret\n")
    assert "warehouse refuses to tell" in answer.words
    assert "reader" not in answer.words


def test_who_has_gone_is_waited_for_no_longer_than_a_moment(
    asking: tuple[PrivateQueueManager, ...],
) -> None:
    here, there = asking
    path = received(here, there)
    there.stop()
    try:
        answer = looked_at(here, path)
    finally:
        there.start()
    assert "warehouse has not answered" in answer.words
    assert "sent OS:warehouse" in answer.words, "what is known here is told nevertheless"


def test_nobody_is_asked_whom_the_settings_do_not_name() -> None:
    with ExitStack() as stack:
        here, there = neighbours(stack, "shop", "warehouse")
        there.run("queue", "create", "orders")
        answer = page(here, received(here, there))
    assert "warehouse was not asked" in answer.words
    assert "remote.peers" in answer.words
