"""A queue manager with pages, and two accounts: boss, who administrates it, and peeker."""

from collections.abc import Iterator

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as queue_manager:
        for name, *groups in (("boss", "administrators"), ("peeker",)):
            words = [word for group in groups for word in ("--group", group)]
            queue_manager.run("user", "add", name, *words, "--password-stdin", input="secret\n")
        yield queue_manager
