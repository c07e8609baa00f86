"""A message's way over two queue managers, at the pages of both."""

import socket
from contextlib import ExitStack
from urllib.parse import quote

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.browser import Answer, open_browser
from tests.support.waiting import until

ADD_BOSS = ("user", "add", "boss", "--group", "administrators", "--password-stdin")


def pair(stack: ExitStack, *names: str) -> list[PrivateQueueManager]:
    """Queue managers that know each other's ports."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in names]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [str(each.getsockname()[1]) for each in sockets]
    peers = ", ".join(f"{name}=127.0.0.1:{port}" for name, port in zip(names, ports, strict=True))
    return [
        stack.enter_context(
            private_queue_manager(
                ("--console-port", "0", "--binary-port", port),
                f'name = "{name}"\n[binary]\npeers = "{peers}"\n',
            )
        )
        for name, port in zip(names, ports, strict=True)
    ]


def page(queue_manager: PrivateQueueManager, path: str) -> Answer:
    queue_manager.run(*ADD_BOSS, input="secret\n")
    browser = open_browser(queue_manager)
    browser.log_on("boss")
    return browser.get(path)


def test_the_way_of_a_message_leads_over_queue_managers() -> None:
    with ExitStack() as stack:
        here, there = pair(stack, "shop", "warehouse")
        there.run("queue", "create", "orders")
        there.run("queue", "set", "orders", "--trail")
        here.run("queue", "create", "told")
        here.run("queue", "acl", "grant", "told", "anonymous", "send")
        asked = ("--ack", "full-receive", "--admin-queue", "told")
        to = r"DIRECT=OS:warehouse\private$\orders"
        sent = here.run("send", to, "--body", "x", *asked).stdout.strip()
        there.run("receive", "orders", "--timeout", "20000")
        until(lambda: "ACK_RECEIVE" in here.run("peek", "told", "--all", check=False).stdout)
        path = f"/console/trace?id={quote(sent, safe='')}"
        of_sender, of_reader = page(here, path), page(there, path)
    for words in ("shop this queue manager", "warehouse where it is for", "sent", "ACK_RECEIVE"):
        assert words in of_sender.words
    for words in ("where it was sent", "warehouse this queue manager", "arrived", "reader"):
        assert words in of_reader.words
    assert sent.partition("\\")[0] in of_reader.words, "the identifier tells who has sent it"
