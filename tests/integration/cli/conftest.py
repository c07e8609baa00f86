"""Commands in this process against a queue manager in another one."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from rpcqm.cli.main import main
from rpcqm.testing import PrivateQueueManager, private_queue_manager

CONFIGURATION = "[storage]\nreserve = 1\n"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    status: int
    output: bytes
    errors: str

    @property
    def text(self) -> str:
        return self.output.decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


Command = Callable[..., Outcome]


@pytest.fixture(scope="session")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=CONFIGURATION) as queue_manager:
        yield queue_manager


@pytest.fixture
def attempt(
    queue_manager: PrivateQueueManager,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> Command:
    """Run a command, whatever comes of it."""
    monkeypatch.setenv("RPCQM_DATA_DIR", str(queue_manager.data_dir))

    def attempt(*words: str) -> Outcome:
        capsysbinary.readouterr()
        status = main(list(words))
        captured = capsysbinary.readouterr()
        return Outcome(status, captured.out, captured.err.decode())

    return attempt


@pytest.fixture
def run(attempt: Command) -> Command:
    """Run a command that has to succeed."""

    def run(*words: str) -> Outcome:
        outcome = attempt(*words)
        assert outcome.status == 0, f"{' '.join(words)}: {outcome.errors}"
        assert outcome.errors == ""
        return outcome

    return run


@pytest.fixture
def refused(attempt: Command) -> Command:
    """Run a command that the queue manager has to refuse; the sentence is in `errors`."""

    def refused(*words: str) -> Outcome:
        outcome = attempt(*words)
        assert outcome.status == 1, f"{outcome.status}: {outcome.output!r} {outcome.errors}"
        assert outcome.errors.startswith("rpcqm: ")
        assert outcome.errors.count("\n") == 1
        assert "Traceback" not in outcome.errors
        return outcome

    return refused


@pytest.fixture
def nothing_came(attempt: Command) -> Command:
    """Run a command that has to find no message in time; the sentence is in `errors`."""

    def nothing_came(*words: str) -> Outcome:
        outcome = attempt(*words)
        assert outcome.status == 4, f"{outcome.status}: {outcome.output!r} {outcome.errors}"
        assert outcome.errors.startswith("rpcqm: Cannot ")
        assert outcome.errors.count("\n") == 1
        assert "(MQ_ERROR_IO_TIMEOUT)" in outcome.errors
        return outcome

    return nothing_came


@pytest.fixture
def name() -> str:
    """A queue name that no other test uses."""
    return f"queue-{next(_numbers)}"


@pytest.fixture
def queue(run: Command, name: str) -> str:
    """An ordinary queue of this test's own."""
    run("queue", "create", name)
    return name
