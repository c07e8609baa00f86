"""Opens the log of a configuration; its engine's library is loaded only then."""

from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from rpcqm.config.replica_files import ReplicaAccess, is_nats, read_access
from rpcqm.config.replica_section import ReplicaSection
from rpcqm.store.replication import ReplicatedLog

if TYPE_CHECKING:
    from rpcqm.replica.nats import NatsSettings

REPLICAS = 3
"""Copies of the log in NATS, of which two are enough."""
NATS_PORT = 4222


class Engine(ReplicatedLog, Protocol):
    """A log that is open."""

    async def close(self) -> None:
        """End the calls under way, and the connections."""
        ...


async def open_engine(section: ReplicaSection) -> Engine:
    """Raises ConfigurationError for unusable files, ReplicationError for an unusable log, and its
    subclass LogSilentError for one that does not answer now."""
    access = read_access(section)
    return await (_nats if is_nats(section) else _postgresql)(section, access)


async def _nats(section: ReplicaSection, access: ReplicaAccess) -> Engine:
    from rpcqm.replica.nats import open_log

    return await open_log(nats_settings(section, access))


def nats_settings(section: ReplicaSection, access: ReplicaAccess) -> "NatsSettings":
    """The place of the log in NATS, with our credentials."""
    from rpcqm.replica.nats import NatsSettings

    options: dict[str, Any] = {"tls": access.context}
    if access.credentials is not None:
        options["user_credentials"] = str(access.credentials)
    elif access.user:
        options |= {"user": access.user, "password": access.password}
    return NatsSettings(
        section.log,
        section.name,
        1 if section.tries_out else REPLICAS,
        section.maximum_bytes,
        tuple(options.items()),
    )


async def _postgresql(section: ReplicaSection, access: ReplicaAccess) -> Engine:
    from rpcqm.replica.postgresql import PostgresqlSettings, open_log

    options: dict[str, Any] = {}
    if access.context is not None:
        options["ssl"] = access.context
    if access.user:
        options |= {"user": access.user, "password": access.password}
    servers = [urlsplit(each) for each in section.log]
    address = f"postgresql://{','.join(each.netloc for each in servers)}{servers[0].path}"
    settings = PostgresqlSettings(address, section.name, section.tries_out, tuple(options.items()))
    return await open_log(settings)
