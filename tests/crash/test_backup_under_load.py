"""A backup that is made while clients send, receive, move and commit."""

from pathlib import Path

from rpcqm.store.backup import restore_backup
from rpcqm.testing import private_queue_manager
from tests.crash.server_load import Ledger, ServerLoad, contents, loaded_queue_manager

SEED = 1


def back_up(load: ServerLoad, directory: Path) -> tuple[Ledger, Ledger]:
    """A backup in the middle of the load, between what was known before and after it."""
    known: list[Ledger] = []

    def work() -> None:
        known.append(load.ledger.copy())
        load.queue_manager.run("backup", str(directory))
        known.append(load.ledger.copy())
        load.queue_manager.kill()

    load.live_until(work)
    before, after = known
    return before, after


def test_a_backup_under_load_is_one_moment_of_the_queue_manager(tmp_path: Path) -> None:
    with loaded_queue_manager(SEED) as load:
        before, after = back_up(load, tmp_path / "copy")
        load.restart()
    restore_backup(tmp_path / "copy", tmp_path / "data")
    with private_queue_manager(data_dir=tmp_path / "data") as restored:
        orders, late, pairs = contents(restored)
    found = {*orders, *late}
    assert len(orders) + len(late) == len(found)
    assert before.there - after.gone - after.ending <= found
    assert not found & before.gone
    after.compare_order(orders)
    assert before.pairs <= after.compare_pairs(pairs)
    assert before.pairs
