"""Messages are chosen over pages, and moved, copied, changed and sent again after a question."""

import html
import re
from collections.abc import Iterator
from itertools import count

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.support.api.programs import Program
from tests.support.console.browser import Answer, Browser, open_browser

_numbers = count(1)
HIDDEN = re.compile('<input type="hidden" name="([^"]+)" value="([^"]*)"')
FIELDS = re.compile('<input id="([^"]+)" name="[^"]+" value="([^"]*)"')
CHOSEN = re.compile('<option value="([^"]+)" selected')


@pytest.fixture
def program(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.close()


@pytest.fixture
def boss(running: PrivateQueueManager) -> Browser:
    browser = open_browser(running)
    browser.log_on("boss")
    return browser


@pytest.fixture
def queue(program: Program) -> str:
    name = f"chosen{next(_numbers)}"
    for each in (name, f"{name}-other"):
        assert program.ask("POST", "/queues", {"name": each}).status == 201
    return name


def fill(program: Program, queue: str, number: int) -> None:
    messages = [{"label": f"m{each}", "body_base64": "eA=="} for each in range(number)]
    for at in range(0, number, 1_000):
        batch = {"messages": messages[at : at + 1_000]}
        assert program.ask("POST", f"/queues/{queue}/messages/batch", batch).status == 201


def labels(program: Program, queue: str) -> list[str]:
    found = program.ask("GET", f"/queues/{queue}/messages?limit=1000").value["messages"]
    return [each["label"] for each in found]


def hidden(page: Answer) -> list[tuple[str, str]]:
    """What the form of a page sends that nobody has written."""
    form = page.text[page.text.rindex("<form") :]
    return [(name, html.unescape(value)) for name, value in HIDDEN.findall(form) if name != "token"]


def ticks(page: Answer, *ticked: int) -> list[tuple[str, str]]:
    """The form of a table of messages with these rows ticked."""
    keys = re.findall('name="key" value="([0-9]+)"', page.text)
    table = page.text[page.text.index('action="/console/queue/choose"') :]
    fields = [(name, value) for name, value in HIDDEN.findall(table) if name != "token"]
    return [*fields, *(("key", keys[each]) for each in ticked)]


def pressed(boss: Browser, page: Answer, *ticked: int, then: str) -> Answer:
    """The page behind a button of the table; `next` is that to the next page of it."""
    if then == "next":
        (then,) = re.findall('value="([^"]+)" data-rel="next"', page.text)
    return boss.submit("/console/queue/choose", [*ticks(page, *ticked), ("then", then)])


def test_a_choice_survives_other_pages(boss: Browser, program: Program, queue: str) -> None:
    fill(program, queue, 60)
    first = boss.get(f"/console/queue?queue={queue}")
    second = pressed(boss, first, 0, 1, then="next")
    assert "2 chosen, also on other pages" in second.words
    asked = pressed(boss, second, 9, then="move")
    assert f"Of {queue}, so many messages will be moved: 3." in asked.words
    for label in ("m0,", "m1,", "m59,"):
        assert label in asked.words
    done = boss.submit("/console/queue/move", [*hidden(asked), ("other", f"{queue}-other")])
    assert f"3 messages were moved to {queue}-other." in done.words
    assert labels(program, f"{queue}-other") == ["m0", "m1", "m59"]
    assert len(labels(program, queue)) == 57


def test_what_was_ticked_can_be_unticked(boss: Browser, program: Program, queue: str) -> None:
    fill(program, queue, 3)
    page = boss.get(f"/console/queue?queue={queue}")
    again = pressed(boss, page, 0, 2, then="here:0")
    assert again.text.count(" checked") == 2
    asked = pressed(boss, again, 2, then="copy")
    assert "will be copied, and stay: 1." in asked.words
    none = pressed(boss, again, 2, then="none")
    assert "chosen, also on other pages" not in none.words
    assert pressed(boss, none, then="copy").status == 400, "nothing is chosen"


def test_all_of_a_queue_are_chosen_and_later_ones_not_touched(
    boss: Browser, program: Program, queue: str
) -> None:
    fill(program, queue, 70)
    page = pressed(boss, boss.get(f"/console/queue?queue={queue}"), then="all")
    assert "70 chosen, also on other pages" in page.words
    asked = boss.get(f"/console/queue/copy?queue={queue}&choice={dict(ticks(page))['choice']}")
    assert "… and 50 more" in asked.words
    fill(program, queue, 1)
    program.ask("POST", f"/queues/{queue}/receive?lease=0")
    form = [*hidden(asked), ("other", f"{queue}-other")]
    done = boss.submit("/console/queue/copy", form)
    assert "69 messages were copied" in done.words
    assert "1 had gone meanwhile." in done.words
    again = boss.submit("/console/queue/copy", form)
    assert "69 messages were copied" in again.words, "the same form again tells the same"
    assert len(labels(program, f"{queue}-other")) == 69


def test_long_work_is_done_in_parts_and_can_be_stopped(
    boss: Browser, program: Program, queue: str
) -> None:
    """Each request takes 5,000 messages at most, and a second; the page says how far it is."""
    fill(program, queue, 10_001)
    page = pressed(boss, boss.get(f"/console/queue?queue={queue}"), then="all")
    asked = boss.get(f"/console/queue/copy?queue={queue}&choice={dict(ticks(page))['choice']}")
    going = boss.submit("/console/queue/copy", [*hidden(asked), ("other", f"{queue}-other")])
    assert "of 10,001" in going.words
    old = hidden(going)
    further = boss.submit("/console/queue/order", old)
    so_far = program.ask("GET", f"/queues/{queue}-other").value["messages"]
    boss.submit("/console/queue/order", old)
    assert program.ask("GET", f"/queues/{queue}-other").value["messages"] == so_far
    stopped = boss.submit("/console/queue/order", [*hidden(further), ("stop", "1")])
    assert f"It was stopped; {10_001 - so_far:,} were left as they are." in stopped.words
    assert program.ask("GET", f"/queues/{queue}-other").value["messages"] == so_far


def test_two_operators_at_once_move_each_message_once(
    running: PrivateQueueManager, boss: Browser, program: Program, queue: str
) -> None:
    fill(program, queue, 4)
    second = open_browser(running)
    second.log_on("boss")
    asked = []
    for browser in (boss, second):
        page = pressed(browser, browser.get(f"/console/queue?queue={queue}"), then="all")
        choice = dict(ticks(page))["choice"]
        asked.append(browser.get(f"/console/queue/move?queue={queue}&choice={choice}"))
    told = [
        browser.submit("/console/queue/move", [*hidden(page), ("other", f"{queue}-other")]).words
        for browser, page in zip((boss, second), asked, strict=True)
    ]
    assert "4 messages were moved" in told[0]
    assert "0 messages were moved" in told[1]
    assert "4 had gone meanwhile." in told[1]
    assert labels(program, f"{queue}-other") == ["m0", "m1", "m2", "m3"]


def test_a_page_that_was_left_open_over_a_restart_does_nothing(
    running: PrivateQueueManager, queue: str, program: Program
) -> None:
    fill(program, queue, 2)
    boss = open_browser(running)
    boss.log_on("boss")
    page = pressed(boss, boss.get(f"/console/queue?queue={queue}"), then="all")
    choice = dict(ticks(page))["choice"]
    asked = boss.get(f"/console/queue/move?queue={queue}&choice={choice}")
    running.restart()
    boss = open_browser(running)
    boss.log_on("boss")
    boss.get("/console/queues/new")
    form = [*hidden(asked), ("other", f"{queue}-other")]
    refused = boss.submit("/console/queue/move", form)
    assert refused.status == 410
    assert "choose the messages again" in refused.words
    program = Program(running.endpoint("console"), "boss")
    assert labels(program, queue) == ["m0", "m1"]


def form_of(page: Answer) -> dict[str, str]:
    """The fields of a form as they are, with what is hidden."""
    fields = dict(hidden(page))
    fields |= {name: html.unescape(value) for name, value in FIELDS.findall(page.text)}
    found = re.search(r'<textarea id="body"[^>]*>\n(.*?)</textarea>', page.text, re.DOTALL)
    if found:
        fields["body"] = html.unescape(found[1]).replace("\n", "\r\n")  # as browsers send it
        fields["kind"] = CHOSEN.findall(page.text)[0]
    fields["priority"] = CHOSEN.findall(page.text)[-1]
    return fields


def test_a_message_is_changed_and_sent_again(
    running: PrivateQueueManager, boss: Browser, program: Program, queue: str
) -> None:
    words = ("--body", "first\nsecond", "--label", "old", "--response-queue", "answers")
    running.run("send", queue, *words, "--priority", "5", "--ttbr", "500")
    (old,) = program.ask("GET", f"/queues/{queue}/messages").value["messages"]
    asked = boss.get(f"/console/message/edit?queue={queue}&id={old['lookup_id']}")
    fields = form_of(asked)
    assert (fields["label"], fields["ttbr"], fields["priority"]) == ("old", "500", "5")
    assert (fields["to"], fields["response_queue"]) == (queue, "answers")
    changed = fields | {"to": f"{queue}-other", "label": "new", "ttbr": "", "keep": "1"}
    done = boss.submit("/console/message/edit", changed)
    assert "1 message was sent again." in done.words
    boss.submit("/console/message/edit", changed)
    (new,) = program.ask("GET", f"/queues/{queue}-other/messages").value["messages"]
    assert (new["label"], new["ttbr"], new["priority"]) == ("new", None, 5)
    assert (new["body"], new["body_type"]) == (old["body"], old["body_type"])
    assert new["response_queue"] == old["response_queue"]
    assert labels(program, queue) == ["old"]
    asked = boss.get(f"/console/message/edit?queue={queue}&id={old['lookup_id']}")
    fields = form_of(asked) | {"body": "third"}
    boss.submit("/console/message/edit", fields)
    (again,) = program.ask("GET", f"/queues/{queue}/messages").value["messages"]
    assert (again["body"], again["label"]) == ("third", "old"), "in place of the one before"


def test_a_form_that_cannot_be_sent_says_why_and_changes_nothing(
    boss: Browser, program: Program, queue: str
) -> None:
    fill(program, queue, 1)
    (old,) = program.ask("GET", f"/queues/{queue}/messages").value["messages"]
    wrong: dict[str, str]
    for wrong in ({"ttbr": "soon"}, {"correlation_id": "x"}, {"to": f"{queue}-missing"}):
        asked = boss.get(f"/console/message/edit?queue={queue}&id={old['lookup_id']}")
        refused = boss.submit("/console/message/edit", form_of(asked) | wrong)
        assert refused.status in (400, 404), wrong
    for fields in ({"to": "x", "other": "y"}, {"other": queue}):
        asked = boss.get(f"/console/queue/move?queue={queue}&key={old['lookup_id']}")
        assert boss.submit("/console/queue/move", dict(hidden(asked)) | fields).status == 400
    assert labels(program, queue) == ["m0"]
