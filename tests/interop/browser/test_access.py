"""Everybody can use the pages: axe-core finds nothing, nothing is cut off, no payload runs."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from rpcqm.pipeline.html import Report
from rpcqm.testing import PrivateQueueManager
from tests.support.console.chromium import NARROW, WIDE, Person

PAYLOADS: list[str] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "markup.json").read_text("utf-8")
)
ORDERS = "?queue=orders"
PAGES = (
    "/console/overview",
    "/console/queues",
    "/console/queues/new",
    f"/console/queue{ORDERS}",
    f"/console/queue/send{ORDERS}",
    f"/console/queue/change{ORDERS}",
    f"/console/queue/rename{ORDERS}",
    "/console/connections",
    f"/console/queue/permissions{ORDERS}",
    f"/console/queue/permit{ORDERS}&action=deny&who=boss&right=full",
    f"/console/queue/access{ORDERS}&account=boss",
    f"/console/queue/purge{ORDERS}",
    f"/console/queue/delete{ORDERS}",
    f"/console/search{ORDERS}&label=*&body=apples&priority=0-7",
    "/console/search?label=*",
    "/console/triggers/edit",
    "/console/queue?queue=none",
    "/console/queue?queue=kept",
    "/console/nowhere",
    "/api/v1/",
)
FOUND = """
const done = arguments[0];
axe.run().then(r => done(r.violations.map(v => v.id + ': ' + v.nodes[0].html.slice(0, 200))));
"""
LINKS = """
return [...document.querySelectorAll('main a[href^="/console/message?"]')].map(a => a.href);
"""
RAN = "return window.ran === undefined && !document.querySelector('main script, main iframe')"


@pytest.fixture(scope="module")
def pages(running: PrivateQueueManager, someone: Person) -> list[str]:
    """Every page that the navigation leads to, those of a queue, and those of mistakes."""
    running.run("queue", "create", "orders", "--label", "Orders of today")
    running.run("queue", "acl", "grant", "orders", "boss", "full")
    running.run("queue", "create", "kept")
    sent = running.run("send", r"DIRECT=OS:nowhere.invalid\private$\x", "--body", "x").stdout
    trace = f"/console/trace?id={quote(sent.strip(), safe='')}"
    running.run("send", "orders", "--count", "3", "--body", "two apples", "--label", "fruit")
    running.run("send", "orders", "--body", "x", "--label", "x" * 200, "--priority", "7")
    long = json.loads(running.run("peek", "orders", "--json").stdout)["lookup_id"]
    move = f"/console/queue/move{ORDERS}&key={long}"
    someone.open("/")
    script = "return [...document.querySelectorAll('nav a')].map(a => a.getAttribute('href'))"
    return [*dict.fromkeys([*someone.driver.execute_script(script), *PAGES, trace, move])]


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", WIDE),
        ("dark", NARROW),
        pytest.param("light", NARROW, marks=pytest.mark.soak),
        pytest.param("dark", WIDE, marks=pytest.mark.soak),
    ],
)
def test_axe_finds_nothing_and_no_page_is_wider_than_its_window(
    someone: Person, pages: list[str], axe: str, width: int, scheme: str
) -> None:
    someone.look(width, scheme)
    wrong: dict[str, list[str]] = {}
    for page in pages:
        someone.driver.get(someone.home + page)
        someone.driver.execute_script(axe)
        found = list(someone.driver.execute_async_script(FOUND))
        if someone.scrolls_sideways():
            found.append("wider than the window")
        if found:
            wrong[page] = found
    someone.look()
    assert wrong == {}


def test_a_report_of_a_job_can_be_used_by_everybody(
    someone: Person, axe: str, tmp_path: Path
) -> None:
    report = Report("Ingested captures")
    report.summary({"rows_in": {"calls": 139148}})
    report.plot("Calls", [("R_StartReceive", 1000.0), ("a long name of an operation", 5.0)])
    report.plot("Answered differently", [])
    report.table("rows", "Slowest", [{"operation": "R_StartReceive", "calls": 1000}] * 3)
    report.write(tmp_path)
    for width, scheme in ((WIDE, "light"), (NARROW, "dark")):
        someone.look(width, scheme)
        someone.driver.get((tmp_path / "report.html").as_uri())
        someone.driver.execute_script(axe)
        assert someone.driver.execute_async_script(FOUND) == []
        assert not someone.scrolls_sideways()
    someone.look()


def test_no_payload_runs(running: PrivateQueueManager, someone: Person) -> None:
    running.run("queue", "create", "payloads")
    running.run("queue", "acl", "grant", "payloads", "boss", "full")
    for payload in PAYLOADS[::10]:
        running.run("send", "payloads", f"--label={payload[:200]}", f"--body={payload}")
    someone.complaints()
    someone.open("/console/queue", queue="payloads", limit="100")
    assert someone.driver.execute_script(RAN)
    shown = [*dict.fromkeys(someone.driver.execute_script(LINKS))]
    assert len(shown) == len(PAYLOADS[::10])
    for address in shown:
        someone.driver.get(address)
        assert someone.driver.execute_script(RAN)
    assert someone.complaints() == []
