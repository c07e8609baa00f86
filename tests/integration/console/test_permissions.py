"""Permissions on the pages: seen, explained and changed in words, guarded against mistakes."""

import html
import itertools
import re

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.support.console.browser import Answer, Browser, open_browser

PAGE, PERMIT = "/console/queue/permissions?queue=", "/console/queue/permit"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def boss(running: PrivateQueueManager) -> Browser:
    browser = open_browser(running)
    browser.log_on("boss")
    return browser


@pytest.fixture
def queue(boss: Browser) -> str:
    name = f"rights{next(_numbers)}"
    boss.get("/console/queues/new")
    boss.submit("/console/queues/new", {"name": name})
    return name


def given(page: Answer) -> dict[str, str]:
    """What the form of a page that asks would send; of several rights the last one."""
    found = re.findall('type="hidden" name="([^"]+)" value="([^"]*)"', page.text)
    return {name: html.unescape(value) for name, value in found if name != "token"}


def ask(
    boss: Browser, queue: str, action: str, who: str, *rights: str, version: str = ""
) -> Answer:
    chosen = "".join(f"&right={each}" for each in rights)
    asked = f"{PERMIT}?queue={queue}&action={action}&who={who}{chosen}&version={version}"
    return boss.get(asked)


def test_somebody_is_let_in_explained_and_taken_out(boss: Browser, queue: str) -> None:
    page = boss.get(f"{PAGE}{queue}")
    assert "The owner is boss." in page.words
    assert f"{PAGE}{queue}" in boss.get(f"/console/queue?queue={queue}").text
    sure = ask(boss, queue, "allow", "peeker", "peek", version=given(page)["version"])
    assert f"With {queue}, peeker will be allowed: look at messages" in sure.words
    assert "peeker then: allowed look at messages; denied nothing." in sure.words
    done = boss.submit(PERMIT, given(sure))
    assert "The permissions were changed." in done.words
    assert "peeker look at messages" in done.words
    why = boss.get(f"/console/queue/access?queue={queue}&account=peeker")
    assert re.search(r"look at messages yes entry \d allows it to everyone", why.words)
    assert "delete the queue no no entry that concerns peeker allows it" in why.words
    out = ask(boss, queue, "revoke", "peeker")
    gone = boss.submit(PERMIT, given(out))
    assert "peeker look at messages" not in gone.words


def test_a_denial_wins_and_says_so(boss: Browser, queue: str) -> None:
    boss.submit(PERMIT, given(ask(boss, queue, "deny", "users", "send")))
    why = boss.get(f"/console/queue/access?queue={queue}&account=users")
    assert "send messages no entry 1 denies it to users" in why.words


def test_a_form_is_good_once_and_not_after_another_change(boss: Browser, queue: str) -> None:
    first, second = (
        ask(boss, queue, "allow", "users", "peek"),
        ask(boss, queue, "allow", "guests", "peek"),
    )
    boss.submit(PERMIT, given(first))
    for form in (first, second):
        refused = boss.send(PERMIT, given(form))
        assert refused.status == 409
        assert "changed since they were shown" in refused.words
    assert ask(boss, queue, "deny", "users", "peek", version=given(second)["version"]).status == 409


def test_nobody_is_locked_out_without_a_second_confirmation(boss: Browser, queue: str) -> None:
    boss.submit(PERMIT, given(ask(boss, queue, "allow", "users", "change-permissions")))
    boss.submit(PERMIT, given(ask(boss, queue, "revoke", "boss")))
    boss.submit(PERMIT, given(ask(boss, queue, "deny", "boss", "change-permissions")))
    sure = ask(boss, queue, "owner", "system")
    assert "You could not change these permissions any more." in sure.words
    refused = boss.send(PERMIT, given(sure))
    assert "go back and tick that you want that" in refused.words
    assert "The owner is boss." in boss.get(f"{PAGE}{queue}").words
    boss.send(PERMIT, given(sure) | {"lock_out": "1"})
    assert boss.get(f"{PAGE}{queue}").status == 403


def test_a_list_that_nobody_could_change_is_refused(boss: Browser, queue: str) -> None:
    refused = ask(boss, queue, "deny", "boss", "full")
    assert (refused.status, "nobody could change the permissions" in refused.words) == (409, True)


@pytest.mark.parametrize(
    "wrong",
    [
        f"{PERMIT}?queue={{}}&action=give&who=boss&right=send",
        f"{PERMIT}?queue={{}}&action=allow&who=&right=send",
        f"{PERMIT}?queue={{}}&action=allow&who=boss",
        f"{PERMIT}?queue={{}}&action=allow&who=nobody-here&right=send",
        "/console/queue/access?queue={}&account=nobody-here",
        "/console/queue/access?queue={}&account=boss&by=nothing",
    ],
    ids=["action", "nobody", "no right", "unknown", "unknown to explain", "unknown token"],
)
def test_what_is_no_order_is_refused_in_words(boss: Browser, queue: str, wrong: str) -> None:
    refused = boss.get(wrong.format(queue))
    assert refused.status in (400, 404)
    assert "STATUS_" in refused.words or "MQ_ERROR_INVALID_PARAMETER" in refused.words


def test_who_may_only_look_is_offered_no_change(
    boss: Browser, queue: str, running: PrivateQueueManager
) -> None:
    for right in ("get-permissions", "get-properties"):
        boss.submit(PERMIT, given(ask(boss, queue, "allow", "peeker", right)))
    peeker = open_browser(running)
    peeker.log_on("peeker")
    page = peeker.get(f"{PAGE}{queue}")
    assert "/console/queue/permit" not in page.text
    assert "peeker see the properties, see the permissions" in page.words
    assert "boss" not in page.words
    refused = peeker.send(PERMIT, given(ask(boss, queue, "allow", "users", "full")))
    assert refused.status == 403
