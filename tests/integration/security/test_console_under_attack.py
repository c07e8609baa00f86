"""Strangers, their pages, and accounts with few rights, at the operator's pages."""

import http.client
import socket
from collections.abc import Iterator

import pytest

from rpcqm.console.forms import FORM_BYTES, LOGON_BYTES
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.console.browser import Browser, open_browser
from tests.support.waiting import PATIENCE

CONSOLE = ("--console-port", "0")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    settings = '[limits]\nunfinished_seconds = 1\n[console]\ntrusted_proxy = "192.0.2.9"\n'
    with private_queue_manager(CONSOLE, settings) as queue_manager:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        queue_manager.run(*words, input="secret\n")
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Browser:
    browser = open_browser(running)
    browser.log_on("boss")
    return browser


def is_on(browser: Browser) -> bool:
    return browser.get("/console/overview").title == "Overview"


def test_a_forged_form_changes_nothing(running: PrivateQueueManager, boss: Browser) -> None:
    other = open_browser(running)
    other.log_on("boss")
    stolen, own = other.token, boss.token
    for token in ("", "x", stolen, own + "x", "\N{GRINNING FACE}"):
        boss.token = token
        assert boss.send("/console/logoff").status == 403
    boss.token = own
    for origin in ("https://evil.example.com", "null", "http://localhost", boss.home + "1", ""):
        assert boss.send("/console/logoff", (), {"Origin": origin}).status == 403
    for site in ("cross-site", "same-site", "none"):
        assert boss.send("/console/logoff", (), {"Sec-Fetch-Site": site}).status == 403
    body = f"token={own}".encode()
    assert boss.ask("POST", "/console/logoff", body, FORM).status == 403, "without an origin"
    plain = {"Content-Type": "text/plain", "Origin": boss.home}
    assert boss.ask("POST", "/console/logoff", body, plain).status == 415
    assert boss.ask("GET", f"/console/logoff?token={own}").status == 404
    boss.token = own
    assert is_on(boss)


def test_nobody_is_logged_on_by_a_page_of_another_origin(running: PrivateQueueManager) -> None:
    browser = open_browser(running)
    fields = {"account": "boss", "password": "secret"}
    for origin in ("null", "http://localhost", "https://evil.example.com"):
        answer = browser.send("/console/logon", fields, {"Origin": origin})
        assert (answer.status, browser.cookies) == (403, {})


def test_every_answer_forbids_framing_and_foreign_scripts(
    running: PrivateQueueManager, boss: Browser
) -> None:
    nobody = open_browser(running)
    answers = [
        nobody.ask("GET", "/"),
        nobody.ask("GET", "/console/logon"),
        nobody.ask("GET", "/console/nothing"),
        nobody.ask("GET", "/console/events"),
        nobody.ask("GET", "/console/static/x"),
        nobody.ask("PUT", "/console/logon"),
        nobody.ask("GET", "/", headers={"Host": "evil.example.com"}),
        nobody.ask("GET", "/", headers={"Host": "127.0.0.1"}),
        nobody.send("/console/logon", {"account": "boss", "password": "wrong"}),
        boss.ask("GET", "/console/overview"),
        boss.ask("GET", "/console/nothing"),
        boss.ask("GET", "/"),
    ]
    for answer in answers:
        (policy,) = answer.headers.get_all("Content-Security-Policy", [])
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Server"] is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com",
        "localhost.evil.example.com",
        "localhost:1.evil.example.com",
        "evil.example.com@localhost",
        "[::1]evil.example.com",
        "",
        "[",
        "evil.example.com#localhost",
    ],
)
def test_a_name_of_a_stranger_leads_to_nothing(boss: Browser, host: str) -> None:
    answer = boss.ask("GET", "/console/overview", headers={"Host": host})
    assert answer.status == 403
    assert "boss" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "evil.localhost"])
def test_a_cookie_is_worth_nothing_at_another_name_of_this_machine(
    boss: Browser, host: str
) -> None:
    port = boss.address[1]
    answer = boss.ask("GET", "/console/overview?a=1", headers={"Host": f"{host}:{port}"})
    assert (answer.status, answer.headers["Location"]) == (
        303,
        f"{boss.home}/console/overview?a=1",
    )
    body = f"token={boss.token}".encode()
    headers = FORM | {"Host": f"{host}:{port}", "Origin": f"http://{host}:{port}"}
    assert boss.ask("POST", "/console/logoff", body, headers).status == 403
    assert is_on(boss)


def test_a_stolen_cookie_is_worth_nothing_at_another_port(
    running: PrivateQueueManager, boss: Browser
) -> None:
    """Neither at another queue manager, nor behind a port that leads to this one."""
    forwarded = Browser(boss.address, boss.home.rpartition(":")[0] + ":1")
    forwarded.cookies = boss.cookies
    assert not is_on(forwarded)
    with private_queue_manager(CONSOLE) as other:
        there = open_browser(other)
        name = f"rpcqm-{there.address[1]}"
        there.cookies = {name: next(iter(boss.cookies.values())), **boss.cookies}
        assert not is_on(there)
    assert is_on(boss)


def test_a_session_cannot_be_fixed_before_the_logon(running: PrivateQueueManager) -> None:
    browser = open_browser(running)
    name = f"rpcqm-{browser.address[1]}"
    browser.cookies = {name: "chosen"}
    browser.log_on("boss")
    assert browser.cookies[name] != "chosen"
    first = browser.cookies[name]
    browser.log_on("boss")
    assert browser.cookies[name] != first
    browser.cookies = {name: first}
    assert not is_on(browser), "a further logon ends the session before"
    browser.cookies = {name: "chosen"}
    assert not is_on(browser)


