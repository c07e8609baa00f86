"""Messages over HTTP."""

from subjects.row import Table, least, most, rows_of_bench, shown, table

SRMP = rows_of_bench(
    "srmp",
    least(
        "received over HTTP, recoverable 1 KiB from 16 connections, over a handler that keeps "
        "nothing",
        0.55,
    ),
    least(
        "recoverable messages between two queue managers over HTTP, over the binary protocol", 0.3
    ),
    shown(
        "transactional messages of a stream over HTTP",
        "limit: up to 64 wait for the answer to those before them, with a sync",
        "/s",
    ),
    most("receipts over the windows of 500 ms", 1),
)
KNOWN = "for comparison: a part of the row that has the target"
ENVELOPES = rows_of_bench(
    "envelopes",
    least("envelope, encoded and decoded", 0.5),
    shown("envelope, encoded", KNOWN, "per second"),
    shown("envelope, decoded", KNOWN, "per second"),
    shown(
        "envelope like one before, decoded",
        "for comparison: what a template saves of the careful reading",
        "per second",
    ),
)
CONNECTIONS = rows_of_bench(
    "http_connections", most("memory with 10,000 idle connections over HTTP", 300, "MiB")
)
DOMAIN = rows_of_bench(
    "domain_logons",
    most("a logon by a ticket that says the groups of its account, over one that does not", 1.3),
)

TABLES: tuple[Table, ...] = (table("http", SRMP, ENVELOPES, CONNECTIONS, DOMAIN),)
