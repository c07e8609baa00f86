"""Coming to the pages, and leaving them."""

import re
import stat
import urllib.parse
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.console.browser import Browser, one_time_token, open_browser

CONSOLE = ("--console-port", "0")


@pytest.fixture
def browser(running: PrivateQueueManager) -> Browser:
    return open_browser(running)


def test_somebody_logs_on_with_account_and_password_and_off_again(
    running: PrivateQueueManager, browser: Browser
) -> None:
    assert browser.get("/").title == "Log on"
    assert browser.log_on("boss", "wrong").status == 401
    page = browser.log_on("boss")
    assert page.title == "Overview"
    assert "Logged on as boss" in page.words
    kept = dict(browser.cookies)
    assert browser.submit("/console/logoff").title == "Log on"
    assert browser.cookies == {}
    browser.cookies = kept
    assert browser.get("/").title == "Log on"
    acts = [line for line in running.log.splitlines() if "an operator acts" in line]
    for action in ("log on", "log off"):
        assert any(f'"action": "{action}"' in line and '"who": "boss"' in line for line in acts)
        assert any(f'"action": "{action}"' in line and "127.0.0.1" in line for line in acts)


def test_who_asks_for_a_page_comes_to_it_behind_the_logon(browser: Browser) -> None:
    asked = browser.ask("GET", "/console/overview?x=1")
    assert asked.headers["Location"] == "/console/logon?to=%2Fconsole%2Foverview%3Fx%3D1"
    fields = {"account": "boss", "password": "secret"}
    on = browser.send("/console/logon", fields | {"to": "/console/overview?x=1"})
    assert on.headers["Location"] == "/console/overview?x=1"
    for elsewhere in ("https://evil.example.com/", "//evil.example.com", "/api/v1/queues"):
        on = browser.send("/console/logon", fields | {"to": elsewhere})
        assert on.headers["Location"] == "/console/overview"


def test_the_local_user_logs_on_without_a_password(
    running: PrivateQueueManager, browser: Browser
) -> None:
    path = Path(running.run("console", "--no-open").stdout.strip())
    form = path.read_text("utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f'action="{browser.home}/console/one-time"' in form
    found = re.search('name="logon" value="([^"]+)"', form)
    assert found
    path.unlink()
    welcome = browser.send("/console/one-time", {"logon": found[1]}, {"Origin": "null"})
    assert (welcome.status, welcome.title) == (200, "You are logged on")
    assert ("meta", {"http-equiv": "refresh", "content": "0;url=/console/overview"}) in welcome.tags
    assert browser.get("/console/overview").title == "Overview"
    assert found[1] not in running.log


def test_where_there_is_no_browser_the_file_is_named(
    running: PrivateQueueManager, tmp_path: Path
) -> None:
    alone = {"PATH": str(tmp_path), "RPCQM_DATA_DIR": str(running.data_dir)}
    said = running.run("console", env=alone)
    path = Path(said.stdout.strip())
    assert path.exists()
    path.unlink()
    assert "open this file within a minute" in said.stderr


def test_the_browser_is_given_the_file(running: PrivateQueueManager, tmp_path: Path) -> None:
    given, program = tmp_path / "given", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" >{given}\n')
    program.chmod(0o700)
    alone = {"BROWSER": f"{program} %s", "RPCQM_DATA_DIR": str(running.data_dir)}
    said = running.run("console", env=alone)
    assert (said.stdout, said.stderr) == ("", "")
    path = Path(urllib.parse.urlsplit(given.read_text("utf-8").strip()).path)
    assert "/console/one-time" in path.read_text("utf-8")
    path.unlink()


def test_a_command_says_where_no_pages_are() -> None:
    with private_queue_manager() as queue_manager:
        said = queue_manager.run("console", "--no-open", check=False)
        assert said.returncode == 1
        assert "serves no pages" in said.stderr


def test_another_password_and_the_end_of_an_account_log_off(
    running: PrivateQueueManager,
) -> None:
    browser = open_browser(running)
    running.run("user", "add", "guest", "--password-stdin", input="secret\n")
    assert browser.log_on("guest").title == "Overview"
    running.run("user", "password", "guest", "--password-stdin", input="other\n")
    assert browser.get("/console/overview").title == "Log on"
    assert browser.log_on("guest", "other").title == "Overview"
    running.run("user", "remove", "guest")
    assert browser.get("/console/overview").title == "Log on"


def test_an_account_without_rights_is_told_so(browser: Browser) -> None:
    assert "are for administrators" in browser.log_on("peeker").words


def test_pages_need_nothing_from_elsewhere_and_nothing_in_line(browser: Browser) -> None:
    page = browser.log_on("boss")
    loaded = [
        value
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in ("src", "href", "action") and value
    ]
    assert loaded
    assert all(value.startswith(("/", "#")) for value in loaded)
    assert not any(
        name == "style" or name.startswith("on")
        for _, attributes in page.tags
        for name in attributes
    )
    for value in loaded:
        if value.startswith("/console/static/"):
            file = browser.ask("GET", value)
            assert file.status == 200
            assert "immutable" in file.headers["Cache-Control"]


def test_a_page_has_what_a_screen_reader_needs(browser: Browser) -> None:
    page = browser.log_on("boss")
    tags = [tag for tag, _ in page.tags]
    assert ("html", {"lang": "en"}) in page.tags
    assert tags.count("h1") == 1
    assert {"header", "nav", "main"} <= set(tags)
    assert ("a", {"class": "skip", "href": "#content"}) in page.tags


def test_pages_are_loaded_when_somebody_asks_for_one(running: PrivateQueueManager) -> None:
    with private_queue_manager(CONSOLE) as other:
        maps = Path(f"/proc/{other.ready.pid}/maps")
        before = "markupsafe" in maps.read_text()
        assert open_browser(other).get("/").status == 200
        assert (before, "markupsafe" in maps.read_text()) == (False, True)


def test_one_session_of_a_token_that_nobody_else_can_use(running: PrivateQueueManager) -> None:
    browser = open_browser(running)
    token = one_time_token(running)
    assert browser.ask("GET", f"/console/one-time?logon={token}").status == 303, "no use of a GET"
    first = browser.send("/console/one-time", {"logon": token}, {"Origin": "null"})
    assert first.status == 200
    again = open_browser(running).send("/console/one-time", {"logon": token}, {"Origin": "null"})
    assert again.status == 401
