"""The queue manager itself: its permissions, its data, its counters, the meanings of its codes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal

from pydantic import Field

from rpcqm.api import models
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.derived import list_of, model_of
from rpcqm.api.problems import Refusal
from rpcqm.api.queues import parts_given, shown_sddl
from rpcqm.base.errors import HResult
from rpcqm.base.text import iso_time
from rpcqm.base.told import told
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.http.statuses import status_of_code
from rpcqm.operations.codes import find_codes
from rpcqm.operations.queues import DirectoryPublicQueue
from rpcqm.operations.shapes import described_happening
from rpcqm.operations.trail import EventKind


@dataclass(frozen=True)
class QueueCounts:
    """The counts of one queue; those of messages that came and left are since the start."""

    name: str
    messages: int
    bytes: int
    entered: int
    left: int
    oldest: str | None
    open_handles: int
    waiting_readers: int
    open_to_all: bool


@dataclass(frozen=True)
class Statistics:
    """The counts of all queues, those to elsewhere included.

    `exposed` are queues that Anonymous owns or may read.
    """

    now: str
    started: str
    queues: list[QueueCounts]
    exposed: list[str]


@dataclass(frozen=True)
class Backup(models.Strict):
    """A new directory below `storage.backup_directory`, by its name there or its whole path.

    With `secrets` the files with keys and passwords that the configuration names are copied too.
    """

    directory: Annotated[str, Field(min_length=1, max_length=4096)]
    secrets: bool = False


@dataclass(frozen=True)
class Compacted:
    """The size of the store on the disk, before and after."""

    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class Explanation:
    """The meaning of a code, and a remedy; `http_status` is that of refusals here."""

    kind: str
    name: str
    value: int
    meaning: str
    remedy: str | None
    http_status: int | None


@dataclass(frozen=True)
class Explanations:
    """All codes for a number or a name."""

    codes: list[Explanation]


@dataclass(frozen=True)
class Happening:
    """An event that is kept; what more is told depends on its kind."""

    id: str | None
    time: str
    kind: str
    about: str
    more: Mapping[str, Any]


@dataclass(frozen=True)
class EventTrail:
    """Events in order; `next` is the id to go on after, null at the end."""

    events: list[Happening]
    next: str | None


@dataclass(frozen=True)
class WhichEvents(models.Strict):
    """Which events are told: those after an id, of a kind."""

    after: Annotated[str, Field(pattern="^[0-9]{1,20}$")] | None = None
    kind: (
        Literal["dead-letter", "session-state", "machine-state", "quota", "operator-acts"] | None
    ) = None
    limit: models.Count = 100


PublicQueue = model_of(
    DirectoryPublicQueue,
    "PublicQueue",
    "A public queue of any machine; `here` on this one, `fixed` if the directory file lists it.",
)
PublicQueues = list_of(PublicQueue, "PublicQueues", "queues", "All that are known.")


async def show_statistics(asked: Asked) -> Reply:
    """The counts of every queue, as in `rpcqm status`."""
    machine, identity = asked.operations.machine, asked.identity
    queues = [
        asdict(each) | {"oldest": iso_time(each.oldest / 1000)}
        for each in machine.queue_statuses(identity)
    ]
    counted = {
        "now": iso_time(machine.now() / 1000),
        "started": iso_time(machine.started / 1000),
        "queues": queues,
        "exposed": machine.exposed_queues(identity),
    }
    return Reply(200, counted)


async def show_machine_permissions(asked: Asked) -> Reply:
    """The permissions of the queue manager itself."""
    return Reply(200, shown_sddl(asked.operations.permissions.shown(asked.identity, None)))


async def set_machine_permissions(asked: Asked) -> Reply:
    """Replace the parts of the queue manager's descriptor that are given."""
    wanted: models.Permissions = asked.content
    descriptor = parse_sddl(wanted.sddl)
    parts = parts_given(descriptor)
    if wanted.version is not None:
        asked.operations.permissions.check_version(asked.identity, None, wanted.version)
    machine = asked.operations.machine
    await settled(machine.set_security(asked.identity, parts, descriptor.encode()))
    return Reply(204)


async def compact_store(asked: Asked) -> Reply:
    """Free the disk space of removed messages."""
    machine, identity = asked.operations.machine, asked.identity
    before = machine.disk_bytes(identity)
    await settled(machine.compact(identity))
    return Reply(200, {"bytes_before": before, "bytes_after": machine.disk_bytes(identity)})


async def make_backup(asked: Asked) -> Reply:
    """Copy all durable data to a directory of the queue manager's machine."""
    wanted: Backup = asked.content
    made = asked.operations.machine.make_backup_below(
        asked.identity, wanted.directory, wanted.secrets
    )
    problem = await settled(made)
    if problem:
        raise Refusal(HTTPStatus.CONFLICT, HResult.MQ_ERROR_UNSUPPORTED_OPERATION.name, problem)
    return Reply(204)


async def explain_code(asked: Asked) -> Reply:
    """The meaning of a code, by its name or its number, as in `rpcqm explain`."""
    found = find_codes(asked.path["code"])
    if not found:
        code = HResult.MQ_ERROR_UNSUPPORTED_OPERATION.name
        raise Refusal(HTTPStatus.NOT_FOUND, code, "no code is known by that")
    codes = [
        {
            "kind": each.kind,
            "name": each.name,
            "value": each.value,
            "meaning": each.meaning,
            "remedy": each.remedy or None,
            "http_status": status_of_code(each.name),
        }
        for each in found
    ]
    return Reply(200, {"codes": codes})


async def show_event_trail(asked: Asked) -> Reply:
    """Acts of operators and recent events, as far as memory keeps them."""
    wanted: WhichEvents = asked.parameters
    kind = None if wanted.kind is None else EventKind(wanted.kind)
    after = 0 if wanted.after is None else int(wanted.after)
    page = asked.operations.events.latest(asked.identity, after, kind, wanted.limit + 1)
    shown, more = page[: wanted.limit], len(page) > wanted.limit
    events = []
    for event in shown:
        all_of_it = described_happening(event)
        common = {name: all_of_it.pop(name) for name in ("id", "time", "kind", "about")}
        events.append(common | {"more": all_of_it})
    return Reply(200, {"events": events, "next": str(shown[-1].number) if more else None})


async def list_public_queues(asked: Asked) -> Reply:
    """The public queues of all machines that the directory has."""
    found = asked.operations.queues.public(asked.identity)
    return Reply(200, {"queues": [told(each) for each in found]})
