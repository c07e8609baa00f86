"""What /metrics tells: the totals of the overview, and what each queue does, in small pieces."""

import os
import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from rpcqm.adm.enums import OutgoingQueueState, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.completion import Completion, start
from rpcqm.base.identity import Identity
from rpcqm.operations import metric_families as families
from rpcqm.operations.cluster import ClusterStatus
from rpcqm.operations.cluster_metrics import cluster_series
from rpcqm.operations.exposition import MESSAGES, NANOSECONDS, Writer, labels
from rpcqm.operations.history import FAILED_LOGONS
from rpcqm.operations.overview import Overview, OverviewOperations
from rpcqm.operations.shapes import short_name
from rpcqm.qm.access import require_metrics_reader
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.identity_conflicts import COUNTED as CONFLICTS
from rpcqm.qm.journal_bounds import COUNTED as COPIES_REMOVED
from rpcqm.qm.lost_copies import COUNTED as COPIES_LOST
from rpcqm.qm.message_counts import DEAD_LETTERS
from rpcqm.qm.unsent import unsent

OTHERS = ";others"
"""The label of all queues together that have no series of their own: no queue has that name."""
COMPUTER = "Computer Queues"
"""What performance counters on Windows call the queue manager's own journal and dead letters."""
_PIECE = 50
"""Queues that are looked at in one piece: a quarter of a millisecond."""
_STATM = "/proc/self/statm"
_FILES = "/proc/self/fd"


class MetricsSettings(NamedTuple):
    """How many queues have series of their own, and whether they have Windows' names, too."""

    queues: int = 1_000
    windows_names: bool = True


class _QueueRow(NamedTuple):
    """What the families QUEUES tell of a queue."""

    messages: int
    bytes: int
    age: float
    entered: int
    left: int
    locked: int
    waiting: int
    handles: int
    journal_messages: int
    journal_bytes: int


class _DestinationRow(NamedTuple):
    """What the families DESTINATIONS tell of an outgoing queue."""

    messages: int
    bytes: int
    age: float
    connected: int
    unread: int


class DirectoryFigures(NamedTuple):
    """What the families DIRECTORY tell, and the objects by their kinds."""

    connected: bool
    age: float
    round_seconds: float
    rounds: int
    failures: int
    misses: int
    left_out: int
    objects: Mapping[str, int]


class _WindowsRow(NamedTuple):
    """What the families WINDOWS tell of an instance."""

    messages: int
    bytes: int
    journal_messages: int
    journal_bytes: int


class _Gathered:
    """Rows of queues, with the labels of their series."""

    def __init__(self) -> None:
        self.queue_places: list[str] = []
        self.windows_places: list[str] = []
        self.windows: list[_WindowsRow] = []
        self.queues: list[_QueueRow] = []
        self.destination_places: list[str] = []
        self.destinations: list[_DestinationRow] = []
        self.others: list[_QueueRow] = []
        self.other_destinations: list[_DestinationRow] = []

    def add_windows(self, place: str, row: _WindowsRow) -> None:
        self.windows_places.append(place)
        self.windows.append(row)


class MetricsOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for those who may not know all queues (G362)."""

    def __init__(self, engine: QueueManagerEngine, overview: OverviewOperations) -> None:
        self._engine = engine
        self._overview = overview
        self._places: dict[int, tuple[str, str, str]] = {}
        self.cluster: Callable[[], ClusterStatus | None] = lambda: None
        """How this node of a cluster is; None for a queue manager that is in none."""
        self.directory: Callable[[], DirectoryFigures | None] = lambda: None
        """How the reading of a real directory goes; None without one."""

    def told(
        self, identity: Identity, writer: Writer, settings: MetricsSettings
    ) -> Completion[Iterator[str]]:
        """All metrics, in pieces of a fraction of a millisecond each; some are empty."""
        require_metrics_reader(identity)
        return start(self._told(writer, settings))

    async def _told(self, writer: Writer, settings: MetricsSettings) -> Iterator[str]:
        overview = await self._overview.found()
        return self._pieces(writer, settings, overview)

    def _pieces(
        self, writer: Writer, settings: MetricsSettings, overview: Overview
    ) -> Iterator[str]:
        yield from self._simple(writer, overview)
        yield from self._labelled(writer, overview)
        yield from self._triggers(writer)
        yield from self._histograms(writer)
        if (status := self.cluster()) is not None:
            yield from self._of_cluster(writer, status)
        if (figures := self.directory()) is not None:
            yield from _of_directory(writer, figures)
        gathered = _Gathered()
        for _ in self._gather(gathered, settings.queues):
            yield ""
        _add_others(gathered)
        yield from _columns(writer, families.QUEUES, gathered.queue_places, gathered.queues)
        yield from _columns(
            writer, families.DESTINATIONS, gathered.destination_places, gathered.destinations
        )
        if settings.windows_names:
            yield from self._windows(writer, gathered)
        yield writer.end()

    # The queue manager

    def _simple(self, writer: Writer, told: Overview) -> Iterator[str]:
        values = self._values(told)
        for family in families.SIMPLE:
            yield from writer.series(family, ("",), (values[family.name],))

    def _values(self, told: Overview) -> dict[str, float]:
        metrics, machine = self._engine.store.metrics, self._engine.queue_manager
        counts, journal = metrics.counts, machine.system_journal_queue
        used = resource.getrusage(resource.RUSAGE_SELF)
        begun, triggers = told.oldest_transaction, self._engine.triggers.states()
        return {
            "rpcqm_start_time_seconds": told.started / 1000,
            "rpcqm_queues": told.queues,
            "rpcqm_messages": told.messages,
            "rpcqm_messages_bytes": told.bytes,
            "rpcqm_messages_quota_bytes": told.quota_bytes,
            "rpcqm_queues_nearly_full": told.queues_nearly_full,
            "rpcqm_copies_lost": counts[COPIES_LOST],
            "rpcqm_copies_removed": counts[COPIES_REMOVED],
            "rpcqm_journal_messages": journal.message_count if journal is not None else 0,
            **_message_counts(counts),
            "rpcqm_dead_letters_unread": told.dead_letters_unread,
            "rpcqm_connections": told.connections,
            "rpcqm_waiting_reads": told.waiting_reads,
            "rpcqm_locked_messages": told.locked_messages,
            "rpcqm_leases": told.leases,
            "rpcqm_open_transactions": told.transactions,
            "rpcqm_oldest_transaction_age_seconds": _age(told.now, begun),
            "rpcqm_triggers": triggers.enabled,
            "rpcqm_triggers_served": int(triggers.served),
            "rpcqm_triggers_in_trouble": len(triggers.troubles),
            "rpcqm_rpc_calls": metrics.gauge("rpc.calls"),
            "rpcqm_rpc_faults": counts["rpc.faults"],
            "rpcqm_rpc_refusals": counts["rpc.refusals"],
            "rpcqm_rpc_pending_calls": metrics.gauge("rpc.pending"),
            "rpcqm_http_requests": counts["http.requests"],
            "rpcqm_http_refusals": counts["http.refusals"],
            "rpcqm_failed_logons": sum(counts[name] for name in FAILED_LOGONS),
            "rpcqm_identity_conflicts": counts[CONFLICTS],
            "rpcqm_store_writes": counts["store_writes"],
            "rpcqm_store_syncs": counts["store_syncs"],
            "rpcqm_store_written_bytes": counts["store_bytes"],
            "rpcqm_store_bytes": told.store_bytes,
            "rpcqm_disk_free_bytes": told.disk_free,
            "rpcqm_disk_reserve_bytes": told.disk_reserve,
            "rpcqm_disk_refusing": int(told.disk_refusing),
            "rpcqm_maintenance": int(told.maintenance is not None),
            "rpcqm_disconnected": int(told.disconnected is not None),
            "rpcqm_resident_memory_bytes": _resident(),
            "rpcqm_cpu_seconds": used.ru_utime + used.ru_stime,
            "rpcqm_open_files": _open_files(),
        }

    def _labelled(self, writer: Writer, told: Overview) -> Iterator[str]:
        died = self._engine.store.metrics.of(DEAD_LETTERS.removesuffix("."))
        for family, values in (
            (families.BUILD, {told.version: 1}),
            (families.DEAD_LETTERS, told.dead_letters_by_reason),
            (families.DEAD_LETTERS_SINCE, died),
            (families.SESSIONS, told.sessions),
            (families.CERTIFICATES, {k: v / 1000 for k, v in self._overview.certificates.items()}),
        ):
            places = [labels(family, value) for value in values]
            yield from writer.series(family, places, values.values())

    def _triggers(self, writer: Writer) -> Iterator[str]:
        """What each trigger has done since the start."""
        rows = self._engine.triggers.list()
        told = [each.told for each in rows]
        places = [labels(families.TRIGGERS[0], each.rule.name) for each in rows]
        columns = (
            [each.done for each in told],
            [each.failed for each in told],
            [each.poisoned for each in told],
        )
        for family, column in zip(families.TRIGGERS, columns, strict=True):
            yield from writer.series(family, places, column)

    def _histograms(self, writer: Writer) -> Iterator[str]:
        histograms = self._engine.store.metrics.histograms
        for family, subject, bits, unit in (
            (families.CALLS, ("rpc",), NANOSECONDS, 1e-9),
            (families.COM_CALLS, ("com",), NANOSECONDS, 1e-9),
            (families.REQUESTS, ("http",), NANOSECONDS, 1e-9),
            (families.SYNCS, ("store", "sync"), NANOSECONDS, 1e-9),
            (families.SYNC_MESSAGES, ("store", "messages"), MESSAGES, 1.0),
            (families.LAG, ("loop", "lag"), NANOSECONDS, 1e-9),
        ):
            length = len(subject)
            found = [
                (name[length:], histogram)
                for name, histogram in histograms.items()
                if name[:length] == subject and (histogram.count or not family.labels)
            ]
            yield from writer.histograms(family, found, bits, unit)

    def _of_cluster(self, writer: Writer, status: ClusterStatus) -> Iterator[str]:
        yield from cluster_series(writer, status)
        appends = self._engine.store.metrics.histogram("cluster", "append")
        yield from writer.histograms(families.APPENDS, [((), appends)], NANOSECONDS, 1e-9)

    # Queues

    def _gather(self, gathered: _Gathered, most: int) -> Iterator[None]:
        now = self._engine.clock.now()
        queues = list(self._engine.queue_manager.queue_collection.values())
        if len(self._places) > 2 * len(queues):
            self._places.clear()
        for number, queue in enumerate(queues):
            if not number % _PIECE:
                yield None
            if isinstance(queue, OutgoingQueue):
                self._gather_outgoing(gathered, queue, now, most)
            elif queue.is_journal:
                continue
            elif queue.queue_type is not QueueType.SYSTEM:
                self._gather_own(gathered, queue, now, most)
            elif queue.private_queue_number:
                gathered.add_windows(self._labels(queue)[2], _windows_row(queue))

    def _gather_own(self, gathered: _Gathered, queue: Queue, now: int, most: int) -> None:
        row = _row(queue, now)
        if len(gathered.queues) >= most:
            gathered.others.append(row)
            return
        _, place, windows = self._labels(queue)
        gathered.queues.append(row)
        gathered.queue_places.append(place)
        gathered.add_windows(windows, _windows_row(queue))

    def _gather_outgoing(
        self, gathered: _Gathered, queue: OutgoingQueue, now: int, most: int
    ) -> None:
        positions = queue.message_position_list
        connected = int(queue.state is OutgoingQueueState.CONNECTED)
        count, oldest = unsent(queue)
        age = _age(now, oldest) if count else 0
        unread = positions.count - count
        row = _DestinationRow(count, positions.bytes, age, connected, unread)
        if len(gathered.destinations) >= most:
            gathered.other_destinations.append(row)
            return
        gathered.destinations.append(row)
        name = queue.destination_format_name
        gathered.destination_places.append(labels(families.DESTINATIONS[0], name))
        gathered.add_windows(labels(families.WINDOWS[0], name), _windows_row(queue))

    def _labels(self, queue: Queue) -> tuple[str, str, str]:
        """The path name of a queue, and the labels of its series by both sets of names."""
        known = self._places.get(queue.queue_id)
        if known is None or known[0] != queue.pathname:
            place = labels(families.QUEUES[0], short_name(queue))
            windows = labels(families.WINDOWS[0], queue.pathname)
            known = self._places[queue.queue_id] = queue.pathname, place, windows
        return known

    def _windows(self, writer: Writer, gathered: _Gathered) -> Iterator[str]:
        """The queue manager's own, and each instance that has been gathered (G481)."""
        dead = self._engine.dead_letters.queues()
        journal = self._engine.queue_manager.system_journal_queue
        own = _WindowsRow(
            sum(queue.message_count for queue in dead),
            sum(queue.total_bytes for queue in dead),
            *_size(journal),
        )
        places = [labels(families.WINDOWS[0], COMPUTER), *gathered.windows_places]
        yield from _columns(writer, families.WINDOWS, places, [own, *gathered.windows])


