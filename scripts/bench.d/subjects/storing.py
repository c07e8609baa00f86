"""Durable sends and receives, and the store below them."""

from subjects.row import Table, least, most, rows_of_bench, shown, table

LOG = "over the C log server"
VARIED = "durable sends of 100 octets to 10 KiB that differ"
SIZE = "for comparison: what the size changes"

SENDS = rows_of_bench(
    "durable",
    least(f"durable sends of 1 KiB {LOG}, 1 connection", 0.65),
    least(f"durable sends of 1 KiB {LOG}, 16 connections", 0.58),
    least(f"durable sends of 1 KiB {LOG}, 64 connections", 0.48),
    least(f"durable receives of 1 KiB {LOG}, 1 connection", 0.70),
    least(f"durable receives of 1 KiB {LOG}, 16 connections", 0.55),
    least(f"durable receives of 1 KiB {LOG}, 64 connections", 0.46),
    shown(f"durable sends of 10 KiB {LOG}, 1 connection", SIZE),
    shown(f"durable sends of 10 KiB {LOG}, 16 connections", SIZE),
    least(f"durable sends of 10 KiB {LOG}, 64 connections", 0.35),
    shown(f"durable receives of 10 KiB {LOG}, 1 connection", SIZE),
    shown(f"durable receives of 10 KiB {LOG}, 16 connections", SIZE),
    shown(f"durable receives of 10 KiB {LOG}, 64 connections", SIZE),
    shown(
        f"{VARIED}, {LOG}, 16 connections",
        "for comparison: what is left of the limit when no two calls are equal",
    ),
    least(f"{VARIED}, over equal ones, 16 connections", 0.8),
    shown(
        "durable sends of 1 KiB, NTLM PKT_PRIVACY over NONE, 1 connection",
        "for comparison: who sends alone waits for the disk",
    ),
    shown(
        "durable sends of 1 KiB, NTLM PKT_PRIVACY over NONE, 16 connections",
        "for comparison: half of it waits for the disk",
    ),
    least("durable sends of 1 KiB, NTLM PKT_PRIVACY over NONE, 64 connections", 0.5),
    unprotected=True,
)
UNREPEATED = rows_of_bench(
    "unrepeated",
    least(
        "sends that never repeat, with templates over without, speed by processor time, at least",
        0.97,
    ),
    unprotected=True,
)

RAW = "limit: what the store alone reaches of the raw log bounds every durable send"
READ = "for comparison: it reads the message too"
STORE = rows_of_bench(
    "store",
    shown(
        "insert per commit of 1, beyond the write",
        "limit: one message bears what a commit costs",
        "µs CPU",
    ),
    shown("read and remove per commit of 1, beyond the write", READ, "µs CPU"),
    most("insert per commit of 16, beyond the write", 8, "µs CPU"),
    shown("read and remove per commit of 16, beyond the write", READ, "µs CPU"),
    most("insert per commit of 64, beyond the write", 8, "µs CPU"),
    shown("read and remove per commit of 64, beyond the write", READ, "µs CPU"),
    *(
        shown(f"durable inserts of {size} KiB, {group} per commit, over the raw log", RAW)
        for size in (1, 10)
        for group in (1, 16, 64)
    ),
)
ENGINE = rows_of_bench(
    "engine",
    shown("compose a 1 KiB message", "for comparison: a part of each send", "µs CPU"),
    most("enqueue it, recoverable", 15, "µs CPU"),
    most("receive it in two phases", 20, "µs CPU"),
)
DEPTH = rows_of_bench(
    "depth",
    most("receive, 1,000,000 against 1,000 messages", 1.2),
    shown(
        "peek by lookup identifier, 1,000,000 against 1,000 messages",
        "limit: most of the deep queue lies on the disk, outside every cache",
    ),
)
SMALLER = "for comparison: with a tenth of the messages"
STARTUP = rows_of_bench(
    "startup",
    shown("start with 100,000 messages that expire", SMALLER, "s CPU"),
    shown("memory of each of 100,000 messages after a start", SMALLER, "bytes each"),
    most("start with 1,000,000 messages that expire", 4, "s CPU"),
    most("memory of each of 1,000,000 messages after a start", 100, "bytes each"),
)
SPACE = rows_of_bench(
    "space",
    *(
        row
        for size in ("1,024", "10,240")
        for row in (
            most(f"disk space over live bytes, messages of {size} bytes, coming and going", 2),
            most(f"disk space over live bytes, messages of {size} bytes, compacted", 1.3),
            least(
                f"messages of {size} bytes that come and go in the store, with compaction over "
                "without",
                0.8,
            ),
        )
    ),
)
COMPACTION = rows_of_bench(
    "compaction",
    least("messages that come and go, with background compaction over without", 0.8),
    shown(
        "messages that come and go while `rpcqm compact` runs over and over, over without",
        "for comparison: nobody compacts without a pause",
    ),
    unprotected=True,
)
WAITING = rows_of_bench(
    "waiting",
    most("memory of a message that waits for an unreachable peer, 1,000,000 of them", 100, "bytes"),
    unprotected=True,
)

TABLES: tuple[Table, ...] = (
    table("sends", SENDS, UNREPEATED),
    table("store", STORE, ENGINE, DEPTH, STARTUP, SPACE, COMPACTION, WAITING),
)
