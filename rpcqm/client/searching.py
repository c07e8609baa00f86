"""Searches that the queue manager makes itself, which only ours do."""

import json
from typing import Any

from rpcqm.client.connection import Connections, require_value
from rpcqm.client.target import LocalServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.types import rpcqm_admin, rpcqm_bulk


async def search_page(
    connections: Connections, name: FormatName | None, asked: dict[str, Any]
) -> dict[str, Any]:
    """A page of a search of a queue, or of all (None); MaintenanceClient.search says what is asked.

    Raises RpcFault where the queue manager makes no searches, or not for this caller.
    """
    queue = None if name is None else queue_format_of(name)
    text = json.dumps(asked)
    response: rpcqm_admin.R_SearchMessagesResponse | rpcqm_bulk.R_BulkSearchResponse
    if isinstance(connections.target, LocalServer):
        local = rpcqm_admin.R_SearchMessagesRequest(pQueueFormat=queue, pwszSearch=text)
        response = await connections.call(local)
    else:
        elsewhere = rpcqm_bulk.R_BulkSearchRequest(pQueueFormat=queue, pwszSearch=text)
        response = await connections.call(elsewhere)
    told: dict[str, Any] = json.loads(bytes(require_value(response.ppAnswer)))
    return told