def _of_directory(writer: Writer, figures: DirectoryFigures) -> Iterator[str]:
    *simple, objects = figures
    for family, value in zip(families.DIRECTORY, simple, strict=True):
        yield from writer.series(family, ("",), (float(value),))
    places = [labels(families.DIRECTORY_OBJECTS, kind) for kind in objects]
    yield from writer.series(families.DIRECTORY_OBJECTS, places, objects.values())


def _columns(
    writer: Writer,
    described: tuple[families.Family, ...],
    places: list[str],
    rows: list[_QueueRow] | list[_DestinationRow] | list[_WindowsRow],
) -> Iterator[str]:
    for column, family in enumerate(described):
        yield from writer.series(family, places, (row[column] for row in rows))


def _row(queue: Queue, now: int) -> _QueueRow:
    positions, journal = queue.message_position_list, queue.journal_queue_reference
    count = positions.count
    return _QueueRow(
        count,
        positions.bytes,
        _age(now, positions.oldest()) if count else 0,
        positions.entered,
        positions.left,
        count - positions.available,
        len(queue.waiting_receives) + len(queue.waiting_peeks),
        len(queue.open_queue_descriptor_collection),
        *_size(journal),
    )


def _windows_row(queue: Queue) -> _WindowsRow:
    size = queue.message_count, queue.total_bytes
    return _WindowsRow(*size, *_size(queue.journal_queue_reference))


