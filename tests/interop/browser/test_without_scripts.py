"""Without scripts every page can be read, and every form works."""

from rpcqm.testing import PrivateQueueManager
from tests.support.console.chromium import Person

SCRIPTS = False


def test_a_queue_is_made_filled_and_purged(running: PrivateQueueManager, someone: Person) -> None:
    someone.open("/console/queues")
    someone.press("Make a queue")
    someone.fill(name="plain")
    someone.press("Make the queue")
    someone.press("Send a message")
    someone.fill(label="by a form", body="nothing but HTML")
    someone.press("Send")
    assert "The message was sent" in someone.text
    assert "by a form" in running.run("peek", "plain", "--all").stdout
    someone.open("/console/queue", queue="plain")
    someone.press("by a form")
    assert "nothing but HTML" in someone.text
    someone.open("/console/queue", queue="plain")
    someone.press("Purge")
    someone.press("Remove all messages")
    assert "by a form" not in running.run("peek", "plain", "--all", check=False).stdout
