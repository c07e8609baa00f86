"""Queues and their permissions."""

from collections.abc import Mapping
from dataclasses import asdict

from rpcqm.api import models, parameters, reading
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.problems import bad_request
from rpcqm.api.slices import in_parts, in_slices
from rpcqm.codec.names.written import HERE, path_name
from rpcqm.codec.security.descriptor import SecurityDescriptor, SecurityInformation, parts_of
from rpcqm.codec.security.sddl import format_sddl, parse_sddl
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.operations.permissions import ShownPermissions
from rpcqm.operations.shapes import PRIVACY, QueueFacts, described_queue

_ATTRIBUTES = {
    "label": "label",
    "journal": "journaling",
    "quota": "quota",
    "journal_quota": "journal_quota",
    "authenticate": "authentication",
    "privacy": "privacy_level",
    "base_priority": "base_priority",
    "transactional": "transactional",
}
"""Names here, and those of `adm.Queue`."""


async def list_queues(asked: Asked) -> Reply:
    """The queues of applications, by name; for administrators."""
    page: parameters.PageOfQueues = asked.parameters
    told = asked.operations.queues.page(asked.identity, page.after, page.limit)
    written = (b",".join([_texts.of(*each) for each in piece]) for piece in told)
    found = [b",".join(filter(None, made)) async for made in in_slices(written)]
    parts = [part for each in filter(None, found) for part in (b",", each)][1:]
    parts = [b'{"queues":[', *parts, b'],"next":', reading.write_json(told.next), b"}"]
    return in_parts(parts)


MOST_TEXTS = 20_000
"""Queues whose text in the list of queues is kept while nothing of it changes.

Each takes about 700 octets with what it is made from.

Bound `program.queue_texts` [queues]: all are written again.
"""


class _Texts:
    """Queues as JSON, which is written anew when what it tells is another."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[QueueFacts, bytes]] = {}

    def of(self, number: int, facts: QueueFacts) -> bytes:
        """The text of the queue of that number."""
        known = self._known.get(number)
        if known is None or known[0] != facts:
            if len(self._known) >= MOST_TEXTS:
                self._known.clear()
            known = self._known[number] = facts, reading.write_json(described_queue(facts))
        return known[1]


_texts = _Texts()


async def create_queue(asked: Asked) -> Reply:
    """Create a queue; its owner is the caller."""
    wanted: models.QueueDraft = asked.content
    path = path_name(wanted.name, HERE)
    if path.suffix:
        raise bad_request("name: a subqueue comes into being by moving a message to it")
    attributes = _attributes(asdict(wanted))
    if wanted.sddl is not None:
        attributes["security"] = parse_sddl(wanted.sddl).encode()
    created = asked.operations.queues.create(asked.identity, str(path), attributes)
    return Reply(201, asked.operations.queues.shown(asked.identity, await settled(created)))


async def show_queue(asked: Asked) -> Reply:
    """The properties of a queue, and its counts."""
    queue = asked.operations.queues.look_as_listed(asked.identity, asked.queue)
    return Reply(200, asked.operations.queues.shown(asked.identity, queue))


async def change_queue(asked: Asked) -> Reply:
    """Change properties of a queue; the answer has the new ones."""
    wanted: models.QueueChanges = asked.content
    given = {name: value for name, value in asdict(wanted).items() if value is not None}
    operations, identity, name = asked.operations.queues, asked.identity, asked.queue
    changes = _attributes(given)
    operations.may_change(identity, name)
    if changes:
        await settled(operations.set_properties(identity, name, changes))
    if "max_deliveries" in given or "poison" in given:
        queue = operations.find(name).main
        limit = given.get("max_deliveries", queue.max_deliveries)
        subqueue = given.get("poison", queue.poison_subqueue)
        await settled(operations.set_max_deliveries(identity, name, limit, subqueue))
    if "journal_max_age" in given or "journal_max_messages" in given:
        queue = operations.find(name).main
        age = given.get("journal_max_age", queue.journal_max_age)
        messages = given.get("journal_max_messages", queue.journal_max_messages)
        await settled(operations.set_journal_bounds(identity, name, age, messages))
    if "trail" in given:
        await settled(operations.switch_trail(identity, name, given["trail"]))
    return Reply(
        200, asked.operations.queues.shown(asked.identity, operations.look(identity, name))
    )


async def delete_queue(asked: Asked) -> Reply:
    """Delete a queue with its journal, its subqueues and all their messages."""
    await settled(asked.operations.queues.delete(asked.identity, asked.queue))
    return Reply(204)


async def rename_queue(asked: Asked) -> Reply:
    """Give a private queue another name; it keeps all else, and what is open goes on."""
    wanted: models.OtherName = asked.content
    operations, name = asked.operations.queues, asked.queue
    queue = operations.find(name)
    path = path_name(wanted.name, HERE)
    await settled(operations.rename(asked.identity, name, str(path)))
    return Reply(200, operations.shown(asked.identity, queue))


async def show_permissions(asked: Asked) -> Reply:
    """The permissions of a queue."""
    return Reply(200, shown_sddl(asked.operations.permissions.shown(asked.identity, asked.queue)))


def shown_sddl(shown: ShownPermissions) -> dict[str, object]:
    """A descriptor in Windows' notation with its version, as it may be put back."""
    return {"sddl": format_sddl(shown.descriptor), "version": shown.version}


async def set_permissions(asked: Asked) -> Reply:
    """Replace the parts of a queue's descriptor that are given: owner, group, access list."""
    wanted: models.Permissions = asked.content
    descriptor = parse_sddl(wanted.sddl)
    parts = parts_given(descriptor)
    identity, name = asked.identity, asked.queue
    if wanted.version is not None:
        asked.operations.permissions.check_version(identity, name, wanted.version)
    changed = asked.operations.queues.set_security(identity, name, parts, descriptor.encode())
    await settled(changed)
    return Reply(204)


def parts_given(descriptor: SecurityDescriptor) -> SecurityInformation:
    """What a descriptor has; raises Refusal for nothing, which would change nothing.

    A list of what is audited is for administrators, who alone may see and change it.
    """
    parts = parts_of(descriptor)
    if not parts:
        raise bad_request("sddl: it names no owner, no group and no list of rights")
    return parts


def _attributes(given: Mapping[str, object]) -> dict[str, object]:
    """Attributes of `adm.Queue` for members of our models; None and -1 of a quota are none."""
    attributes: dict[str, object] = {}
    for name, attribute in _ATTRIBUTES.items():
        if name not in given:
            continue
        value = given[name]
        if name == "privacy":
            value = PRIVACY[str(value)]
        elif attribute.endswith("quota"):
            if value is None:
                continue  # the default of new queues
            value = INFINITE if value == -1 else value
        attributes[attribute] = value
    return attributes
