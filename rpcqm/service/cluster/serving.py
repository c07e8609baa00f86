"""The process of a node: a standby, then the queue manager, until it stops or begins anew."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from rpcqm.config import Configuration
from rpcqm.service.cluster.node import ClusterNode
from rpcqm.service.cluster.standby_doors import StandbyDoors
from rpcqm.service.notify import READY, STATUS, notify
from rpcqm.service.queue_manager_service import QueueManagerService

Serve = Callable[[asyncio.Event, QueueManagerService], Awaitable[None]]


async def serve_in_cluster(
    configuration: Configuration, stopping: asyncio.Event, capture: Path | None, serve: Serve
) -> None:
    """Run a node until `stopping` is set; `serve` runs the queue manager until its event is set.

    Raises StartError for a node that cannot follow its log. After a handover or another node's
    takeover it does not return: the process begins anew.
    """
    node = ClusterNode(configuration)
    try:
        await _run(node, stopping, capture, serve)
    finally:
        await node.stop()
    if node.leaving.is_set() and not stopping.is_set():
        node.begin_anew()


async def _run(
    node: ClusterNode, stopping: asyncio.Event, capture: Path | None, serve: Serve
) -> None:
    node.open()
    doors = StandbyDoors(node.configuration, node, node.clock)
    try:
        await doors.open()
        notify(f"{READY}\n{STATUS}Standby")
        if not await _took_over(node, stopping):
            return
    finally:
        await doors.close()
    service = QueueManagerService(node.configuration, node.clock, capture, node)
    await serve(_ended(node, stopping), service)
    if node.leaving.is_set() or node.section.takeover == "automatic":
        await node.hand_over()


async def _took_over(node: ClusterNode, stopping: asyncio.Event) -> bool:
    """Whether this node is primary; False if it is to stop before that."""
    loop = asyncio.get_running_loop()
    following = loop.create_task(node.take_over())
    stop = loop.create_task(stopping.wait())
    try:
        await asyncio.wait((following, stop), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.cancel()
        if not following.done():
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    if following.cancelled():
        return False
    following.result()
    return True


def _ended(node: ClusterNode, stopping: asyncio.Event) -> asyncio.Event:
    """Set once the process is to stop, or another node is to take over."""
    ended = asyncio.Event()

    async def tell(event: asyncio.Event) -> None:
        await event.wait()
        ended.set()

    for event in (stopping, node.leaving):
        node.begin(tell(event))
    return ended
