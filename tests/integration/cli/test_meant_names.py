r"""A name that was written otherwise: every door says which one was probably meant (G475)."""

from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from rpcqm.base.errors import MQError
from rpcqm.client import mq
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.console.browser import open_browser

MEANT = {
    r"OS:b\private$\orders": r"DIRECT=OS:b\private$\orders",
    r"DIRECT=OS:b:1801\private$\orders": r"DIRECT=OS:b\private$\orders",
    "net.msmq://localhost/private/orders": "orders",
    "orders@b": r"DIRECT=OS:b\private$\orders",
    "orders ": "orders",
}


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as machine:
        machine.run(
            "user", "add", "boss", "--group", "administrators", "--password-stdin", input="secret"
        )
        machine.run("queue", "create", "orders")
        yield machine


def by_command(running: PrivateQueueManager, text: str) -> str:
    done = running.run("send", text, "--body", "a", check=False)
    assert done.returncode in (1, 2)
    return done.stderr


def by_another_command(running: PrivateQueueManager, text: str) -> str:
    done = running.run("queue", "show", text, check=False)
    assert done.returncode in (1, 2)
    return done.stderr


def by_client(running: PrivateQueueManager, text: str) -> str:
    with pytest.raises(MQError) as caught, mq.open(text, server=running.target) as queue:
        queue.send("a")
    return str(caught.value)


def by_interface(running: PrivateQueueManager, text: str) -> str:
    program = Program(running.endpoint("console"), "boss")
    answer = program.ask("GET", f"/queues/{quote(text, safe='')}")
    program.close()
    assert answer.status in (400, 404)
    return str(answer.value["detail"])


def by_console(running: PrivateQueueManager, text: str) -> str:
    browser = open_browser(running)
    browser.log_on("boss")
    return browser.get(f"/console/queue?queue={quote(text, safe='')}").words


DOORS = (by_command, by_another_command, by_client, by_interface, by_console)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("text", MEANT)
def test_every_door_says_which_name_was_probably_meant(
    running: PrivateQueueManager, door: Callable[[PrivateQueueManager, str], str], text: str
) -> None:
    assert f"did you mean `{MEANT[text]}`?" in door(running, text)


def test_a_queue_of_an_odd_name_is_used_by_it(running: PrivateQueueManager) -> None:
    running.run("queue", "create", "orders@b")
    running.run("send", "orders@b", "--body", "a")
    assert running.run("receive", "orders@b", "--format", "body").stdout == "a"


@pytest.mark.parametrize(
    ("missing", "named"), [("lost", "private$\\lost`"), ("lost@b", "did you mean `DIRECT=OS:b")]
)
def test_a_refused_list_says_which_queue_is_missing(
    running: PrivateQueueManager, missing: str, named: str
) -> None:
    said = by_command(running, f"orders,{missing},DeadLetter")
    assert named in said
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in said
    said = by_command(running, f"{missing},orders")
    assert named in said
