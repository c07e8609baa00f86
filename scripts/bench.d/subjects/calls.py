"""Calls of the RPC runtime: codecs, null calls, sealing, and many clients."""

from subjects.row import Row, Table, least, most, rows_of_bench, shown, table

PART = "for comparison: a part of the row that has the target"


def codec(name: str, target: float, microseconds: float | None = None) -> list[Row]:
    """Both ways of one call's codec, its parts, and the time that reading takes."""
    parts = ("encode", "encode, finished object", "decode")
    rows = [
        least(f"{name}, both ways", target),
        *(shown(f"{name}, {each}", PART) for each in parts),
    ]
    if microseconds is not None:
        rows.append(most(f"{name}, time to decode", microseconds, "microseconds"))
    return rows


NDR = rows_of_bench(
    "ndr",
    *codec("R_StartReceive request", 200, 1),
    *codec("R_StartReceive response, 1 KiB", 200),
    *codec("CACTransferBufferV2, 1 KiB", 100, 15),
)
NULL_CALLS = rows_of_bench(
    "null_call",
    shown(
        "null call over the C echo server, 1 connection",
        "limit: one client waits for the other process to wake up",
    ),
    least("null call over the C echo server, 16 connections", 0.45),
    shown(
        "null call over the C echo server, 64 connections",
        "for comparison: what more connections change",
    ),
    least("null call over impacket's stock server, 1 connection", 15),
    least("null call, 16 connections over impacket's best", 100),
    unprotected=True,
)
PEEKING = rows_of_bench(
    "peeking",
    least("peeks at 1 KiB by lookup identifier over null calls, 16 connections", 0.45),
    unprotected=True,
)
SEALED = rows_of_bench(
    "sealed",
    least("null call, NTLM PKT_PRIVACY over NONE, 16 connections", 0.35),
    least(
        "64 KiB response, NTLM PKT_PRIVACY over what the plain one and the cipher alone take", 0.8
    ),
)
MULTITUDES = rows_of_bench(
    "multitudes",
    least("null calls while 10,000 receives wait, over those without", 0.8),
    most("memory of a receive that waits", 4, "KiB"),
    most("memory with 10,000 idle authenticated connections", 400, "MiB"),
)
SAMBA = rows_of_bench(
    "samba",
    least("mgmt is_server_listening over Samba's, 16 connections", 1.3),
    least("ept_lookup_handle_free over Samba's, 16 connections", 3),
    least("ept_lookup of one interface over Samba's, 16 connections", 10),
)

TABLES: tuple[Table, ...] = (
    table("codecs", NDR),
    table("calls", NULL_CALLS, PEEKING, SEALED, MULTITUDES, SAMBA),
)
