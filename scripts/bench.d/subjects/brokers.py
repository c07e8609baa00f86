"""RabbitMQ beside it, and messages from one queue manager to another."""

from subjects.row import BOTH, Row, Table, least, most, rows_of_bench, shown, table

QUEUE = "RabbitMQ's quorum queue"
SENDS = f"durable sends of 1 KiB over {QUEUE}"
SATURATED = f"{SENDS}, at saturation (16 publishers, 256 outstanding each)"
SEALED = "durable sends of 1 KiB, NTLM PKT_PRIVACY over RabbitMQ with TLS, 16 publishers"
DIFFERING = f"of 100 octets to 10 KiB that differ over {QUEUE}"
SCHEDULERS = "RabbitMQ's schedulers"
ONE_BY_ONE = f"{SENDS}, 1 publisher"
SIXTEEN = f"{SENDS}, 16 publishers"
MANY_CONNECTIONS = f"{SATURATED}: 64 connections"
MANY_CALLS = f"{SATURATED}: 4 connections, 64 calls outstanding on each"
RECEIVES = f"durable receives of 1 KiB over {QUEUE}, 16 consumers"
LATENCY = "p99 of durable sends over RabbitMQ's, 256 publishers"
SEALED_SATURATED = f"{SEALED}, saturated (16 outstanding on each against 256)"
SENDS_DIFFERING = f"durable sends {DIFFERING}, 16 publishers"
RECEIVES_DIFFERING = f"durable receives {DIFFERING}, 16 consumers"
OF_A_MILLION = (
    "durable receives of 1 KiB over RabbitMQ's, 16 consumers, from a backlog of a million"
)

ONE_CALL = "limit: one call outstanding on a connection, where a publisher keeps 256 messages"
DIFFER = "for comparison: what is left of it when no two messages are equal"
WAITS = "for comparison: few publishers wait for the disk, whatever the processors"
ASKED = "for comparison: so many it has been given, as it says itself"


def schedulers(name: str) -> Row:
    return shown(name, ASKED, "of them")


TLS = rows_of_bench("rabbitmq", least(SEALED, 1.0), least(SEALED_SATURATED, 1.3))
BROKER = rows_of_bench(
    "rabbitmq",
    least(ONE_BY_ONE, 1.5),
    least(SIXTEEN, 1.9),
    shown(MANY_CONNECTIONS, ONE_CALL),
    least(MANY_CALLS, 1.8),
    least(RECEIVES, 1.5),
    most(LATENCY, 0.5),
    shown(SENDS_DIFFERING, DIFFER),
    shown(RECEIVES_DIFFERING, DIFFER),
    least(OF_A_MILLION, 1.0),
    unprotected=True,
)
TLS_BOTH = rows_of_bench(
    "rabbitmq", shown(f"{SEALED}{BOTH}", WAITS), least(f"{SEALED_SATURATED}{BOTH}", 1.0)
)
BROKER_BOTH = rows_of_bench(
    "rabbitmq",
    shown(f"{ONE_BY_ONE}{BOTH}", WAITS),
    shown(f"{SIXTEEN}{BOTH}", WAITS),
    least(f"{MANY_CONNECTIONS}{BOTH}", 0.75),
    least(f"{MANY_CALLS}{BOTH}", 1.6),
    least(f"{RECEIVES}{BOTH}", 1.4),
    shown(f"{LATENCY}{BOTH}", "for comparison: what a second processor changes"),
    unprotected=True,
)

PEAK = "RabbitMQ's pipelined peak"
BINARY = rows_of_bench(
    "binary",
    shown(
        "received, recoverable, 1 session",
        "limit: a window of 64 messages waits for the sync that carries it",
        "/s",
    ),
    least(f"received, recoverable, 4 sessions, over {PEAK}", 1.5),
    least(
        f"received, 100 octets to 10 KiB that differ, 4 sessions, over {PEAK} of the same sizes",
        1.2,
    ),
    least("received, transactional over recoverable", 0.7),
    most("memory more after 10,000 sessions were opened and closed", 256, "bytes each"),
    most("file descriptors more after 10,000 sessions were opened and closed", 0, "of them"),
    most("threads more after 10,000 sessions were opened and closed", 0, "of them"),
)
SECOND = "for comparison: what a second processor changes"
BINARY_BOTH = rows_of_bench(
    "binary", shown(f"received, recoverable, 4 sessions, over {PEAK}{BOTH}", SECOND)
)
BETWEEN = "recoverable messages between two queue managers, over"
STORED_ALONE = f"{BETWEEN} what one of them stores alone"
TRANSFER = rows_of_bench(
    "transfer",
    least(STORED_ALONE, 0.5),
    least(f"{BETWEEN} what the receiver stores of a session from C", 0.5),
    least(f"{BETWEEN} RabbitMQ's shovel", 1.2),
    Row(
        "from sent to visible at the other one, one message on its way",
        computed=True,
        unit="ms",
        at_most=True,
        unprotected=True,
    ),
)
TRANSFER_BOTH = rows_of_bench("transfer", shown(f"{BETWEEN} RabbitMQ's shovel{BOTH}", SECOND))

TABLES: tuple[Table, ...] = (
    table("brokers", rows_of_bench("rabbitmq", schedulers(SCHEDULERS)), TLS, BROKER),
    table("between", BINARY, TRANSFER),
    table(
        "both",
        rows_of_bench("rabbitmq", schedulers(f"{SCHEDULERS}{BOTH}")),
        TLS_BOTH,
        BROKER_BOTH,
        BINARY_BOTH,
        TRANSFER_BOTH,
    ),
)
