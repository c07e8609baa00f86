"""The queue manager, its accounts, its queues to elsewhere, dead letters and traces."""

from rpcqm.api import models
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.problems import bad_request
from rpcqm.base.told import told
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.security.passwords import nt_hash
from rpcqm.operations.drafts import message_identifier
from rpcqm.operations.shapes import (
    described_event,
    described_outgoing,
    described_place,
)

MOST_EVENTS = 10_000
"""Events of a message in one answer."""


async def show_machine(asked: Asked) -> Reply:
    """The state of the queue manager, and its stored amounts."""
    state = asked.operations.machine.state(asked.identity)
    return Reply(200, told(state))


async def change_machine(asked: Asked) -> Reply:
    """Connect or disconnect the network, and begin or end maintenance."""
    wanted: models.MachineChanges = asked.content
    machine, identity = asked.operations.machine, asked.identity
    if wanted.connected is None and wanted.maintenance is None:
        raise bad_request("`connected` or `maintenance` is wanted")
    if wanted.connected is not None:
        await settled(machine.connect(identity, wanted.connected, wanted.reason))
    if wanted.maintenance is not None:
        await settled(machine.maintain(identity, wanted.maintenance, wanted.reason))
    return await show_machine(asked)


# Queues to elsewhere


async def list_outgoing(asked: Asked) -> Reply:
    """The queues to other queue managers."""
    queues = asked.operations.outgoing.list(asked.identity)
    return Reply(200, {"outgoing_queues": [described_outgoing(queue) for queue in queues]})


async def show_outgoing(asked: Asked) -> Reply:
    """One queue to another queue manager."""
    return Reply(
        200, described_outgoing(asked.operations.outgoing.find(asked.identity, _named(asked)))
    )


async def pause_outgoing(asked: Asked) -> Reply:
    """Stop the transfer, over restarts too."""
    await settled(asked.operations.outgoing.pause(asked.identity, _named(asked)))
    return await show_outgoing(asked)


async def resume_outgoing(asked: Asked) -> Reply:
    """Continue the transfer."""
    await settled(asked.operations.outgoing.resume(asked.identity, _named(asked)))
    return await show_outgoing(asked)


async def resend_outgoing(asked: Asked) -> Reply:
    """Send unacknowledged messages again at once."""
    await settled(asked.operations.outgoing.resend(asked.identity, _named(asked)))
    return await show_outgoing(asked)


def _named(asked: Asked) -> FormatName:
    """The queue to elsewhere: `queue` names it where its name in the path would be changed."""
    return asked.queue


# Accounts


async def list_accounts(asked: Asked) -> Reply:
    """All accounts, by name."""
    accounts = asked.operations.accounts.list(asked.identity)
    told = [{"name": a.name, "sid": a.sid, "groups": list(a.groups)} for a in accounts]
    return Reply(200, {"accounts": told})


async def add_account(asked: Asked) -> Reply:
    """Create an account; only the NT hash of its password is stored."""
    wanted: models.AccountDraft = asked.content
    operations, identity = asked.operations.accounts, asked.identity
    hashed = nt_hash(wanted.password)
    await settled(operations.add(identity, wanted.name, hashed, wanted.groups))
    told = next(a for a in operations.list(identity) if a.name == wanted.name)
    return Reply(201, {"name": told.name, "sid": told.sid, "groups": list(told.groups)})


async def set_password(asked: Asked) -> Reply:
    """Replace the password of an account."""
    wanted: models.Password = asked.content
    hashed = nt_hash(wanted.password)
    accounts = asked.operations.accounts
    await settled(accounts.set_password(asked.identity, asked.path["name"], hashed))
    return Reply(204)


async def remove_account(asked: Asked) -> Reply:
    """Delete an account."""
    await settled(asked.operations.accounts.remove(asked.identity, asked.path["name"]))
    return Reply(204)


# Traces


async def trace_message(asked: Asked) -> Reply:
    """The events of a message, and its places."""
    identifier = message_identifier(asked.path["id"])
    traces = asked.operations.traces
    events = list(traces.trail(asked.identity, identifier))[:MOST_EVENTS]
    places = await settled(traces.find(asked.identity, identifier))
    told = [described_event(event) for event in events]
    there = [described_place(place) for place in places]
    return Reply(200, {"events": told, "places": there})
