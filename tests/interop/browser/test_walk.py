"""The pages in a real browser, as an operator walks them; what is done is seen by commands."""

import json
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from rpcqm.testing import PrivateQueueManager
from tests.support.api.programs import Program
from tests.support.console.chromium import NARROW, Person
from tests.support.waiting import until

MARKED = "return String(getSelection())"
ASKED = """
const all = performance.getEntriesByType("resource");
return all.filter(each => each.initiatorType === "fetch" && each.responseEnd).length;
"""
"""How often the page has asked for what is new."""


def held(running: PrivateQueueManager, queue: str) -> list[dict[str, Any]]:
    """The messages of a queue, by command."""
    output = running.run("peek", queue, "--all", "--json").stdout
    told = (
        json.loads(output)
        if output.startswith("[")
        else [json.loads(x) for x in output.splitlines()]
    )
    return list(told)


def make(running: PrivateQueueManager, queue: str) -> None:
    """A queue by command, with all rights for boss."""
    running.run("queue", "create", queue)
    running.run("queue", "acl", "grant", queue, "boss", "full")


def labels(running: PrivateQueueManager, queue: str) -> list[str]:
    return [str(each["label"]) for each in held(running, queue)]


def choose(someone: Person, label: str) -> None:
    someone.click(By.CSS_SELECTOR, f'[aria-label="Choose {label}"]')


def test_a_file_logs_on_once(running: PrivateQueueManager, someone: Person) -> None:
    someone.press("Log off")
    assert someone.title == "Log on"
    form = Path(running.run("console", "--no-open").stdout.strip())
    someone.driver.get(form.as_uri())
    until(lambda: someone.driver.current_url.startswith(someone.home))
    until(lambda: "Overview" in someone.text)
    someone.press("Log off")
    someone.driver.get(form.as_uri())
    until(lambda: "The one-time logon is wrong" in someone.text)
    form.unlink()
    someone.log_on("boss", "wrong")
    assert "The account or the password is wrong." in someone.text
    someone.log_on("boss")
    assert "Logged on as" in someone.text


def test_a_queue_is_made_used_and_deleted(running: PrivateQueueManager, someone: Person) -> None:
    someone.open("/console/queues")
    someone.press("Make a queue")
    someone.fill(name="orders")
    someone.press("Make the queue")
    assert someone.title == "orders"
    assert "orders" in running.run("queue", "list").stdout
    for label in ("first", "second", "third"):
        someone.press("Send a message")
        someone.fill(label=label, body=f"the body of {label}")
        someone.press("Send")
        assert "The message was sent" in someone.text
    assert labels(running, "orders") == ["first", "second", "third"]
    someone.press("second")
    assert someone.title == "second"
    assert "the body of second" in someone.text
    assert len(held(running, "orders")) == 3, "looking takes nothing"
    someone.open("/console/queue", queue="orders")
    choose(someone, "first")
    choose(someone, "third")
    someone.press("Move")
    assert "so many messages will be moved: 2." in someone.text
    someone.fill(to="later")
    someone.press("Move them")
    assert labels(running, "orders;later") == ["first", "third"]
    assert labels(running, "orders") == ["second"]
    someone.open("/console/queue", queue="orders")
    someone.press("Purge")
    assert labels(running, "orders") == ["second"], "a question removes nothing"
    someone.press("Remove all messages")
    program = Program(running.endpoint("console"), "boss")
    assert program.ask("GET", "/queues/orders/messages").value["messages"] == []
    program.close()
    someone.press("Delete")
    someone.fill(repeat="orders")
    someone.press("Delete the queue")
    assert "orders" not in running.run("queue", "list").stdout


def test_what_happens_is_seen_without_loading_again(
    running: PrivateQueueManager, someone: Person
) -> None:
    make(running, "watched")
    someone.open("/console/queue", queue="watched")
    before = someone.driver.find_element(By.TAG_NAME, "html").id
    assert "There is no message." in someone.text
    running.run("send", "watched", "--body", "x", "--label", "from elsewhere")
    until(lambda: "from elsewhere" in someone.text)
    assert someone.driver.find_element(By.TAG_NAME, "html").id == before


def test_what_happens_takes_nothing_from_who_is_there(
    running: PrivateQueueManager, someone: Person
) -> None:
    make(running, "busy")
    running.run("send", "busy", "--label", "there before", "--body", "x")
    someone.look(NARROW - 195)
    someone.open("/console/queue", queue="busy")
    script = (
        "const e = document.querySelector('.scroll'); e.focus(); e.scrollLeft = 60; "
        "return e.scrollLeft"
    )
    moved = someone.driver.execute_script(script)
    assert moved > 0
    running.run("send", "busy", "--label", "comes meanwhile", "--body", "x")
    until(lambda: "comes meanwhile" in someone.text)
    script = "const e = document.activeElement; return [e.className, e.scrollLeft]"
    assert someone.driver.execute_script(script) == ["scroll", moved]
    someone.look()
    script = "document.activeElement.blur(); getSelection().selectAllChildren(arguments[0])"
    someone.driver.execute_script(script, someone.driver.find_element(By.TAG_NAME, "caption"))
    marked, asked = someone.driver.execute_script(MARKED), someone.driver.execute_script(ASKED)
    assert marked
    running.run("send", "busy", "--label", "comes later", "--body", "x")
    until(lambda: someone.driver.execute_script(ASKED) > asked)
    assert someone.driver.execute_script(MARKED) == marked


@pytest.mark.soak
def test_what_was_opened_stays_open(running: PrivateQueueManager, someone: Person) -> None:
    make(running, "opened")
    until(lambda: _has_details(someone))
    someone.driver.execute_script("document.querySelector('summary').focus()")
    someone.type(Keys.ENTER)
    running.run("send", "opened", "--body", "x", "--label", "y")
    before = _region(someone)
    until(lambda: _region(someone) != before)
    script = "return [document.querySelector('details').open, document.activeElement.tagName]"
    assert someone.driver.execute_script(script) == [True, "SUMMARY"]


def _has_details(someone: Person) -> bool:
    someone.open("/console/overview")
    return bool(someone.driver.find_elements(By.TAG_NAME, "details"))


def _region(someone: Person) -> str:
    return str(someone.driver.find_element(By.CSS_SELECTOR, '[data-live="pictures"]').text)


def test_the_keyboard_alone_sends_a_message(running: PrivateQueueManager, someone: Person) -> None:
    make(running, "typed")
    someone.open("/")
    for words in ("Queues", "typed", "Send a message"):
        someone.tab_to(words)
        someone.enter()
    someone.tab_to("Label")
    someone.type("by hand")
    someone.tab_to("Body")
    someone.type("only keys")
    someone.tab_to("Send")
    someone.enter()
    assert "The message was sent" in someone.text
    (message,) = held(running, "typed")
    assert (message["label"], message["value"]) == ("by hand", "only keys")


def test_the_browser_has_nothing_to_complain_of(someone: Person) -> None:
    refused = ("400", "401", "403")
    assert [each for each in someone.complaints() if not any(x in each for x in refused)] == []


def test_logging_off_ends_it(someone: Person) -> None:
    someone.open("/")
    someone.press("Log off")
    someone.open("/console/queues")
    assert someone.title == "Log on"
    someone.log_on("boss")
