"""What strangers write stays text on every page of the console: 200 known ways to write markup."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from rpcqm.codec.names.path_name import PathName
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.console.browser import Answer, Browser, open_browser

CONSOLE = ("--console-port", "0")
PAYLOADS: list[str] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "markup.json").read_text()
)
KNOWN = {
    *("html", "head", "meta", "title", "link", "script", "body", "a", "header", "p", "nav", "ul"),
    *("li", "form", "input", "span", "button", "main", "h1", "h2", "section", "div", "table"),
    *("caption", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "pre", "strong", "label"),
    *("select", "option", "textarea", "figure", "figcaption", "svg", "line", "polygon"),
    *("polyline", "text", "details", "summary", "fieldset", "legend"),
}


def is_safe(page: Answer) -> bool:
    """Whether a page has only our own elements, and one script, of which we know where it is."""
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    ours = all(str(each.get("src")).startswith("/console/static/") for each in scripts)
    handlers = any(name.startswith("on") for _, given in page.tags for name in given)
    links = [
        str(given[name]) for _, given in page.tags for name in ("href", "action") if name in given
    ]
    local = all(each.startswith(("/", "#")) and not each.startswith("//") for each in links)
    known = {tag for tag, _ in page.tags} <= KNOWN
    hidden = re.search("[\u200b\u202e\u2066\u2028\ufeff\x7f\x01]", page.text)
    return len(scripts) == 1 and ours and not handlers and local and known and not hidden


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(CONSOLE) as queue_manager:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        queue_manager.run(*words, input="secret\n")
        yield queue_manager


@pytest.fixture(scope="module")
def boss(running: PrivateQueueManager) -> Browser:
    browser = open_browser(running)
    browser.log_on("boss")
    return browser


@pytest.fixture(scope="module")
def program(running: PrivateQueueManager) -> Iterator[Program]:
    made = Program(running.endpoint("console"), "boss")
    yield made
    made.close()


def pages(boss: Browser, path: str) -> Iterator[Answer]:
    """A page and those behind it, to which a button leads that keeps what is ticked."""
    after: list[str] = []
    while True:
        page = boss.get(f"{path}&after={after[0]}" if after else path)
        yield page
        after = re.findall('value="after:([0-9]+)" data-rel="next"', page.text)
        if not after:
            return


def test_there_are_200_of_them() -> None:
    assert len(set(PAYLOADS)) == 200


def test_labels_and_bodies_stay_text(program: Program, boss: Browser) -> None:
    assert program.ask("POST", "/queues", {"name": "hostile"}).status == 201
    for payload in PAYLOADS:
        headers = {"Rpcqm-Label": quote(payload, safe="")}
        sent = program.ask("POST", "/queues/hostile/messages", payload.encode(), headers)
        assert sent.status == 201
    searched = 0
    for page in pages(boss, "/console/search?queue=hostile&label=*"):
        assert is_safe(page)
        searched += len(re.findall('name="key" value="([0-9]+)"', page.text))
    found = 0
    for page in pages(boss, "/console/queue?queue=hostile"):
        assert is_safe(page)
        for key in re.findall('name="key" value="([0-9]+)"', page.text):
            assert is_safe(boss.get(f"/console/message?queue=hostile&id={key}"))
            found += 1
        key_page = boss.get(f"/console/queue/move?queue=hostile&key={key}")
        assert is_safe(key_page)
    assert (found, searched) == (200, 200)


def test_names_and_labels_of_queues_stay_text(program: Program, boss: Browser) -> None:
    made = 0
    for payload in PAYLOADS:
        name = re.sub(r'[\\;+,"\r\n\0/]', "'", payload)[:120]
        path = f".\\private$\\{name}"
        if len(PathName.parse(path).queue) != len(name):
            continue
        told = program.ask("POST", "/queues", {"name": path, "label": payload[:120]})
        if told.status != 201:
            assert told.status in (400, 409)
            continue
        made += 1
        link = quote(told.value["format_name"], safe="")
        for page in (
            "queue",
            "queue/purge",
            "queue/delete",
            "queue/change",
            "queue/rename",
            "queue/send",
        ):
            shown = boss.get(f"/console/{page}?queue={link}")
            assert shown.status == 200, (name, shown.words)
            assert is_safe(shown), name
    assert made > 100
    for number in range(1, 5):
        assert is_safe(boss.get(f"/console/queues?page={number}"))
    for href in re.findall('scope="row"><a href="([^"]+)"', boss.get("/console/queues").text):
        assert boss.get(href.replace("&amp;", "&")).status == 200, href


def test_what_is_asked_for_stays_text(running: PrivateQueueManager, boss: Browser) -> None:
    nobody = open_browser(running)
    for payload in PAYLOADS:
        text = quote(payload, safe="")
        assert is_safe(boss.get(f"/console/queues?find={text}"))
        assert is_safe(boss.get(f"/console/queue?queue={text}"))
        assert is_safe(boss.get(f"/console/search?queue=hostile&label={text}&regex={text}"))
        assert is_safe(nobody.get(f"/console/logon?account={text}&to={text}"))


def test_names_of_accounts_and_tokens_stay_text(
    running: PrivateQueueManager, program: Program, boss: Browser
) -> None:
    """Those of the payloads that an account or a token may have as its name."""
    accounts, tokens = [], []
    for payload in PAYLOADS[::3]:
        name = re.sub(r'[^\x20-\x7e]|["/\\\[\]:;|=,+*?<>@]', "", payload)[:20].strip(" .")
        for account in (payload, name):
            given = {"name": account, "password": "secret"}
            if program.ask("POST", "/accounts", given).status == 201:
                accounts.append(account)
        token = {"name": payload[:64], "account": "boss"}
        if program.ask("POST", "/tokens", token).status == 201:
            tokens.append(payload[:64])
    assert len(accounts) > 10
    assert len(tokens) > 10
    told = program.ask("GET", "/accounts")
    assert told.headers["Content-Type"] == "application/json"
    assert {each["name"] for each in told.value["accounts"]} >= set(accounts)
    for page in ("/console/accounts", "/console/trail", "/console/overview"):
        assert is_safe(boss.get(page)), page
    guest = open_browser(running)
    for account in accounts[:2]:
        shown = guest.log_on(account)
        assert f"Logged on as {' '.join(account.split())}" in shown.words
        assert is_safe(shown)
        guest.submit("/console/logoff")


def test_names_of_peers_stay_text(program: Program, boss: Browser) -> None:
    sent = 0
    for payload in PAYLOADS[::3]:
        host = re.sub(r'[\\;+,"\r\n\0/]', "", payload)[:60]
        name = quote(f"DIRECT=OS:{host}\\private$\\orders", safe="")
        told = program.ask("POST", f"/queues/-/messages?queue={name}", b"x")
        sent += told.status == 201
    for page in ("/console/outgoing", "/console/overview"):
        assert is_safe(boss.get(page)), page
    assert sent > 10
    assert program.ask("GET", "/outgoing-queues").headers["Content-Type"] == "application/json"
