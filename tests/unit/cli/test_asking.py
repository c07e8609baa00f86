"""What a command hears of a queue manager that does not answer."""

from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.cli.asking import NotAnsweredError, answer_of
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.ready import ReadyFile


@pytest.mark.parametrize(
    ("error", "reason"),
    [(TimeoutError(), "TimeoutError"), (ConnectionResetError("it has gone"), "it has gone")],
)
def test_what_is_not_answered_has_a_reason(tmp_path: Path, error: OSError, reason: str) -> None:
    """Also where the error itself has no words."""

    async def fails(client: QueueManagerClient) -> None:
        raise error

    running = ReadyFile(1, "here", UUID(int=1), tmp_path / "socket")
    with pytest.raises(NotAnsweredError, match=f"^{reason}$"):
        answer_of(running, fails)
