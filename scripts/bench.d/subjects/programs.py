"""The interface for programs, metrics, and commands."""

from subjects.row import Table, least, most, rows_of_bench, table

API = rows_of_bench(
    "api",
    least(
        "recoverable messages of 1 KiB sent over /api/v1, over a route that reads and answers", 0.35
    ),
    least(
        "requests to receive and complete them, over a route that reads and answers",
        0.35,
    ),
)
SCRAPING = rows_of_bench(
    "scraping",
    most("a scrape with 10,000 queues", 250, "ms CPU"),
    most("the longest pause of a scrape with 10,000 queues", 5, "ms CPU"),
    most("the list of 10,000 queues in one answer", 100, "ms CPU"),
    most("the longest pause of the list of 10,000 queues in one answer", 5, "ms CPU"),
    most("the list of 10,000 queues in pages", 100, "ms CPU"),
    most("the longest pause of the list of 10,000 queues in pages", 5, "ms CPU"),
)
WATCHING = rows_of_bench(
    "watching",
    least(
        "durable sends with the interface that nobody uses, over without it, by processor time, "
        "the end of the interval",
        1,
    ),
    most(
        "processor time of a start with the interface for programs, over one without it, "
        "the end of the interval",
        1,
    ),
)

COMMANDS = rows_of_bench(
    "commands",
    *(
        most(f"`{command}` from its start to its end", 0.2, "s CPU")
        for command in ("rpcqm --help", "rpcqm queue list", "rpcqm send", "rpcqm peek")
    ),
)

_SCAN = "over a scan of the rows, 100,000 messages of 10 KiB, by processor time"
BY_CORRELATION = f"a search by correlation identifier {_SCAN}"
IN_UTF_8 = f"a search for a text in UTF-8 {_SCAN}"
IN_UTF_16 = f"a search for a text in UTF-16 {_SCAN}"
BESIDE = "durable sends of 1 KiB with searches beside them, over without, 16 connections"
SEARCH = rows_of_bench(
    "search",
    most(BY_CORRELATION, 4),
    most(IN_UTF_8, 12),
    most(IN_UTF_16, 12),
    least(BESIDE, 0.9),
)

TABLES: tuple[Table, ...] = (
    table("programs", API, SCRAPING, WATCHING),
    table("commands", COMMANDS),
    table("search", SEARCH),
)
