"""The pages that search: forms without scripts, what is found, and who finds what."""

import re
from urllib.parse import quote

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.support.console.browser import Browser, open_browser

MARKUP = "<b>order</b> 3"


@pytest.fixture(scope="module", autouse=True)
def messages(running: PrivateQueueManager) -> None:
    for queue in ("orders", "bills", "secret"):
        running.run("queue", "create", queue)
    running.run("queue", "acl", "grant", "orders", "boss", "full")
    running.run("queue", "acl", "deny", "secret", "everyone", "peek")
    for queue, label, body in (
        ("orders", "order 1", "for Müller"),
        ("orders", MARKUP, "for Meier"),
        ("bills", "bill 1", "from Müller"),
        ("secret", "order 9", "for Müller"),
    ):
        running.run("send", queue, "--label", label, "--body", body)


@pytest.fixture
def boss(running: PrivateQueueManager) -> Browser:
    browser = open_browser(running)
    browser.log_on("boss")
    return browser


def found(page: object) -> list[str]:
    """The labels of the rows."""
    return re.findall(r'<tr>.*?<a href="/console/message[^"]*">([^<]*)</a>', str(page), re.DOTALL)


def test_a_queue_is_searched_from_its_page(boss: Browser) -> None:
    page = boss.get("/console/queue?queue=orders").text
    assert 'action="/console/search"' in page
    assert 'name="label"' in page
    told = boss.get("/console/search?queue=orders&label=&body=M%C3%BCller&since=")
    assert found(told.text) == ["order 1"]
    assert "1 message found" in told.words
    assert "2 messages were looked at." in told.words
    assert "for Müller" in told.words
    assert "Search on" not in told.words
    assert 'name="then" value="remove"' in told.text


def test_all_queues_are_searched_that_somebody_may_look_at(boss: Browser) -> None:
    told = boss.get(f"/console/search?body={quote('Müller')}")
    assert found(told.text) == ["order 1", "bill 1"]
    assert 'href="/console/queue?queue=bills"' in told.text
    assert 'name="then"' not in told.text, "nothing can be chosen from several queues"


def test_all_that_match_can_be_chosen(running: PrivateQueueManager, boss: Browser) -> None:
    running.run("queue", "create", "chosen")
    running.run("queue", "acl", "grant", "chosen", "boss", "full")
    for label in ("a 1", "b 1", "a 2"):
        running.run("send", "chosen", "--label", label, "--body", "x")
    told = boss.get("/console/search?queue=chosen&label=a*")
    (key, _) = re.findall('name="key" value="([0-9]+)"', told.text)
    all_of_them = {"queue": "chosen", "then": "all", "match-label": "a*"}
    chosen = boss.submit("/console/queue/choose", all_of_them)
    assert "2 chosen, also on other pages" in chosen.words
    one = {"queue": "chosen", "then": "move", "key": key, "shown": key}
    asked = boss.submit("/console/queue/choose", one)
    assert "a 1" in asked.words


def test_what_messages_say_is_shown_as_it_is(boss: Browser) -> None:
    told = boss.get("/console/search?label=*order*&ignore_case=1&regex=Meier").text
    assert "&lt;b&gt;order&lt;/b&gt; 3" in told
    assert "<details open>" in told
    assert "<b>order" not in told


def test_a_search_goes_on_at_the_next_page(running: PrivateQueueManager, boss: Browser) -> None:
    running.run("queue", "create", "many")
    running.run("send", "many", "--label", "one of many", "--body", "x", "--count", "60")
    first = boss.get("/console/search?queue=many&label=one*")
    assert len(found(first.text)) == 50
    assert "The search is not over." in first.words
    (then,) = re.findall(r'value="(after:[0-9]+)" data-rel="next"', first.text)
    key = re.findall('name="key" value="([0-9]+)"', first.text)[0]
    form = {"queue": "many", "match-label": "one*", "shown": key, "key": key}
    second = boss.submit("/console/queue/choose", form | {"then": then})
    assert len(found(second.text)) == 10
    assert "1 chosen, also on other pages" in second.words, "what was ticked stays so"
    (choice,) = re.findall('name="choice" value="([^"]+)"', second.text)
    of_all = {"queue": "many", "match-label": "one*", "choice": choice, "then": "all"}
    assert "60 chosen" in boss.submit("/console/queue/choose", of_all).words
    everywhere = boss.get("/console/search?label=one*")
    (to,) = re.findall(r'rel="next" href="([^"]*)"', everywhere.text)
    assert len(found(boss.get(to.replace("&amp;", "&")).text)) == 10


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("label=[", "Label: there is a [ without its ]; write [[] for the character"),
        ("size_min=ten", "Size of the body, at least: `ten` is no number with a unit"),
        ("regex=(", "that is no regular expression of RE2: missing ): ("),
        ("sender=mallory", "`mallory` is neither an account here nor a SID"),
        (f"label={'x' * 1001}", "label has 1,001 characters, a condition has at most 1,000"),
        ("label=x&after=y", "`y` is not where a search goes on"),
    ],
)
def test_a_mistake_is_told_above_the_form_which_stays_filled_in(
    boss: Browser, query: str, sentence: str
) -> None:
    told = boss.get(f"/console/search?body=kept&{query}")
    assert told.status == 200
    assert 'role="alert"' in told.text
    assert sentence in told.words
    assert 'value="kept"' in told.text


def test_an_empty_form_searches_nothing(boss: Browser) -> None:
    told = boss.get("/console/search?queue=&label=&body=")
    assert "looked at" not in told.words
    assert boss.get("/console/search?queue=nowhere-at-all&label=x").status == 404


def test_others_find_what_they_may_look_at(running: PrivateQueueManager) -> None:
    browser = open_browser(running)
    browser.log_on("peeker")
    assert 'href="/console/search"' in browser.get("/console/search").text
    assert found(browser.get("/console/search?body=M%C3%BCller").text) == ["order 1", "bill 1"]
    assert browser.get("/console/search?queue=secret&label=*").status == 403
