"""Which quota a message had no room in, or that the disk is full: a status alone does not say."""

import argparse
from typing import TYPE_CHECKING

from rpcqm.cli.options import queue_name
from rpcqm.cli.session import if_told
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

_OF_ALL = "/queue-manager"


async def why_full(client: "QueueManagerClient", arguments: argparse.Namespace) -> str:
    """What has no room, as far as the caller may know; empty if that cannot be told."""
    overview = await if_told(client.maintenance.overview()) or {"attention": []}
    of_all = {
        each["code"]: str(each["text"])
        for each in overview["attention"]
        if each["target"] == _OF_ALL
    }
    quota = await _quota_of(client, arguments)
    found = [of_all.get("disk_full"), of_all.get("quota_full"), quota, of_all.get("quota_low")]
    text = next(filter(None, found), "").rstrip(".")
    return text[:1].lower() + text[1:]


async def _quota_of(client: "QueueManagerClient", arguments: argparse.Namespace) -> str | None:
    queue = arguments.queue.partition(",")[0]
    properties = await if_told(client.queues.properties(queue_name(arguments, queue)))
    if properties is None or properties.quota == INFINITE:
        return None
    return f"the quota of `{queue}` is {properties.quota:,} KB"
