"""What is told to those who have a queue open and may not, or may no longer, do what they ask."""

from collections.abc import Callable

from rpcqm.codec.types.mqvalues import QueueAccessType
from tests.support.dcom.com_objects import YES, number
from tests.support.qm.event_hands import _client, _com, _purged
from tests.support.qm.event_world import Subject, World
from tests.support.rpc.dependent_client import (
    receiving_buffer,
)
from tests.support.rpc.qm2qm_reader import Qm2QmReader
from tests.support.rpc.remote_reader import Reader, status_name


def peeking_purges(machine: World, subject: Subject) -> dict[str, str]:
    """What who has opened a queue for peeking only is told when he purges it, by each door."""
    peek = 0x20
    client = _client(machine)
    handle, _ = client.open(subject.name, peek)
    reader = Reader(machine.caller().caller)
    handed = Qm2QmReader(machine.caller().caller)
    queue, _ = handed.open(subject.name, peek)
    opened = machine.objects.open(QueueAccessType.PEEK_ACCESS, subject.path)
    return {
        "rpc": client.status("rpc_ACPurgeQueue", hQueue=handle),
        "remoteread": reader.status("R_PurgeQueue", phContext=reader.open(subject.name, peek)),
        "qm2qm": _purged(handed, queue),
        "com": _com(machine, opened, "Purge"),
    }


def after_a_deletion(
    world: World, subject: Subject, delete: Callable[[], None]
) -> dict[str, dict[str, str]]:
    """What who has a queue open is told when it has been deleted, by event and door."""
    client, reader = _client(world), Reader(world.caller().caller)
    handle, context = client.open(subject.name)
    opened = reader.open(subject.name)
    handed = Qm2QmReader(world.caller().caller)
    queue, _ = handed.open(subject.name)
    made = world.objects.open(QueueAccessType.RECEIVE_ACCESS, subject.path)
    delete()
    return {
        "receive": {
            "rpc": client.receive(context, receiving_buffer())[0],
            "remoteread": status_name(reader.read(opened).result),
            "qm2qm": status_name(handed.read(queue).result),
            "com": _com(world, made, "Receive", number(0), YES, YES, number(0), YES),
        },
        "purge": {
            "rpc": client.status("rpc_ACPurgeQueue", hQueue=handle),
            "remoteread": reader.status("R_PurgeQueue", phContext=opened),
            "qm2qm": _purged(handed, queue),
            "com": _com(world, made, "Purge"),
        },
    }
