"""COM objects."""

from subjects.row import Table, least, most, rows_of_bench, shown, table

SENT = "of recoverable 1 KiB over rpc_ACSendMessageEx, PKT_PRIVACY, 16 connections"
DCOM = rows_of_bench(
    "dcom",
    least("property get by vtable over the null call, PKT_PRIVACY, 16 connections", 0.6),
    least("property get by IDispatch over the null call, PKT_PRIVACY, 16 connections", 0.35),
    least(f"Send {SENT}", 0.5),
    shown(f"put_Body and Send {SENT}", "limit: a body that is put anew is a second call"),
    most("a live object in a ping set", 1024, "octets"),
    most("pings of 100,000 objects in sets, in a period", 1, "s"),
    shown(
        "the end of 100,000 objects whose client is gone",
        "for comparison: it happens once, when a client has died",
        "s",
    ),
)
PART = "for comparison: what a call of an object adds to a null call"
CODEC = rows_of_bench(
    "dcom_codec",
    least("RemoteCreateInstance response, encode", 20),
    least("RemoteCreateInstance response, encode, impacket's properties finished", 20),
    shown("get_Label request, decode", PART, "microseconds"),
    shown("get_Label response, encode", PART, "microseconds"),
    shown("put_Body request of 1 KiB, decode", PART, "microseconds"),
)

TABLES: tuple[Table, ...] = (table("objects", DCOM, CODEC),)
