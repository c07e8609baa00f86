"""A queue manager that is asked what it knows of a message, and answers what no one would."""

import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.support.api.programs import Program
from tests.support.console.browser import open_browser
from tests.support.modules import modules_of
from tests.support.network.neighbours import accounts_file, neighbours

ADD_BOSS = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
HOSTILE = """
    import pathlib
    from uuid import UUID
    from rpcqm.codec.ndr.encode import Encoder
    from rpcqm.codec.types.rpcqm_trace import WAY_EVENT, WAY_PLACE, R_GetWayResponse
    from rpcqm.interfaces import trace

    checked = Encoder.refuse

    def refuse(self, condition, reason):
        if "1000" not in reason:
            checked(self, condition, reason)

    def way(mode):
        event = dict(Time=1, LookupId=1, Happening=1, pwszQueue="q", pwszDetail="d", pwszMachine="")
        place = dict(LookupId=1, Arrived=1, Sent=1, State=1, Hops=1, pwszQueue="q", pwszLabel="l",
                     pwszDestination="", pwszDead="")
        events, places, name = 1, 1, "warehouse"
        kind, _, field = mode.partition(" ")
        if kind == "number":
            (event if field in event else place)[field] = 2**63 if field in (
                "Time", "LookupId", "Arrived", "Sent") else 2**32 - 1
        elif kind == "text" and field == "name":
            name = "x" * 300_000
        elif kind == "text":
            (event if field in event else place)[field] = "x" * 300_000
        elif kind == "events":
            events = int(field)
        elif kind == "places":
            places = int(field)
        return R_GetWayResponse(
            pQueueManager=UUID(int=7), ppwszName=name,
            pcEvents=events, ppEvents=[WAY_EVENT(**event)] * events,
            pcPlaces=places, ppPlaces=[WAY_PLACE(**place)] * places, result=0)

    async def R_GetWay(self, call, request):
        return way(pathlib.Path({path!r}).read_text())

    Encoder.refuse = refuse
    trace.Trace.R_GetWay = R_GetWay
"""
REFUSED = [
    *(f"number {field}" for field in ("Time", "Arrived", "Sent", "Happening", "State")),
    *("events 1001", "places 1001", "events 60000", "places 60000"),
    *(f"text {field}" for field in ("name", "pwszQueue", "pwszDetail", "pwszMachine")),
    *(f"text {field}" for field in ("pwszLabel", "pwszDestination", "pwszDead")),
]
TAKEN = ["", "number LookupId", "number Hops", "events 1000", "places 1000"]


@pytest.fixture(scope="module")
def asking(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[PrivateQueueManager, Path, str]]:
    """One that asks another, the file that says what that answers, and the message."""
    folder = tmp_path_factory.mktemp("hostile")
    mode = folder / "mode"
    mode.write_text("")
    (folder / "sitecustomize.py").write_text(textwrap.dedent(HOSTILE).format(path=str(mode)))
    accounts = accounts_file(tmp_path_factory.mktemp("accounts"), "boss")
    with ExitStack() as stack:
        both = neighbours(
            stack,
            *("shop", "warehouse"),
            accounts=accounts,
            environments={"warehouse": modules_of(folder)},
        )
        for each in both:
            each.run(*ADD_BOSS, input="secret\n")
        both[1].run("queue", "create", "orders")
        yield both[0], mode, r"DIRECT=OS:warehouse\private$\orders"


def answers(here: PrivateQueueManager, queue: str) -> tuple[str, dict[str, object]]:
    """The page of a message that is new, and what programs are told of it."""
    sent = here.run("send", queue, "--body", "x").stdout.strip()
    browser = open_browser(here)
    browser.log_on("boss")
    page = browser.get(f"/console/trace?id={quote(sent, safe='')}")
    program = Program(here.endpoint("console"), "boss")
    told = program.ask("GET", f"/message-traces/{quote(sent, safe='')}")
    program.close()
    assert (page.status, told.status) == (200, 200), (page.words[-2000:], told.body)
    assert "Traceback" not in here.log
    return page.words, told.value


@pytest.mark.bound("traces.told")
@pytest.mark.parametrize("mode", REFUSED)
def test_an_answer_that_is_beyond_all_bounds_is_refused_as_a_whole(
    asking: tuple[PrivateQueueManager, Path, str], mode: str
) -> None:
    here, file, queue = asking
    file.write_text(mode)
    words, told = answers(here, queue)
    assert "told by their own clocks" not in words
    assert "xxxx" not in words + str(told)


@pytest.mark.bound("traces.told")
@pytest.mark.parametrize("mode", TAKEN)
def test_an_answer_within_the_bounds_is_shown(
    asking: tuple[PrivateQueueManager, Path, str], mode: str
) -> None:
    here, file, queue = asking
    file.write_text(mode)
    words, _ = answers(here, queue)
    assert "told by their own clocks: warehouse." in words
