"""Captures, and the pipeline."""

from subjects.row import Table, least, most, rows_of_bench, shown, table

SAME = "for comparison: tshark tells as much as the list does, by our dissector"
CAPTURES = rows_of_bench(
    "captures",
    *(
        row
        for what in ("small stubs", "1.1 KiB stubs")
        for row in (
            least(f"capture show, {what}, against tshark's opnum column", 10),
            shown(f"capture show, {what}, against tshark telling the same", SAME),
            shown(
                f"captured calls paired, {what}",
                "limit: what one core pairs bounds every command about captures",
                "MB/s",
            ),
        )
    ),
)
INGEST = rows_of_bench(
    "ingest",
    least("ingest on local[2] over two tsharks", 8),
    shown(
        "ingest with the start of Java over two tsharks",
        "for comparison: seconds of Java's start, whatever the size",
    ),
    *(
        row
        for megabytes in (100, 1000, 4000)
        for row in (
            shown(
                f"ingest of {megabytes} MB on local[2]",
                "for comparison: the size shows that it grows in proportion",
                "MB/s",
            ),
            most(f"memory at the peak of {megabytes} MB", 4000, "MB"),
        )
    ),
)
STREAMING = rows_of_bench(
    "streaming",
    least("messages read by one executor core", 5000, "messages/s"),
    shown(
        "messages planned, read, written and removed",
        "for comparison: with what a stream takes however long it is",
        "messages/s",
    ),
    least("messages of a stream after its first batch", 15_750, "messages/s"),
    most("seconds of a stream that do not depend on its length", 5, "s"),
    least("rows sent to a queue", 6_000, "rows/s"),
)
REPLAY = rows_of_bench("replay", least("calls played and answered alike", 5000, "calls/s"))

TABLES: tuple[Table, ...] = (table("captures", CAPTURES, INGEST, STREAMING, REPLAY),)
