"""kill -9 of a real queue manager under load from several clients, seen through its RPC."""

from tests.crash.server_load import FEWEST, loaded_queue_manager

KILLS = 3
SEED = 1


def test_what_clients_were_told_holds_over_kills() -> None:
    with loaded_queue_manager(SEED) as load:
        load.run(KILLS)
    assert load.ledger.operations >= FEWEST * KILLS
    assert load.ledger.gone
    assert load.ledger.pairs
    print(f"{load.ledger.operations} acknowledged operations, {KILLS} kills")