def _size(journal: Queue | None) -> tuple[int, int]:
    """Messages and octets of a journal; a queue may have none."""
    return (0, 0) if journal is None else (journal.message_count, journal.total_bytes)


def _add_others(gathered: _Gathered) -> None:
    """One series for all queues, and one for all destinations, that are beyond the bound."""
    if gathered.others:
        columns = list(zip(*gathered.others, strict=True))
        sums = [sum(column) for column in columns]
        sums[2] = max(columns[2])
        gathered.queues.append(_QueueRow(*sums))
        gathered.queue_places.append(labels(families.QUEUES[0], OTHERS))
    if gathered.other_destinations:
        rows = list(zip(*gathered.other_destinations, strict=True))
        sums = [sum(column) for column in rows]
        sums[2] = max(rows[2])
        gathered.destinations.append(_DestinationRow(*sums))
        gathered.destination_places.append(labels(families.DESTINATIONS[0], OTHERS))


def _message_counts(counts: Mapping[str, int]) -> dict[str, float]:
    return {
        f"rpcqm_messages_{told}": counts[f"messages.{counted}"]
        for told, counted in (
            ("arrived", "arrived"),
            ("received", "received"),
            ("transferred", "left"),
            ("moved", "moved"),
            ("expired", "expired"),
            ("purged", "purged"),
            ("failed", "failed"),
        )
    }


def _age(now: int, then: int) -> float:
    """Seconds; 0 if there is nothing."""
    return max(now - then, 0) / 1000 if then else 0


def _resident() -> int:
    with suppress(OSError, ValueError), open(_STATM, encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
    return 0


def _open_files() -> int:
    with suppress(OSError):
        return len(os.listdir(_FILES))
    return 0