def test_the_interface_for_programs_takes_no_cookie(boss: Browser) -> None:
    assert boss.ask("GET", "/api/v1/queues").status == 401
    assert boss.ask("GET", "/api/v1/events").status == 401


def test_a_cookie_is_kept_from_scripts_and_from_other_sites(running: PrivateQueueManager) -> None:
    browser = open_browser(running)
    on = browser.send("/console/logon", {"account": "boss", "password": "secret"})
    parts = on.headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(parts)
    assert not any(part.startswith("Domain") for part in parts)


def test_nobody_is_believed_who_is_no_proxy(running: PrivateQueueManager) -> None:
    browser = open_browser(running)
    forged = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
    fields = {"account": "boss", "password": "secret"}
    on = browser.send("/console/logon", fields, forged)
    assert (on.status, "Secure" in on.headers["Set-Cookie"]) == (303, False)
    browser.send("/console/logon", fields | {"password": "wrong"}, forged)
    assert "192.0.2.1" not in running.log


def test_two_cookies_of_that_name_are_none(boss: Browser) -> None:
    ((name, value),) = boss.cookies.items()
    headers = {"Cookie": f"{name}=other; {name}={value}"}
    assert boss.ask("GET", "/console/overview", headers=headers).status == 303


def test_guesses_at_a_password_are_slowed_with_those_of_programs(
    running: PrivateQueueManager,
) -> None:
    browser = open_browser(running)
    wrong = {"account": "victim", "password": "wrong"}
    statuses = [browser.send("/console/logon", wrong).status for _ in range(8)]
    assert statuses[:5] == [401] * 5
    assert statuses[-1] == 429
    connection = http.client.HTTPConnection(*browser.address, timeout=PATIENCE)
    connection.request("GET", "/api/v1/queues", headers={"Authorization": "Basic dmljdGltOng="})
    assert connection.getresponse().status == 429
    connection.close()


def test_one_time_logons_cannot_be_guessed(running: PrivateQueueManager) -> None:
    browser = open_browser(running)
    for guess in ("", "x", "x" * 43):
        answer = browser.send("/console/one-time", {"logon": guess}, {"Origin": "null"})
        assert (answer.status, browser.cookies) == (401, {})
    assert "a wrong one-time logon" in running.log


@pytest.mark.parametrize(
    "path",
    [
        "/console/static/",
        "/console/static/console.css",
        "/console/static/../sessions.py",
        "/console/static/%2e%2e/sessions.py",
        "/console/static/..%2fsessions.py",
        "/console/static//etc/passwd",
        "/console/static/console.js%00",
        "/console//static/x",
        "/console/./logon",
        "/console/templates/base.html",
    ],
)
def test_only_the_files_of_pages_are_served(boss: Browser, path: str) -> None:
    assert boss.ask("GET", path).status == 404


def test_a_redirect_leads_nowhere_else(running: PrivateQueueManager) -> None:
    browser = open_browser(running)
    for path in ("//evil.example.com/", "/\\evil.example.com", "/console/overview//evil"):
        answer = browser.ask("GET", path, headers={"Host": "127.0.0.1"})
        location = answer.headers["Location"] or browser.home
        assert location.startswith(f"http://{browser.host.partition(':')[0]}")


@pytest.mark.bound("console.form_bytes", "console.logon_bytes")
def test_oversized_forms_are_refused(running: PrivateQueueManager, boss: Browser) -> None:
    nobody = open_browser(running)
    for browser, bound in ((nobody, LOGON_BYTES), (boss, FORM_BYTES)):
        headers = FORM | {"Origin": browser.home}
        for size, statuses in ((bound, {401, 403}), (bound + 1, {413})):
            body = b"account=" + b"x" * (size - 8)
            path = "/console/logon" if browser is nobody else "/console/logoff"
            assert browser.ask("POST", path, body, headers).status in statuses
    assert is_on(boss)


def test_a_slow_form_is_cut_off(boss: Browser) -> None:
    with socket.create_connection(boss.address, PATIENCE) as connection:
        head = f"POST /console/logon HTTP/1.1\r\nHost: {boss.host}\r\nContent-Length: 100\r\n\r\n"
        connection.sendall(head.encode() + b"account=")
        connection.settimeout(PATIENCE)
        assert connection.recv(1) == b""


def test_events_are_for_those_who_are_logged_on(
    running: PrivateQueueManager, boss: Browser
) -> None:
    nobody = open_browser(running)
    assert nobody.ask("GET", "/console/events").status == 401
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"}
        assert boss.ask("GET", "/console/events", headers=headers).status == 403
    connection = http.client.HTTPConnection(*boss.address, timeout=PATIENCE)
    cookie = "; ".join(f"{name}={value}" for name, value in boss.cookies.items())
    connection.request("GET", "/console/events", headers={"Host": boss.host, "Cookie": cookie})
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.readline() == b": alive\n"
    running.run("queue", "create", "watched")
    lines = [answer.readline() for _ in range(3)]
    assert b"event: changed\n" in lines
    boss.send("/console/logoff")
    assert b"" in [answer.readline() for _ in range(100)], "it ends with the session"
    connection.close()
