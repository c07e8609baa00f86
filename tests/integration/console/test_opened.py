"""Who has queues open, on the pages: seen, and ended after a question."""

import html
import re

import pytest

from rpcqm.client.names import format_name
from rpcqm.testing import PrivateQueueManager
from tests.support.console.browser import Browser, open_browser

END = "/console/opened/end"


@pytest.fixture(scope="module")
def boss(running: PrivateQueueManager) -> Browser:
    browser = open_browser(running)
    browser.log_on("boss")
    return browser


def test_who_has_a_queue_open_is_seen_and_ended(
    boss: Browser, running: PrivateQueueManager
) -> None:
    running.run("queue", "create", "watched")
    page = boss.get("/console/opened?queue=watched")
    assert "Nobody has anything open." in page.words
    name = format_name("watched")
    with running.client() as client, client.open_reader(name, exclusive=True):
        page = boss.get("/console/opened?queue=watched")
        assert "open queue watched" in page.words
        assert "local (rpc)" in page.words
        assert "receiving, and nobody else" in page.words
        assert "open queue watched" in boss.get("/console/opened").words
        (ending,) = re.findall(f'href="({END}[^"]+)"', page.text)
        sure = boss.get(html.unescape(ending))
        assert "This will end as if its client had gone: handle-" in sure.words
        wanted = re.search('name="id" value="([^"]+)"', sure.text)
        assert wanted
        form = {"id": wanted[1], "queue": "watched"}
        assert f"Ended: {wanted[1]}." in boss.submit(END, form).words
        assert "Nobody has anything open." in boss.get("/console/opened?queue=watched").words
        again = boss.send(END, form)
        assert (again.status, "STATUS_OBJECT_NAME_NOT_FOUND" in again.words) == (404, True)


def test_a_connection_is_seen_and_ended(boss: Browser, running: PrivateQueueManager) -> None:
    with running.client() as client:
        client.run(client.accounts.list())
        page = boss.get("/console/connections")
        assert "http console" in page.words
        found = re.findall(r"id=(connection-\d+)&amp;who=local", page.text)
        assert found
        assert "Ended: connection-" in boss.submit(END, {"id": found[-1], "queue": ""}).words


def test_others_than_administrators_see_nobody(running: PrivateQueueManager) -> None:
    peeker = open_browser(running)
    peeker.log_on("peeker")
    for page in ("/console/opened", "/console/connections", f"{END}?id=handle-1"):
        assert peeker.get(page).status == 403
    assert peeker.send(END, {"id": "handle-1", "queue": ""}).status == 403
    assert "/console/opened" not in peeker.get("/console/flight").text
