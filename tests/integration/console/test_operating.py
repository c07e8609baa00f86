"""Pages about what is beyond the queues: others, what is in flight, accounts, the trail."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from rpcqm.qm.message_lookup import SLICE
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.console.browser import Browser, open_browser
from tests.support.qm.directories import network_directory
from tests.support.waiting import until

CONSOLE = ("--console-port", "0")
AWAY = r"DIRECT=OS:nowhere.invalid\private$\x"
PAGES = ("outgoing", "flight", "trace", "routing", "triggers", "accounts", "trail", "explain")


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.close()


@pytest.fixture
def browser(running: PrivateQueueManager) -> Browser:
    opened = open_browser(running)
    opened.log_on("boss")
    return opened


def test_a_queue_to_elsewhere_is_paused_and_resumed_after_a_question(
    boss: Program, browser: Browser
) -> None:
    name = quote(AWAY, safe="")
    assert boss.ask("POST", f"/queues/-/messages?queue={name}", b"x").status == 201
    page = browser.get("/console/outgoing")
    assert AWAY in html.unescape(page.text)
    one = browser.get(f"/console/outgoing/queue?queue={name}")
    assert one.title == html.escape(AWAY)
    asked = browser.get(f"/console/outgoing/pause?queue={name}")
    assert f"Nothing more is sent to {AWAY}" in asked.words
    assert "1 message waits there" in asked.words
    assert boss.ask("GET", f"/outgoing-queues/{name}").value["state"] != "ONHOLD"
    done = browser.submit("/console/outgoing/pause", {"queue": AWAY})
    assert "is paused" in done.words
    assert "paused by an operator" in done.words
    assert boss.ask("GET", f"/outgoing-queues/{name}").value["state"] == "ONHOLD"
    assert "Send again now" not in done.words, "a queue that is paused sends nothing"
    refused = browser.submit("/console/outgoing/resend", {"queue": AWAY})
    assert "The queue is paused." in refused.words
    browser.get(f"/console/outgoing/queue?queue={name}")
    browser.get(f"/console/outgoing/resume?queue={name}")
    assert "goes on" in browser.submit("/console/outgoing/resume", {"queue": AWAY}).words
    assert boss.ask("GET", f"/outgoing-queues/{name}").value["state"] != "ONHOLD"
    assert (
        "was told to send again"
        in browser.submit("/console/outgoing/resend", {"queue": AWAY}).words
    )


def test_leases_and_who_holds_them_are_shown_and_ones_own_given_back(
    boss: Program, browser: Browser
) -> None:
    boss.ask("POST", "/queues", {"name": "orders"})
    boss.ask("POST", "/queues/orders/messages", b"x")
    (message,) = boss.ask("POST", "/queues/orders/receive?lease=600").value["messages"]
    assert "1 more is held by a lease" in browser.get("/console/queue?queue=orders").words
    page = browser.get("/console/flight")
    assert "boss" in page.words
    assert message["lookup_id"] in page.words
    boss.ask("POST", "/queues/orders/messages", b"y")
    for page_of_all in ("purge", "export"):
        asked = browser.get(f"/console/queue/{page_of_all}?queue=orders")
        assert "1 now" in asked.words
        assert "1 more is held by a lease, a transaction or a reader, and is not meant" in (
            asked.words
        )
    assert "1 message was removed" in (
        browser.submit("/console/queue/purge", {"queue": "orders"}).words
    )
    asked = browser.get(f"/console/flight/release?lease={quote(message['lease'])}")
    assert "that boss has received is given back" in asked.words
    browser.submit("/console/flight/release", {"lease": message["lease"]})
    assert boss.ask("GET", "/leases").value["leases"] == []
    told = browser.get("/console/trail?kind=operator-acts").words
    assert "boss ordered: give message back" in told
    assert f"lookup id: {message['lookup_id']}" in told
    assert "held by" not in browser.get("/console/queue?queue=orders").words


def test_tables_come_in_pages_which_do_not_mix(boss: Program, browser: Browser) -> None:
    boss.ask("POST", "/queues", {"name": "many"})
    messages = [{"body_base64": "eA==", "label": "x"}] * 60
    boss.ask("POST", "/queues/many/messages/batch", {"messages": messages})
    taken = boss.ask("POST", "/queues/many/receive?lease=600&max=60").value["messages"]
    first = browser.get("/console/flight?transactions=1")
    assert "60 leases" in first.words
    assert "Page 1 of 2" in first.words
    (following,) = re.findall('rel="next" href="([^"]+)"', first.text)
    second = browser.get(html.unescape(following))
    shown = [
        {each["lookup_id"] for each in taken if each["lookup_id"] in page.words}
        for page in (first, second)
    ]
    assert [len(each) for each in shown] == [50, 10]
    assert not shown[0] & shown[1]
    assert "transactions=1" in following, "the other table stays where it is"
    assert boss.ask("DELETE", "/queues/many").status == 204


def test_the_way_of_a_message_is_a_picture_and_a_table(boss: Program, browser: Browser) -> None:
    boss.ask("POST", "/queues", {"name": "traced"})
    boss.ask("PATCH", "/queues/traced", {"trail": True})
    sent = boss.ask("POST", "/queues/traced/messages", b"x", {"Rpcqm-Label": "%3Cb%3E"}).value["id"]
    page = browser.get(f"/console/trace?id={quote(sent, safe='')}")
    assert ("svg", "img") in [(tag, each.get("role")) for tag, each in page.tags]
    for words in ("sender", "arrived", "waiting", "private$\\traced", "<b>"):
        assert words in page.words
    assert "<b>" not in page.text
    boss.ask("POST", "/queues/traced/receive?lease=0")
    assert "reader" in browser.get(f"/console/trace?id={quote(sent, safe='')}").words
    assert browser.get("/console/trace?id=nonsense").status == 400


def test_a_message_is_found_among_more_than_are_looked_at_at_once(
    boss: Program, browser: Browser
) -> None:
    boss.ask("POST", "/queues", {"name": "crowded"})
    piece = [{"body_base64": "eA==", "recoverable": True}] * (SLICE // 4)
    for _ in range(5):
        sent = boss.ask("POST", "/queues/crowded/messages/batch", {"messages": piece}).value["ids"]
    page = browser.get(f"/console/trace?id={quote(sent[-1], safe='')}")
    assert page.status == 200
    assert "waiting" in page.words
    assert boss.ask("DELETE", "/queues/crowded").status == 204


def test_a_page_is_told_of_what_moves_no_message(
    running: PrivateQueueManager, boss: Program, browser: Browser
) -> None:
    boss.ask("POST", "/queues", {"name": "watched"})
    boss.ask("POST", "/queues/watched/messages", b"x")
    (message,) = boss.ask("POST", "/queues/watched/receive?lease=600").value["messages"]
    with browser.events() as told:
        assert told() == b": alive"
        boss.ask("POST", f"/leases/{message['lease']}/extend", {"lease": 900})
        assert told() == b"event: changed"
        boss.ask("PUT", "/accounts/peeker/password", {"password": "secret"})
        assert told() == b"event: changed"
    boss.ask("POST", f"/leases/{message['lease']}/complete")


def test_of_a_message_that_is_unknown_here_no_way_is_told(browser: Browser) -> None:
    stranger = "{11111111-2222-3333-4444-555555555555}"
    page = browser.get(f"/console/trace?id={quote(stranger)}%5C5")
    assert "Nothing is known of it here" in page.words
    assert "handed over" not in page.words
    assert f"The queue manager {stranger} was not asked" in page.words


def test_a_dead_letter_tells_why_without_a_trail(boss: Program, browser: Browser) -> None:
    boss.ask("POST", "/queues", {"name": "late"})
    more = {"Rpcqm-Ttbr": "1", "Rpcqm-Dead-Letter": "true"}
    sent = boss.ask("POST", "/queues/late/messages", b"x", more).value["id"]
    until(lambda: boss.ask("GET", "/queues/late").value["messages"] == 0)
    page = browser.get(f"/console/trace?id={quote(sent, safe='')}")
    for words in ("DeadLetter$", "NACK_RECEIVE_TIMEOUT", "kept (by the message itself)"):
        assert words in page.words


def test_accounts_are_made_changed_and_deleted(
    running: PrivateQueueManager, boss: Program, browser: Browser
) -> None:
    browser.get("/console/accounts")
    new = {"name": "carol", "password": "first", "again": "other", "group": "users"}
    assert browser.submit("/console/accounts", new).status == 400
    made = browser.submit("/console/accounts", new | {"again": "first"})
    assert "The account carol was made." in made.words
    browser.get("/console/accounts/password?name=carol")
    browser.submit(
        "/console/accounts/password", {"name": "carol", "password": "next", "again": "next"}
    )
    carol = Program(running.endpoint("console"), "carol", "next")
    assert carol.ask("GET", "/leases").status == 200
    asked = browser.get("/console/accounts/remove?name=carol")
    assert "carol cannot log on any more, and 0 tokens" in asked.words
    browser.submit("/console/accounts/remove", {"name": "carol"})
    assert carol.ask("GET", "/leases").status == 401


def test_a_token_is_shown_once(running: PrivateQueueManager, browser: Browser) -> None:
    browser.get("/console/accounts")
    wanted = [("name", "meter"), ("account", "boss"), ("right", "peek"), ("days", "1")]
    made = browser.send("/console/accounts/tokens", wanted)
    assert made.status == 200
    assert made.headers["Cache-Control"] == "no-store"
    text = re.search('id="token-text"[^>]*>([^<]+)<', made.text)
    assert text
    bearer = Program(running.endpoint("console"))
    bearer.headers["Authorization"] = f"Bearer {text[1].strip()}"
    assert bearer.ask("GET", "/leases").status == 200
    listed = browser.get("/console/accounts")
    assert "meter" in listed.words
    assert text[1].strip() not in listed.text
    assert text[1].strip() not in running.log
    asked = browser.get("/console/accounts/tokens/delete?name=meter")
    assert "Programs that show the token meter of boss are refused" in asked.words
    browser.submit("/console/accounts/tokens/delete", {"name": "meter"})
    assert bearer.ask("GET", "/leases").status == 401
    refused = browser.send("/console/accounts/tokens", [("name", "x"), ("account", "boss")])
    assert refused.status == 400


def test_a_trigger_is_made_changed_switched_and_deleted(boss: Program, browser: Browser) -> None:
    form = {
        "name": "shop",
        "queue": "orders",
        "mode": "transaction",
        "label": "a<b*",
        "program": "/bin/echo\r\n--\r\n{label}\r\n",
        "poison_queue": ";poison",
        "priority_from": "3",
        "enabled": "1",
    }
    browser.get("/console/triggers/edit")
    page = browser.submit("/console/triggers/edit", form)
    assert "The trigger shop was made." in page.words
    assert "No service runs triggers now" in page.words
    made = boss.ask("GET", "/triggers/shop").value
    assert made["program"] == ["/bin/echo", "--", "{label}"]
    assert (made["label"], made["priority_from"], made["time_limit"]) == ("a<b*", 3, 60)
    edited = browser.get("/console/triggers/edit?name=shop")
    assert "a&lt;b*" in edited.text
    wrong = browser.send("/console/triggers/edit", {**form, "known": "shop", "program": "echo"})
    assert wrong.status == 400
    assert "whole path of a program" in wrong.words
    browser.get("/console/triggers/edit?name=shop")
    changed = browser.submit("/console/triggers/edit", {**form, "known": "shop", "label": ""})
    assert "The trigger shop was changed." in changed.words
    assert boss.ask("GET", "/triggers/shop").value["label"] == ""
    rests = browser.submit("/console/triggers", {"name": "shop", "enabled": ""})
    assert "The trigger shop rests" in rests.words
    assert boss.ask("GET", "/triggers/shop").value["enabled"] is False
    asked = browser.get("/console/triggers/remove?name=shop")
    assert "Nothing is done any more for messages of orders" in asked.words
    gone = browser.submit("/console/triggers/remove", {"name": "shop"})
    assert "The trigger shop was deleted." in gone.words
    assert boss.ask("GET", "/triggers").value["triggers"] == []


def test_the_trail_tells_who_did_what(boss: Program, browser: Browser) -> None:
    browser.get("/console/accounts")
    browser.submit("/console/accounts", {"name": "dave", "password": "x", "again": "x"})
    page = browser.get("/console/trail?kind=operator-acts")
    assert "boss ordered: add account, dave (from 127.0.0.1)" in page.words
    for on, reason in ((True, ""), (False, ""), (True, "a new disk"), (False, "")):
        assert boss.ask("PATCH", "/queue-manager", {"maintenance": on, "reason": reason})
    page = browser.get("/console/trail?kind=operator-acts")
    begun = "boss ordered: begin maintenance, the queue manager"
    assert f"{begun} (from 127.0.0.1)" in page.words
    assert f"{begun}; reason: a new disk (from 127.0.0.1)" in page.words


def test_orders_that_hold_are_given_and_ended_on_pages(boss: Program, browser: Browser) -> None:
    home, machine = "/console/overview", "/console/machine"
    for begins, ends, state, question in (
        ("maintain", "take", "maintenance", "No new message is taken by any door"),
        ("disconnect", "connect", "disconnected", "Nothing more is sent to other queue managers"),
    ):
        offered = browser.get(home).text
        assert (f"{machine}/{begins}" in offered, f"{machine}/{ends}" in offered) == (True, False)
        asked = browser.get(f"{machine}/{begins}")
        assert question in asked.words
        told = browser.submit(f"{machine}/{begins}", {"reason": "a new disk"})
        assert f"{machine}/{ends}" in told.text
        order = boss.ask("GET", "/queue-manager").value[state]
        assert (order["by"], order["reason"]) == ("boss", "a new disk")
        assert "a new disk" in browser.get(home).words
        browser.get(f"{machine}/{ends}")
        browser.submit(f"{machine}/{ends}", {})
        assert boss.ask("GET", "/queue-manager").value[state] is None
    long = browser.send(f"{machine}/maintain", {"reason": "x" * 5_000})
    assert (long.status, "MQ_ERROR_INVALID_PARAMETER" in long.text) == (400, True)


def test_held_messages_are_listed_and_cancelled_by_who_may(
    boss: Program, browser: Browser, running: PrivateQueueManager
) -> None:
    boss.ask("POST", "/queues", {"name": "late"})
    draft = {"label": "at noon", "body_base64": "eA==", "not_before": "2035-01-01T12:00:00Z"}
    held = boss.ask("POST", "/queues/late/scheduled-messages", draft).value["id"]
    page = browser.get("/console/scheduled")
    for words in ("1 message waits", "late", "at noon", "boss"):
        assert words in page.words
    assert "DIRECT=" not in page.words
    other = open_browser(running)
    other.log_on("peeker")
    assert "at noon" not in other.get("/console/scheduled").words
    assert other.send("/console/scheduled/cancel", {"id": held}).status == 404
    asked = browser.get(f"/console/scheduled/cancel?id={held}")
    assert "A message of boss for late will never be sent." in asked.words
    assert "is not sent" in browser.submit("/console/scheduled/cancel", {"id": held}).words
    assert boss.ask("GET", "/scheduled-messages").value["scheduled"] == []
    assert browser.get(f"/console/scheduled/cancel?id={held}").status == 404


def test_a_code_is_explained(browser: Browser) -> None:
    page = browser.get("/console/explain?code=0xC00E0003")
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in page.words
    assert "404 Not Found" in page.words
    unknown = browser.get("/console/explain?code=%3Cscript%3EMQ_ERROR_QUEUE_NOT_FOUMD")
    assert "<script>MQ" not in unknown.text


def test_routes_are_a_picture_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "directory.toml"
    sites = {"alice": ["Berlin"], "router": ["Berlin", "Paris"], "bob": ["Paris"]}
    text = network_directory(sites, {})
    text += '\n[[routing_link]]\nsites = ["Berlin", "Paris"]\ncost = 17\ngates = ["router"]\n'
    path.write_text(text, "utf-8")
    with private_queue_manager(
        CONSOLE, f'name = "alice"\ndirectory_file = "{path}"\n'
    ) as queue_manager:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        queue_manager.run(*words, input="secret\n")
        browser = open_browser(queue_manager)
        browser.log_on("boss")
        page = browser.get("/console/routing")
        assert "svg" in [tag for tag, _ in page.tags]
        for words_of_it in ("Berlin", "Paris", "17", "router", "(this one)", "(ours)"):
            assert words_of_it in page.words


@pytest.mark.parametrize("page", [each for each in PAGES if each != "explain"])
def test_what_is_for_administrators_is_refused_to_others(
    running: PrivateQueueManager, page: str
) -> None:
    opened = open_browser(running)
    opened.log_on("peeker")
    told = opened.get(f"/console/{page}?id=%7B00000000-0000-0000-0000-000000000000%7D%5C1")
    assert told.status == (200 if page == "flight" else 403), told.words
    forms = {
        "outgoing": [("/pause", {"queue": AWAY}), ("/resend", {"queue": AWAY})],
        "accounts": [
            ("", {"name": "mallory", "password": "x", "again": "x"}),
            ("/password", {"name": "boss", "password": "x", "again": "x"}),
            ("/remove", {"name": "boss"}),
            ("/tokens", {"name": "mallory", "account": "boss", "right": "manage"}),
            ("/tokens/delete", {"name": "meter"}),
        ],
        "triggers": [
            ("", {"name": "x", "enabled": "1"}),
            ("/edit", {"name": "x", "queue": "q", "mode": "peek", "program": "/bin/true"}),
            ("/remove", {"name": "x"}),
        ],
    }
    for path, fields in forms.get(page, []):
        assert opened.send(f"/console/{page}{path}", fields).status == 403, path


def test_who_may_only_look_is_offered_nothing_that_changes(
    boss: Program, running: PrivateQueueManager
) -> None:
    """Every page for administrators, with a rule, an account, a token and a queue to elsewhere."""
    name = quote(AWAY, safe="")
    assert boss.ask("POST", f"/queues/-/messages?queue={name}", b"x").status == 201
    rule = {"name": "looked-at", "queue": "q", "program": ["/bin/true"]}
    assert boss.ask("POST", "/triggers", rule).status == 201
    draft = {"name": "looker", "password": "secret", "groups": ["observers"]}
    assert boss.ask("POST", "/accounts", draft).status == 201
    opened = open_browser(running)
    opened.log_on("looker", "secret")
    one = (f"outgoing/queue?queue={name}", "triggers/edit?name=looked-at")
    for page in (*PAGES, *one, "opened", "connections", "queues"):
        told = opened.get(f"/console/{page}")
        assert told.status == 200, (page, told.words)
        forms = [each["action"] for _, each in told.tags if each.get("method") == "post"]
        assert set(forms) - {"/console/triggers/edit"} == {"/console/logoff"}, page
        assert "Save" not in told.words, page
        links = " ".join(each.get("href") or "" for _, each in told.tags)
        offered = re.findall(r"/(?:remove|delete|password|end|pause|resume|resend|new)\b", links)
        assert not offered, page
    for path in ("/triggers/looked-at", "/accounts/looker"):
        assert boss.ask("DELETE", path).status == 204


def test_a_form_without_the_token_of_the_logon_changes_nothing(
    boss: Program, browser: Browser
) -> None:
    for path, fields in (
        ("/accounts", {"name": "mallory", "password": "x", "again": "x"}),
        ("/accounts/tokens", {"name": "mallory", "account": "boss", "right": "manage"}),
        ("/accounts/remove", {"name": "boss"}),
        ("/outgoing/pause", {"queue": AWAY}),
        ("/flight/release", {"lease": "x"}),
        ("/triggers/edit", {"name": "x", "queue": "q", "mode": "peek", "program": "/bin/true"}),
    ):
        browser.token = "guessed"  # each page that is answered brings another one
        assert browser.send(f"/console{path}", fields).status == 403
    names = [each["name"] for each in boss.ask("GET", "/accounts").value["accounts"]]
    assert "mallory" not in names
    assert boss.ask("GET", "/tokens").value["tokens"] == []
    assert boss.ask("GET", "/triggers").value["triggers"] == []
