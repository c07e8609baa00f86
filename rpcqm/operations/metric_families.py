"""The names of all metrics, with their types, units and labels: what docs/metrics.md lists."""

from dataclasses import dataclass

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """Series of one name; a counter's samples have `_total` behind it.

    `help` is a sentence without a full stop, `unit` the end of the name that says it.
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """What its values are, as far as its name says it."""
        unit = self.name.rpartition("_")[2]
        return unit if unit in ("seconds", "bytes") else ""


_QUEUE = ("queue",)
_DESTINATION = ("destination",)

QUEUES = (
    Family("rpcqm_queue_messages", GAUGE, "Messages in a queue", _QUEUE),
    Family("rpcqm_queue_bytes", GAUGE, "What they take", _QUEUE),
    Family(
        "rpcqm_queue_oldest_message_age_seconds",
        GAUGE,
        "How long the oldest message has been there, 0 in an empty queue",
        _QUEUE,
    ),
    Family("rpcqm_queue_entered", COUNTER, "Messages that came, also by a move", _QUEUE),
    Family("rpcqm_queue_left", COUNTER, "Messages that went, for whatever reason", _QUEUE),
    Family("rpcqm_queue_locked_messages", GAUGE, "Messages that somebody reads", _QUEUE),
    Family("rpcqm_queue_waiting_reads", GAUGE, "Reads that wait for a message", _QUEUE),
    Family("rpcqm_queue_open_handles", GAUGE, "How often the queue is open", _QUEUE),
    Family("rpcqm_queue_journal_messages", GAUGE, "Messages in the queue's journal", _QUEUE),
    Family("rpcqm_queue_journal_bytes", GAUGE, "What the journal takes", _QUEUE),
)
"""In the order of the columns of `metrics._QueueRow`."""

WINDOWS = (
    Family("windows_msmq_messages_in_queue", GAUGE, "Messages in queue", ("name",)),
    Family("windows_msmq_bytes_in_queue", GAUGE, "Size of queue in bytes", ("name",)),
    Family("windows_msmq_messages_in_journal_queue", GAUGE, "Messages in its journal", ("name",)),
    Family("windows_msmq_bytes_in_journal_queue", GAUGE, "Size of its journal", ("name",)),
)

DESTINATIONS = (
    Family("rpcqm_outgoing_messages", GAUGE, "Messages that wait to be sent", _DESTINATION),
    Family("rpcqm_outgoing_bytes", GAUGE, "What the queue takes, with the unread", _DESTINATION),
    Family(
        "rpcqm_outgoing_oldest_message_age_seconds",
        GAUGE,
        "How long the oldest message waits to be sent, 0 without any",
        _DESTINATION,
    ),
    Family("rpcqm_outgoing_connected", GAUGE, "Whether a session to it is open", _DESTINATION),
    Family(
        "rpcqm_outgoing_unread_messages",
        GAUGE,
        "Messages that have arrived and wait for their final acknowledgement",
        _DESTINATION,
    ),
)

SIMPLE = (
    Family("rpcqm_start_time_seconds", GAUGE, "When the queue manager has started, since 1970"),
    Family("rpcqm_queues", GAUGE, "Queues of applications here"),
    Family("rpcqm_messages", GAUGE, "All messages that are kept"),
    Family("rpcqm_messages_bytes", GAUGE, "What they take"),
    Family("rpcqm_messages_quota_bytes", GAUGE, "What all messages together may take"),
    Family(
        "rpcqm_queues_nearly_full",
        GAUGE,
        "Queues, journals and dead-letter queues that have used 80 % of their quota",
    ),
    Family(
        "rpcqm_copies_lost",
        COUNTER,
        "Copies for which a journal or a dead-letter queue had no room",
    ),
    Family(
        "rpcqm_copies_removed",
        COUNTER,
        "Copies that were too old for their journal, or too many",
    ),
    Family("rpcqm_journal_messages", GAUGE, "Messages in the queue manager's own journal"),
    Family("rpcqm_messages_arrived", COUNTER, "Messages that came, those to be sent too"),
    Family("rpcqm_messages_received", COUNTER, "Messages that were received"),
    Family("rpcqm_messages_transferred", COUNTER, "Messages that went to other queue managers"),
    Family("rpcqm_messages_moved", COUNTER, "Moves between a queue and its subqueues"),
    Family("rpcqm_messages_expired", COUNTER, "Messages whose time was over"),
    Family("rpcqm_messages_purged", COUNTER, "Messages that were purged, or went with a queue"),
    Family("rpcqm_messages_failed", COUNTER, "Messages that were given up for another reason"),
    Family("rpcqm_dead_letters_unread", GAUGE, "Dead letters that nobody has looked at"),
    Family("rpcqm_connections", GAUGE, "Connections of all ports together"),
    Family("rpcqm_waiting_reads", GAUGE, "Reads that wait for a message"),
    Family("rpcqm_locked_messages", GAUGE, "Messages that somebody reads"),
    Family("rpcqm_leases", GAUGE, "Messages that programs have under a lease"),
    Family("rpcqm_open_transactions", GAUGE, "Transactions that are open"),
    Family("rpcqm_oldest_transaction_age_seconds", GAUGE, "Age of the oldest one, or 0"),
    Family("rpcqm_triggers", GAUGE, "Triggers that are to work"),
    Family("rpcqm_triggers_served", GAUGE, "Whether a service runs triggers"),
    Family("rpcqm_triggers_in_trouble", GAUGE, "Triggers that do not work"),
    Family("rpcqm_rpc_calls", COUNTER, "Calls by RPC"),
    Family("rpcqm_rpc_faults", COUNTER, "Calls that were answered with a fault"),
    Family("rpcqm_rpc_refusals", COUNTER, "Calls that were refused, by a fault or a status"),
    Family("rpcqm_rpc_pending_calls", GAUGE, "Calls that wait for their answer"),
    Family("rpcqm_http_requests", COUNTER, "Requests over HTTP"),
    Family("rpcqm_http_refusals", COUNTER, "Requests over HTTP that were not let in"),
    Family("rpcqm_failed_logons", COUNTER, "Logons that have failed, by any protocol"),
    Family(
        "rpcqm_identity_conflicts",
        COUNTER,
        "Sessions and messages that have shown two queue managers with one identity",
    ),
    Family("rpcqm_store_writes", COUNTER, "Writes to the store"),
    Family("rpcqm_store_syncs", COUNTER, "Those that waited for the disk"),
    Family("rpcqm_store_written_bytes", COUNTER, "What was written"),
    Family("rpcqm_store_bytes", GAUGE, "What the store takes on the disk"),
    Family("rpcqm_disk_free_bytes", GAUGE, "Free space on the store's disk"),
    Family("rpcqm_disk_reserve_bytes", GAUGE, "Free space below which no message is taken"),
    Family("rpcqm_disk_refusing", GAUGE, "Whether messages are refused for want of space"),
    Family("rpcqm_maintenance", GAUGE, "Whether no new message is taken, as somebody has ordered"),
    Family("rpcqm_disconnected", GAUGE, "Whether somebody has taken it off the network"),
    Family("rpcqm_resident_memory_bytes", GAUGE, "Memory of the process"),
    Family("rpcqm_cpu_seconds", COUNTER, "Time that the process has computed"),
    Family("rpcqm_open_files", GAUGE, "Open files of the process"),
)

_TRIGGER = ("trigger",)

TRIGGERS = (
    Family("rpcqm_trigger_done", COUNTER, "Messages for which a trigger went well", _TRIGGER),
    Family("rpcqm_trigger_failed", COUNTER, "Times that a trigger went wrong", _TRIGGER),
    Family("rpcqm_trigger_poisoned", COUNTER, "Messages that a trigger gave up", _TRIGGER),
)
"""In the order of `metrics._triggers`."""

DEAD_LETTERS = Family("rpcqm_dead_letters", GAUGE, "Dead letters that are there", ("reason",))
DEAD_LETTERS_SINCE = Family(
    "rpcqm_dead_letters_arrived", COUNTER, "Messages that became dead letters", ("reason",)
)
SESSIONS = Family("rpcqm_sessions", GAUGE, "Queues to other queue managers by state", ("state",))
CERTIFICATES = Family(
    "rpcqm_certificate_end_seconds",
    GAUGE,
    "When the certificate of a setting ends, in seconds since 1970",
    ("setting",),
)
BUILD = Family("rpcqm_build_info", GAUGE, "Always 1, with the version", ("version",))

CALLS = Family(
    "rpcqm_rpc_call_duration_seconds",
    HISTOGRAM,
    "How long calls took, from their arrival to their answer",
    ("interface", "operation"),
)
COM_CALLS = Family(
    "rpcqm_com_call_duration_seconds",
    HISTOGRAM,
    "How long calls of COM objects took, from their arrival to their answer",
    ("interface", "operation"),
)
REQUESTS = Family(
    "rpcqm_http_request_duration_seconds",
    HISTOGRAM,
    "How long requests over HTTP took, once their head was there",
    ("server",),
)
SYNCS = Family("rpcqm_store_sync_duration_seconds", HISTOGRAM, "How long syncs took")
SYNC_MESSAGES = Family("rpcqm_store_sync_messages", HISTOGRAM, "Messages that one sync has written")
LAG = Family(
    "rpcqm_loop_lag_seconds", HISTOGRAM, "How late a timer came, which is asked for each second"
)

_NODE = ("node",)

CLUSTER = (
    Family("rpcqm_cluster_epoch", GAUGE, "How often a node of the cluster has taken over"),
    Family(
        "rpcqm_cluster_last_takeover_timestamp_seconds",
        GAUGE,
        "When that was last, by the clock of the node that did; 0 before the first time",
    ),
    Family("rpcqm_cluster_place", GAUGE, "The number of the last record of the log here"),
    Family("rpcqm_cluster_lag_records", GAUGE, "Records of the log that are not here yet"),
    Family(
        "rpcqm_cluster_silence_seconds",
        GAUGE,
        "Time since a record came, or the log has acknowledged one",
    ),
    Family("rpcqm_cluster_doubt_seconds", GAUGE, "Time for which a write has been in doubt, or 0"),
    Family("rpcqm_cluster_may_answer", GAUGE, "Whether this node is active and has the lease"),
    Family("rpcqm_cluster_appends", COUNTER, "Records that this node has appended while active"),
    Family("rpcqm_cluster_standbys", GAUGE, "Standbys that have told of themselves lately"),
    Family("rpcqm_cluster_log_records", GAUGE, "Records that the log keeps"),
    Family("rpcqm_cluster_log_bytes", GAUGE, "What the log takes"),
    Family("rpcqm_cluster_log_maximum_bytes", GAUGE, "The size at which the log is full"),
)
CLUSTER_ROLE = Family("rpcqm_cluster_role", GAUGE, "1 for what this node is", ("role",))
MEMBER_LAG = Family(
    "rpcqm_cluster_member_lag_records", GAUGE, "Records that a node lacks, as it has told", _NODE
)
MEMBER_LAG_SECONDS = Family(
    "rpcqm_cluster_member_lag_seconds", GAUGE, "For how long the log has had them", _NODE
)
MEMBER_AGE = Family(
    "rpcqm_cluster_member_age_seconds", GAUGE, "Time since the node has told anything", _NODE
)
APPENDS = Family(
    "rpcqm_cluster_append_duration_seconds",
    HISTOGRAM,
    "How long it took until the log had a write, and it was written here",
)
OF_CLUSTERS = (*CLUSTER, CLUSTER_ROLE, MEMBER_LAG, MEMBER_LAG_SECONDS, MEMBER_AGE, APPENDS)
"""Nodes of clusters alone tell these."""

DIRECTORY = (
    Family("rpcqm_directory_connected", GAUGE, "Whether a controller answers"),
    Family("rpcqm_directory_age_seconds", GAUGE, "Time since the last round that succeeded"),
    Family("rpcqm_directory_round_seconds", GAUGE, "How long that round took"),
    Family("rpcqm_directory_rounds", COUNTER, "Rounds that succeeded"),
    Family("rpcqm_directory_failures", COUNTER, "Rounds and connections that failed"),
    Family("rpcqm_directory_misses", COUNTER, "Objects that were looked for and are not there"),
    Family("rpcqm_directory_left_out", GAUGE, "Objects with wrong values, and those too many"),
)
DIRECTORY_OBJECTS = Family("rpcqm_directory_objects", GAUGE, "Objects of each kind", ("kind",))
OF_DIRECTORIES = (*DIRECTORY, DIRECTORY_OBJECTS)
"""Queue managers with a real directory alone tell these."""

LABELLED = (BUILD, *TRIGGERS, DEAD_LETTERS, DEAD_LETTERS_SINCE, SESSIONS, CERTIFICATES)
HISTOGRAMS = (CALLS, COM_CALLS, REQUESTS, SYNCS, SYNC_MESSAGES, LAG)
FAMILIES = (
    *SIMPLE,
    *LABELLED,
    *HISTOGRAMS,
    *OF_CLUSTERS,
    *OF_DIRECTORIES,
    *QUEUES,
    *DESTINATIONS,
    *WINDOWS,
)
