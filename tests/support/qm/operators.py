"""What operators and programs do, over a queue manager of a test."""

from pathlib import Path

from rpcqm.base.admission import Admission
from rpcqm.operations.operations import Operations
from rpcqm.service.accounts import Accounts
from rpcqm.service.backups import Backups
from rpcqm.service.tokens import tokens_of
from tests.support.queue_manager import RunningQueueManager


def operations_of(
    qm: RunningQueueManager, path: Path, admission: Admission | None = None
) -> Operations:
    """Its accounts lie below the path, also of one that has taken the place of another."""
    directory = path / "accounts"
    directory.mkdir(exist_ok=True)
    accounts = Accounts(qm.store, directory, clock=qm.clock)
    backups = Backups(qm.engine, accounts.user_file)
    tokens = tokens_of(qm.engine, accounts)
    return Operations(qm.engine, accounts, backups.make, tokens, admission)
