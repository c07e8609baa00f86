"""The examples of docs/client.md do what it says that they do."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.client.mq import DATA_DIR
from rpcqm.testing import PrivateQueueManager, private_queue_manager

TEXT = (Path(__file__).parents[3] / "docs" / "client.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as queue_manager:
        queue_manager.run("queue", "create", "orders")
        for name in ("requests", "answers"):
            queue_manager.run("queue", "create", name, "--transactional")
        yield queue_manager


def test_every_example_is_followed_by_what_it_prints() -> None:
    assert len(EXAMPLES) == TEXT.count("```python") == 5


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_the_documentation_shows(
    queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setenv(DATA_DIR, str(queue_manager.data_dir))
    program, output = EXAMPLES[number]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "docs/client.md", "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == output
