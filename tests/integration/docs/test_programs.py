"""The Python programs of docs/dotnet.md print what the page shows."""

import contextlib
import io
import re
from collections.abc import Iterator

import pytest

from rpcqm.client.mq import DATA_DIR
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.cli.documents import ROOT

TEXT = (ROOT / "docs" / "dotnet.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as queue_manager:
        queue_manager.run("queue", "create", "orders", "--transactional")
        queue_manager.run("queue", "create", "shelf")
        yield queue_manager


def test_every_program_is_followed_by_what_it_prints() -> None:
    assert len(EXAMPLES) == TEXT.count("```python") == 3


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_a_program_prints_what_the_page_shows(
    queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setenv(DATA_DIR, str(queue_manager.data_dir))
    program, output = EXAMPLES[number]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "docs/dotnet.md", "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == output
