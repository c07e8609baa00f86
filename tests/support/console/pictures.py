"""Makes the pictures of docs/console.md: pages of queue managers with examples.

`python -m tests.support.console.pictures` needs Debian's Chromium and its driver (`scripts/document
--pictures`).
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from selenium.webdriver.common.by import By

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.console.browser import open_browser
from tests.support.console.chromium import Person, person
from tests.support.network.neighbours import accounts_file, neighbours
from tests.support.waiting import until

ADD_ADA = ("user", "add", "ada", "--group", "administrators", "--password-stdin")
PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
HEIGHT = 720
SHOWN = (
    ("overview", "/console/overview", 1000, "light"),
    ("queue", "/console/queue?queue=orders", 1000, "light"),
    ("queues", "/console/queues", 1000, "dark"),
    ("phone", "/console/queue?queue=orders", 375, "dark"),
)
"""The name of each picture, its page, the width of the window, and dark or light."""


def fill(running: PrivateQueueManager) -> None:
    """Queues and messages that tell something."""
    running.run(*ADD_ADA, input="secret\n")
    for name, label in (
        ("orders", "Orders of today"),
        ("answers", "What customers are told"),
        ("invoices", "For the books"),
        ("late", "To be looked at"),
    ):
        running.run("queue", "create", name, "--label", label)
        running.run("queue", "acl", "grant", name, "ada", "full")
    for label, body, priority in (
        ("fruit", "<order><apples>2</apples></order>", "3"),
        ("bicycle", "<order><bicycles>1</bicycles></order>", "5"),
        ("Grüße", "guten Tag", "3"),
        ("books", "<order><books>12</books></order>", "3"),
    ):
        running.run("send", "orders", "--label", label, "--body", body, "--priority", priority)
    running.run("send", "answers", "--label", "sold", "--body", "two apples", "--count", "3")
    lost = ("--label", "lost", "--body", "x", "--ttbr", "1", "--dead-letter")
    running.run("send", "late", *lost)


def has_a_chart(someone: Person) -> bool:
    """Whether there has been time for the history to have a line."""
    someone.open("/console/overview")
    return bool(someone.driver.find_elements(By.CSS_SELECTOR, "svg.chart"))


def take(someone: Person) -> None:
    """All of them."""
    PICTURES.mkdir(exist_ok=True)
    until(lambda: has_a_chart(someone))
    for name, path, width, scheme in SHOWN:
        someone.look(width, scheme)
        someone.driver.get(someone.home + path)
        someone.driver.save_screenshot(str(PICTURES / f"{name}.png"))


def take_trace() -> None:
    """That of a message over two queue managers."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        accounts = accounts_file(directory, "ada")
        shop, warehouse = neighbours(stack, "shop", "warehouse", accounts=accounts)
        for each in (shop, warehouse):
            each.run(*ADD_ADA, input="secret\n")
        shop.run("queue", "create", "told")
        shop.run("queue", "acl", "grant", "told", "anonymous", "send")
        warehouse.run("queue", "create", "orders")
        warehouse.run("queue", "set", "orders", "--trail")
        words = ("--label", "fruit", "--ack", "full-receive", "--admin-queue", "told")
        sent = shop.run("send", r"DIRECT=OS:warehouse\private$\orders", "--body", "x", *words)
        warehouse.run("receive", "orders", "--timeout", "20000")
        shop.run("receive", "told", "--timeout", "20000")
        someone = stack.enter_context(person(open_browser(shop).home))
        someone.log_on("ada")
        someone.look(1100, "light")
        someone.driver.get(f"{someone.home}/console/trace?id={quote(sent.stdout.strip(), safe='')}")
        someone.driver.save_screenshot(str(PICTURES / "trace.png"))


def main() -> None:
    take_trace()
    with private_queue_manager(("--console-port", "0")) as running:
        fill(running)
        with person(open_browser(running).home) as someone:
            someone.log_on("ada")
            take(someone)


if __name__ == "__main__":
    main()
