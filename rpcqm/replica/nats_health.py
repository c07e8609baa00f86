"""The state of a NATS log's servers, one by one, for operators."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nats.js.errors import NotFoundError

from rpcqm.replica.nats import OLDEST, NatsLog, NatsSettings, check_stream, connect, told
from rpcqm.store.errors import ReplicationError


@dataclass(frozen=True, slots=True)
class ServersSeen:
    """The result of a look. Servers and copies are given by names."""

    silent: tuple[str, ...]
    """Addresses without an answer, each with the reason."""
    old: tuple[str, ...]
    """Addresses with versions that may lose acknowledged records."""
    leader: str
    """The server that takes appends; empty if there is no log yet, or no leader."""
    behind: tuple[str, ...]
    """Copies of the log that are not up to date."""
    exists: bool


async def look_at_servers(settings: NatsSettings) -> ServersSeen:
    """Look at the servers without changing anything; ReplicationError for a foreign log."""
    silent, old = [], []
    for address in settings.servers:
        try:
            client = await connect(replace(settings, servers=(address,)))
        except ReplicationError as error:
            silent.append(f"{address}: {error}")
            continue
        found = client.connected_server_version
        await client.close()
        version = (found.major, found.minor, found.patch)
        if version < OLDEST:
            old.append(f"{address}: {'.'.join(map(str, version))}")
    if len(silent) == len(settings.servers):
        return ServersSeen(tuple(silent), tuple(old), "", (), exists=False)
    return await _look_at_log(settings, silent, old)


async def _look_at_log(
    settings: NatsSettings, silent: Sequence[str], old: Sequence[str]
) -> ServersSeen:
    log = NatsLog(await connect(settings), settings)
    try:
        info = await told(log.context.stream_info(settings.stream))
    except ReplicationError as error:
        if isinstance(error.__cause__, NotFoundError):
            return ServersSeen(tuple(silent), tuple(old), "", (), exists=False)
        raise
    finally:
        await log.close()
    check_stream(info, settings)
    cluster = info.cluster
    copies = (cluster.replicas if cluster is not None else None) or []
    behind = tuple(str(each.name) for each in copies if not each.current)
    leader = (cluster.leader if cluster is not None else None) or ""
    return ServersSeen(tuple(silent), tuple(old), leader, behind, exists=True)
