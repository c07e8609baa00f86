"""A replicated log, with RabbitMQ on three nodes beside it, and how long a takeover takes."""

from subjects.row import Table, least, most, rows_of_bench, shown, table

PEER = "RabbitMQ's quorum queue on three nodes"
SENDS = f"replicated durable sends of 1 KiB over {PEER}"
ONE, SIXTEEN, MANY = (
    f"{SENDS}, {name}" for name in ("1 publisher", "16 publishers", "64 publishers")
)
SATURATED = f"{SENDS}, saturated (4 connections with 64 calls against 16 publishers with 256)"
FOLLOWER = "a standby's processor time over the primary's, saturated"
OVER_ALONE = "replicated durable sends of 1 KiB over those without a log, saturated"
WITHOUT = "seconds without an answer"
PRIMARY, LEADER, BOTH_OF_THEM, SWITCH_OVER = (
    f"{WITHOUT}, {name}"
    for name in ("primary killed", "the log's leader killed", "both killed", "switched over")
)

RATES = rows_of_bench(
    "replica",
    least(ONE, 1.0),
    least(SIXTEEN, 1.0),
    least(MANY, 1.3),
    least(SATURATED, 1.8),
    shown(OVER_ALONE, "for comparison: the log's three servers share the processors"),
    most(FOLLOWER, 0.05),
    unprotected=True,
)
SILENCES = rows_of_bench(
    "replica",
    most(PRIMARY, 5, "s"),
    most(LEADER, 7, "s"),
    most(BOTH_OF_THEM, 12, "s"),
    most(SWITCH_OVER, 2, "s"),
)
TABLES: tuple[Table, ...] = (table("replicas", RATES, SILENCES),)
